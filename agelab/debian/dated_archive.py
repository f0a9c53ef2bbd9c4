"""Write packages as an archive that apt reads: a directory to name as a snapshot.

``debian/dists/<suite>`` has the indexes, ``debian/pool/<suite>`` the packages, as on a mirror (repository format of
Debian's wiki; apt-ftparchive(1) makes the indexes). It has no signature.
"""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

from agelab import atomic, process
from agelab.debian.archive import ARCHITECTURE
from agelab.debian.snapshot import MAIN

COMPONENT = "main"


def write(directory: Path, suites: Mapping[str, Sequence[Path]]) -> None:
    """Write the .deb files of each suite into a new directory. The same files give the same bytes."""
    root = directory / MAIN
    for suite, debs in sorted(suites.items()):
        pool = root / "pool" / suite
        pool.mkdir(parents=True)
        for deb in sorted(debs):
            atomic.link_or_copy(deb, pool / deb.name)
        index = root / "dists" / suite / COMPONENT / f"binary-{ARCHITECTURE}"
        index.mkdir(parents=True)
        listed = process.run(["apt-ftparchive", "packages", f"pool/{suite}"], cwd=root).stdout.encode()
        (index / "Packages").write_bytes(listed)
        (index / "Packages.gz").write_bytes(gzip.compress(listed, mtime=0))
        _release(root / "dists" / suite, suite)


def _release(directory: Path, suite: str) -> None:
    """Write the suite's Release file, without a date: the same packages have the same index."""
    fields = {"Suite": suite, "Codename": suite, "Components": COMPONENT, "Architectures": ARCHITECTURE}
    options = [
        word for name, value in fields.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")
    ]
    text = process.run(["apt-ftparchive", *options, "release", "."], cwd=directory).stdout
    kept = (line for line in text.splitlines(keepends=True) if not line.startswith("Date:"))
    (directory / "Release").write_text("".join(kept), encoding="utf-8")
