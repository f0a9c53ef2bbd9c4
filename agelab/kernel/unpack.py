"""Unpack a kernel's packages into the store. Nothing is installed on the host."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from agelab import debian
from agelab.base import fileio
from agelab.base.errors import HostError
from agelab.base.types import require_utf_8
from agelab.debian.unpacking import PACKAGE_BYTES
from agelab.kernel import modinfo, vmlinux
from agelab.kernel.modules import BUILTIN, INDEX, index, soft, walk
from agelab.kernel.stored_kernel import DEFAULT

_DRIVERS = (
    *(
        "acpi",
        "ata",
        "block",
        "cdrom",
        "char",
        "dax",
        "md",
        "nvdimm",
        "nvme",
        "pci",
        "vfio",
        "virtio",
        "watchdog",
    ),
    *(
        "net/ethernet/intel/e1000",
        "net/virtio_net",
        "scsi/scsi_",
        "scsi/sd_mod",
        "scsi/sr_mod",
        "scsi/sg",
        "scsi/virtio",
    ),
)
_RATIOS = {".gz": 1032, ".xz": 7100}
"""How many bytes one packed byte can stand for, by the suffix of a packed module."""
_MAX_ARGUMENTS = 500
"""Files for each zstd command."""

KEPT_MODULES = (
    *("extra/", "updates/"),
    *(f"kernel/{top}/" for top in ("arch", "block", "crypto", "fs", "lib", "mm")),
    *(f"kernel/drivers/{name}" for name in _DRIVERS),
)
"""Path prefixes of the modules that guests may need, of the 390 MB of a distribution; dependencies are kept too."""


class NotAKernel(HostError):
    """Packages contain no kernel in a known layout."""


def unpack(debs: Sequence[Path], release: str, directory: Path) -> None:
    """Fill ``directory`` with the parts of a kernel's packages that a guest needs.

    These are ``vmlinuz``, ``vmlinux`` where it can be unpacked, ``config``, ``modules/`` and the index of the modules.
    Raises NotAKernel.
    """
    whole = directory / "unpacked"
    for deb in debs:
        debian.unpack(deb, whole)
    reject_escapes(whole)
    trees = [whole / top / "modules" / release for top in ("lib", "usr/lib")]
    tree = next((tree for tree in trees if tree.is_dir()), whole)
    for name in ("vmlinuz", "config"):
        places = (whole / "boot" / f"{name}-{release}", tree / name)
        there = next((place for place in places if place.is_file()), None)
        if there is None or not (tree / "modules.builtin").is_file():
            raise NotAKernel(
                f"{', '.join(deb.name for deb in debs)}: no kernel in a layout that agelab knows",
                hint=f"for example: {DEFAULT}",
            )
        _move(there, directory / name)
    if vmlinux.supports_pvh(fileio.read_text(directory / "config")):
        image = vmlinux.unpack(fileio.read_bytes(directory / "vmlinuz", fileio.PROGRAM))
        if image:
            (directory / "vmlinux").write_bytes(image)
    prune_modules(tree, directory)
    shutil.rmtree(whole)


def reject_escapes(tree: Path) -> None:
    """Remove links that point out of an unpacked tree (to a build's headers, for example).

    Raises NotAKernel for anything that is not a file, directory or link.
    """
    inside = tree.resolve()
    for directory, directories, names in os.walk(tree):
        for path in (Path(directory, name) for name in (*directories, *names)):
            if path.is_symlink():
                if not path.resolve().is_relative_to(inside):
                    path.unlink()
            elif not (path.is_dir() or path.is_file()):
                raise NotAKernel(f"{path.relative_to(tree)} is neither file, directory nor link")


def _move(path: Path, target: Path) -> None:
    """Move a file; of a link, which would lead to another file from there, copy what it leads to here.

    Raises NotAKernel for one that leads to what was moved.
    """
    if not path.is_symlink():
        path.rename(target)
    elif path.is_file():
        shutil.copyfile(path, target)
    else:
        raise NotAKernel(f"the kernel's {path.name} is a link to another part of it")


def prune_modules(tree: Path, directory: Path) -> None:
    """Move the modules that a guest may need from ``tree`` into ``directory``, and write their index.

    Raises HostError for a file that is not a module.
    """
    _decompress(tree)
    paths = sorted(path for path in tree.rglob("*.ko*") if path.is_file())
    infos = [read_module(path, f"modules/{path.relative_to(tree)}") for path in paths]
    named = {info.name: info for info in infos}
    aliased: dict[str, list[str]] = {}
    for info in infos:
        for alias in info.aliases:
            aliased.setdefault(alias, []).append(info.name)
    chosen = [info.name for info in infos if info.path.removeprefix("modules/").startswith(KEPT_MODULES)]
    kept = walk(chosen, named.get, lambda name: soft(name, named, aliased))
    for info in kept:
        target = directory / info.path
        target.parent.mkdir(parents=True, exist_ok=True)
        _move(tree / Path(info.path).relative_to("modules"), target)
    (directory / BUILTIN).parent.mkdir(parents=True, exist_ok=True)
    _move(tree / "modules.builtin", directory / BUILTIN)
    (directory / INDEX).write_bytes(index(sorted(kept, key=lambda info: info.name)))


def read_module(path: Path, relative: str) -> modinfo.ModuleInfo:
    """Read what a module says of itself. Raises RefusedFile, HostError for a file that is no module, InputError."""
    require_utf_8(relative)
    _reject_bomb(path)
    try:
        return modinfo.read(path, relative)
    except OverflowError as error:
        raise HostError(f"{path} is not a kernel module: {error}") from error


def _reject_bomb(module: Path) -> None:
    """Raise RefusedFile for a module that is too large, or would be when it is unpacked."""
    with fileio.opened(module, fileio.PROGRAM) as file:
        size = file.seek(0, os.SEEK_END)
    if size > fileio.PROGRAM // _RATIOS.get(module.suffix, 1):  # a smaller one cannot be
        for _ in fileio.unpacked_pieces(module, fileio.PROGRAM):
            pass


def _decompress(tree: Path) -> None:
    """Decompress zstd modules; Debian's own kernels have none."""
    packed = sorted(tree.rglob("*.ko.zst"))
    left = PACKAGE_BYTES
    for first in range(0, len(packed), _MAX_ARGUMENTS):
        some = packed[first : first + _MAX_ARGUMENTS]
        debian.unpack_zstd(some, tree, left)
        made = (path.with_suffix("") for path in some)
        left -= sum(path.stat().st_size for path in made if path.is_file())
