"""Kernels of kind ``deb:``: the user's .deb files, of an own build or of a kernel that left the mirror.

Here Debian's own kernels are unpacked, too. Nothing is installed on the host.
"""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from agelab import debian
from agelab.base import fileio, process, readers
from agelab.base.errors import HostError, InputError, Notify, silent
from agelab.base.sanitize import require_utf_8
from agelab.base.types import Frozen
from agelab.debian import control_fields
from agelab.debian.unpacking import PACKAGE_BYTES
from agelab.kernel import elf, guest_needs, oldest
from agelab.kernel.modules import BUILTIN, INDEX, Modules, index
from agelab.kernel.stored_kernel import DEFAULT, Kernel
from agelab.store.artefacts import Store, file_hash, require_unchanged

# Debian's packages of one kernel (in parts since Linux 7), Ubuntu's, and those of the kernel's own bindeb-pkg.
_PACKAGE = re.compile(r"linux-(image(-unsigned)?|base|binary|modules(-extra)?)-(?P<release>\d[\w.+~-]*?)(-unsigned)?")


class Deb(Frozen):
    """One .deb file and its control data."""

    path: Path
    name: str
    version: str
    release: str
    sha256: str


def resolve(paths: str, store: Store, *, refresh: bool = False, progress: Notify = silent) -> Kernel:
    """Return the kernel in these files (paths separated by commas), unpacked if the store does not have it.

    Its key depends on the content alone: it equals the key of the ``debian:`` kernel with the same files. Raises
    InputError for files that are not one kernel.
    """
    spec, debs = f"deb:{paths}", read(paths)
    first = debs[0]

    def build(directory: Path) -> None:
        progress(f"unpacking the kernel {first.release}")
        try:
            unpack([deb.path for deb in debs], first.release, directory)
        except NotAKernel as error:
            raise InputError(
                str(error), hint="name all packages of a kernel that comes in parts: deb:<image>,<modules>,..."
            ) from error
        for deb in debs:
            require_unchanged(deb.path, deb.sha256)
        guest_needs.require_root_support(spec, first.release, directory, "choose another: agelab list kernels")

    readable_by = readers.of_files(*(deb.path for deb in debs))
    artefact = store.obtain("kernel", key_inputs(debs), build, readable_by=readable_by)
    return Kernel(spec, first.release, first.version, artefact=artefact)


def read(paths: str) -> list[Deb]:
    """Read the control data of these files, sorted by package. Raises InputError for files that are not one kernel."""
    spec = f"deb:{paths}"
    debs = sorted((_read(spec, Path(word)) for word in paths.split(",")), key=lambda deb: deb.name)
    first = debs[0]
    for other in debs[1:]:
        if (other.release, other.version) != (first.release, first.version):
            raise InputError(
                f"kernel {spec!r}: the files are not of one kernel: {first.path.name} is of {first.release} "
                f"({first.version}), {other.path.name} of {other.release} ({other.version})"
            )
    return debs


def key_inputs(debs: list[Deb]) -> dict[str, object]:
    """Return the inputs of the kernel's key: for the files of a Debian kernel the same as that kernel's."""
    release, version = debs[0].release, debs[0].version
    image = next((deb for deb in debs if deb.name.startswith("linux-image-")), None)
    inputs: dict[str, object] = {"version": version, "recipe": RECIPE}
    inputs |= {"package": image.name, "sha256": image.sha256} if image else {}
    if image is None or image.name != f"linux-image-{release}":
        inputs["release"] = release
    if parts := [[deb.name, deb.sha256] for deb in debs if deb is not image]:
        inputs["parts"] = parts
    return inputs


def _read(spec: str, path: Path) -> Deb:
    if not path.is_file():
        raise InputError(f"kernel {spec!r}: no file {str(path)!r}", hint="deb:<path>, or deb:<path>,<path>")
    try:
        shown = control_fields(path, "${Package}\\n${Version}")
    except process.ProcessFailed as error:
        raise InputError(f"kernel {spec!r}: {path} is not a Debian package") from error
    name, _, version = shown.partition("\n")
    match = _PACKAGE.fullmatch(name)
    if not match:
        raise InputError(
            f"kernel {spec!r}: {path.name} holds the package {name}, which is no part of a kernel",
            hint="a kernel is linux-image-<release> or, in parts, also linux-base-, linux-binary- and "
            "linux-modules-<release>",
        )
    oldest.require(f"kernel {spec!r}", match["release"])
    return Deb(path=path, name=name, version=version, release=match["release"], sha256=file_hash(path))


RECIPE = 1
"""Raised whenever the same package would be unpacked differently."""

_DRIVERS = (
    *("acpi", "ata", "block", "cdrom", "char", "dax", "md", "nvdimm", "nvme", "pci", "vfio", "virtio", "watchdog"),
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
    if elf.supports_pvh(fileio.read_text(directory / "config")):
        image = elf.unpack(fileio.read_bytes(directory / "vmlinuz", fileio.PROGRAM))
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
    for path in paths:
        require_utf_8(str(path.relative_to(tree)))
    infos = [elf.read_module(path, f"modules/{path.relative_to(tree)}") for path in paths]
    prefixes = tuple(f"modules/{prefix}" for prefix in KEPT_MODULES)
    kept = Modules("", tree, tuple(infos), frozenset()).kept(prefixes)
    for info in kept:
        target = directory / info.path
        target.parent.mkdir(parents=True, exist_ok=True)
        _move(tree / Path(info.path).relative_to("modules"), target)
    (directory / BUILTIN).parent.mkdir(parents=True, exist_ok=True)
    _move(tree / "modules.builtin", directory / BUILTIN)
    (directory / INDEX).write_bytes(index(sorted(kept, key=lambda info: info.name)))


def _decompress(tree: Path) -> None:
    """Decompress zstd modules; Debian's own kernels have none."""
    packed = sorted(tree.rglob("*.ko.zst"))
    left = PACKAGE_BYTES
    for first in range(0, len(packed), _MAX_ARGUMENTS):
        some = packed[first : first + _MAX_ARGUMENTS]
        debian.unpack_zstd(some, tree, left)
        made = (path.with_suffix("") for path in some)
        left -= sum(path.stat().st_size for path in made if path.is_file())
