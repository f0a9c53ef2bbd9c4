"""Lists of packages that Debian has signed, and archives that carry them: a directory to name as a snapshot.

A list and the suite's signed file prove of a package that it is Debian's, wherever its file comes from: so an archive
carries the lists of its packages, and apt checks them (agelab.debian.archive).

``debian/dists/<suite>`` has the indexes, ``debian/pool`` the packages, as on a mirror (repository format of Debian's
wiki; apt-ftparchive(1) makes the indexes). They have no signature: of Debian are the lists in ``signed/<hash>/dists``,
and a package that one of them has stands in the indexes as it does there.
"""

import gzip
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base import atomic, process
from agelab.debian.snapshot import MAIN, SIGNED_LISTS
from agelab.store.artefacts import file_hash

ARCHITECTURE = "amd64"
_APT_HELPER = "/usr/lib/apt/apt-helper"
_FIELD = re.compile(r"^(Package|Version|Filename|SHA256): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class PackageList:
    """The packages of one component of a suite."""

    suite: str
    component: str
    architecture: str
    file: Path
    """As apt keeps it, maybe compressed."""

    @property
    def release(self) -> Path:
        """The suite's signed file, which has the list's hash."""
        stem, _, _ = self.file.name.rpartition(f"_{self.component}_binary-{self.architecture}_")
        return self.file.with_name(f"{stem}_InRelease")

    @property
    def stanzas(self) -> list[str]:
        """What it says of each package."""
        return split_list(process.run([_APT_HELPER, "cat-file", str(self.file)]).stdout)

    def write(self, directory: Path) -> None:
        """Write the list and the suite's signed file below ``directory``, as an archive of their own."""
        place = directory / file_hash(self.release)[:16] / "dists" / self.suite
        index = place / self.component / f"binary-{self.architecture}"
        index.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.release, place / "InRelease")
        process.run([_APT_HELPER, "cat-file", str(self.file)], stdout=index / "Packages")


def split_list(text: str) -> list[str]:
    """Return what a list says of each package."""
    return [stanza for stanza in (paragraph.strip("\n") for paragraph in text.split("\n\n")) if stanza]


def fields(stanza: str) -> dict[str, str]:
    """Return name, version, file and hash of a package, as a list says them."""
    return dict(_FIELD.findall(stanza))


COMPONENT = "main"


def write(
    directory: Path, suites: Mapping[str, Sequence[Path]], signed: Mapping[str, Sequence[PackageList]] | None = None
) -> list[str]:
    """Write the .deb files of each suite into a new directory, with what ``signed`` has of them.

    Returns the names of the files that are in none of the signed lists. The same files and lists give the same bytes.
    """
    root = directory / MAIN
    unsigned = []
    for suite, debs in sorted(suites.items()):
        by_hash = {file_hash(deb): deb for deb in sorted(debs)}
        stanzas = []
        for package_list in (signed or {}).get(suite, ()):
            known = {
                control["SHA256"]: stanza
                for stanza in package_list.stanzas
                if (control := fields(stanza))["SHA256"] in by_hash
            }
            for content, stanza in known.items():
                file = root / fields(stanza)["Filename"]
                file.parent.mkdir(parents=True, exist_ok=True)
                atomic.link_or_copy(by_hash.pop(content), file)
                stanzas.append(stanza)
            if known:
                package_list.write(directory / SIGNED_LISTS)
        pool = root / "pool" / suite
        pool.mkdir(parents=True, exist_ok=True)
        for deb in by_hash.values():
            atomic.link_or_copy(deb, pool / deb.name)
            unsigned.append(deb.name)
        index = root / "dists" / suite / COMPONENT / f"binary-{ARCHITECTURE}"
        index.mkdir(parents=True)
        others = process.run(["apt-ftparchive", "packages", f"pool/{suite}"], cwd=root).stdout
        stanzas += [stanza for stanza in split_list(others) if fields(stanza)["SHA256"] in by_hash]
        listed = "".join(f"{stanza}\n\n" for stanza in stanzas).encode()
        (index / "Packages").write_bytes(listed)
        (index / "Packages.gz").write_bytes(gzip.compress(listed, mtime=0))
        _release(root / "dists" / suite, suite)
    return unsigned


def _release(directory: Path, suite: str) -> None:
    """Write the suite's Release file, without a date: the same packages have the same index."""
    fields = {"Suite": suite, "Codename": suite, "Components": COMPONENT, "Architectures": ARCHITECTURE}
    options = [word for name, value in fields.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")]
    text = process.run(["apt-ftparchive", *options, "release", "."], cwd=directory).stdout
    kept = (line for line in text.splitlines(keepends=True) if not line.startswith("Date:"))
    (directory / "Release").write_text("".join(kept), encoding="utf-8")
