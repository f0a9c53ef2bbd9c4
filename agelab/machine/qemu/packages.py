"""The Debian packages that QEMU is unpacked from."""

from typing import Any

from agelab.debian import Archive, cached_resolution, snapshot
from agelab.debian.buildroot import BuildRoot
from agelab.store.artefacts import Store

SUITE = snapshot.SUITE
"""The suite of the QEMU that is known (agelab.machine.qemu.emulator.KNOWN), and of the machine of guests."""
_PACKAGES = ("qemu-system-x86",)
"""With them apt names the firmware, and every library down to libc."""


def resolve_packages(store: Store, *, refresh: bool = False) -> BuildRoot:
    """Resolve the packages of QEMU, from the cache unless ``refresh``."""

    def ask() -> BuildRoot:
        archive = Archive(store, SUITE)
        archive.update(refresh=refresh)
        return BuildRoot(suite=SUITE, packages=archive.resolve(_PACKAGES))

    return cached_resolution(store, question(), BuildRoot, ask, refresh=refresh)


def question() -> dict[str, Any]:
    """Return the question under which the resolution of these packages is cached."""
    return {"emulator": SUITE, "packages": _PACKAGES}
