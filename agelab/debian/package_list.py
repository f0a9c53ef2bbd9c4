"""A list of packages as apt has fetched it, with the file of the suite that Debian has signed.

Such a pair proves of a package that it is Debian's, wherever its file comes from: so an archive that is handed on
carries the lists of its packages (agelab.debian.dated_archive), and apt checks them (agelab.debian.archive).
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from agelab.base import process
from agelab.store.artefacts import file_hash

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
        return split(process.run([_APT_HELPER, "cat-file", str(self.file)]).stdout)

    def write(self, directory: Path) -> None:
        """Write the list and the suite's signed file below ``directory``, as an archive of their own."""
        place = directory / file_hash(self.release)[:16] / "dists" / self.suite
        index = place / self.component / f"binary-{self.architecture}"
        index.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.release, place / "InRelease")
        process.run([_APT_HELPER, "cat-file", str(self.file)], stdout=index / "Packages")


def split(text: str) -> list[str]:
    """Return what a list says of each package."""
    return [stanza for stanza in (one.strip("\n") for one in text.split("\n\n")) if stanza]


def fields(stanza: str) -> dict[str, str]:
    """Return name, version, file and hash of a package, as a list says them."""
    return dict(_FIELD.findall(stanza))
