"""Packer as the package of Debian 12 has it, unpacked into the store: later releases of Debian have none.

Nothing of it is in an image, so no key has it. It needs nothing of the host but libc.
"""

import shutil
from pathlib import Path
from typing import Any

from agelab.base.errors import Notify
from agelab.debian import Archive, buildroot, cached_resolution, snapshot, unpack
from agelab.debian.buildroot import BuildRoot
from agelab.store.artefacts import Artefact, Store

SUITE = snapshot.SUITE
KIND = PROGRAM = PACKAGE = "packer"


def resolve_package(store: Store, *, refresh: bool = False) -> BuildRoot:
    """Resolve Packer's package, from the cache unless ``refresh``."""

    def ask() -> BuildRoot:
        archive = Archive(store, SUITE)
        archive.update(refresh=refresh)
        return BuildRoot(suite=SUITE, packages=(archive.package(PACKAGE),))

    return cached_resolution(store, question(), BuildRoot, ask, refresh=refresh)


def question() -> dict[str, Any]:
    """Return the question under which the resolution of the package is cached."""
    return {"packer": SUITE}


def obtain(store: Store, progress: Notify) -> Path:
    """Return Packer's program, unpacked if the store does not have it. Raises HostError when it cannot be fetched."""

    def of(chosen: BuildRoot) -> Artefact:
        [package] = chosen.packages

        def build(directory: Path) -> None:
            progress("downloading Packer")
            [deb] = Archive(store, SUITE).download(chosen.packages)
            unpack(deb, directory / "tree")
            (directory / "tree/usr/bin" / PROGRAM).rename(directory / PROGRAM)
            shutil.rmtree(directory / "tree")

        return store.obtain(KIND, {"sha256": package.sha256}, build)

    return buildroot.with_packages(lambda refresh: resolve_package(store, refresh=refresh), of) / PROGRAM
