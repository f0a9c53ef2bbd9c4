"""Debugging symbols of a kernel: Debian's, from the package with those of that very kernel, fetched when asked for."""

from collections.abc import Sequence
from pathlib import Path

from agelab.base.errors import Notify
from agelab.debian import Archive
from agelab.debian.unpacking import unpack_some
from agelab.kernel.stored_kernel import Kernel
from agelab.store.artefacts import Store

KIND = "symbols"
RECIPE = 1
"""Raised whenever the same package would make other files."""
INSIDE = "./usr/lib/debug"
VMLINUX = "vmlinux"


def obtain(kernel: Kernel, modules: Sequence[str], store: Store, progress: Notify) -> Path:
    """Return a directory with ``vmlinux`` and these modules (``ext4.ko``), with symbols and lines of the source.

    Raises HostError where Debian's mirror has none of this kernel (any more).
    """
    package = Archive(store, kernel.suite).package(f"linux-image-{kernel.release}-dbg", kernel.version)
    inputs = {"package": package.name, "sha256": package.sha256, "modules": sorted(modules), "recipe": RECIPE}

    def build(directory: Path) -> None:
        progress(f"downloading {package.name}, {package.size / 1e6:.0f} MB")
        [deb] = Archive(store, kernel.suite).download([package])
        progress(f"taking vmlinux and {len(modules)} modules out of it, which takes minutes")
        tree = directory / "tree"
        files = [f"*/{name.replace('_', '[_-]')}.ko*" for name in modules]
        unpack_some(
            deb, tree, [f"{INSIDE}/*{VMLINUX}-*", *(f"{INSIDE}/lib/modules/{name}" for name in files)]
        )
        for path in sorted(tree.rglob("*")):
            if path.is_file() and not path.is_symlink():
                name = VMLINUX if path.name.startswith(VMLINUX) else path.name.partition(".")[0] + ".ko"
                path.rename(directory / name)
        unpacked = sorted(tree.rglob("*"), reverse=True)
        for path in (*unpacked, tree):
            path.unlink() if path.is_symlink() else path.rmdir()

    return store.obtain(KIND, inputs, build, shared=True).directory
