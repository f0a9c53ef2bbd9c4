"""Kernels of kind ``image:``: the user's own bzImage, with or without its modules."""

import hashlib
import os
import re
import shutil
from pathlib import Path

from agelab.base import fileio, readers
from agelab.base.errors import InputError, Notify, silent
from agelab.base.hashing import key_of
from agelab.kernel import elf, guest_needs, oldest
from agelab.kernel.deb_files import prune_modules
from agelab.kernel.stored_kernel import Kernel
from agelab.store.artefacts import Store, file_hash, require_unchanged

RECIPE = 1
"""Raised whenever the same files would be unpacked differently."""

_BUILTIN = "modules.builtin"
_MODULE_MARKERS = (_BUILTIN, "modules.order", "modules.dep", "kernel/fs", "kernel/drivers")
"""A directory with one of these is a directory of modules."""
_MODULE = re.compile(r".+\.ko(\.(gz|xz|zst))?")
_KERNEL_OPTION = "CONFIG_64BIT=y"
"""A line that only a kernel's configuration has, of all files called config."""
_SOURCE_LINKS = ("build", "source")
"""Links to the kernel's source, not followed."""
_USAGE = "image:<bzImage>, or image:<bzImage>,<its modules' directory, such as lib/modules/<release>>"


def resolve(paths: str, store: Store, *, refresh: bool = False, progress: Notify = silent) -> Kernel:
    """Return the kernel in a bzImage, with the modules of a directory (or of its subdirectory for the release).

    Its key depends on the content alone. Its configuration is the one in the image (CONFIG_IKCONFIG) or in a file
    beside it. Without a ``modules.builtin`` the configuration says which modules are built in; without either, none
    are assumed to be. Raises InputError for a file that is not a kernel, and for a kernel that cannot mount the
    guest's root.
    """
    spec = f"image:{paths}"
    words = paths.split(",")
    if len(words) > 2 or not all(words):
        raise InputError(f"kernel {spec!r}: it takes one path, or two", hint=_USAGE)
    path, *directories = map(Path, words)
    image = _read(spec, path)
    facts = elf.version(image)
    if not facts:
        raise InputError(f"kernel {spec!r}: {path} is not an x86 bzImage", hint="Linux makes it in arch/x86/boot/")
    if not elf.is_64_bit(image):
        raise InputError(f"kernel {spec!r}: {path} is a 32-bit kernel; guests are 64-bit")
    release, version = facts
    oldest.require(f"kernel {spec!r}", release)
    tree = _find_modules(spec, directories[0], release) if directories else None
    unpacked = elf.unpack(image)
    config = (elf.config(unpacked) if unpacked else None) or _find_config(path, tree, release)
    files = _module_files(tree) if tree else {}
    hashes = {name: file_hash(file) for name, file in files.items()}
    inputs = {
        "image": hashlib.sha256(image).hexdigest(),
        "modules": key_of(hashes) if tree else None,
        "config": hashlib.sha256(config.encode()).hexdigest() if config else None,
        "release": release,
        "version": version,
        "recipe": RECIPE,
    }

    def build(directory: Path) -> None:
        progress(f"unpacking the kernel {release}")
        (directory / "vmlinuz").write_bytes(image)
        if unpacked and elf.has_pvh_entry(unpacked):
            (directory / "vmlinux").write_bytes(unpacked)
        if config:
            (directory / "config").write_text(config, encoding="utf-8")
        copy = directory / "unpacked"
        for name, file in files.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy / name)
            require_unchanged(copy / name, hashes[name])
        if _BUILTIN not in files:
            copy.mkdir(exist_ok=True)
            (copy / _BUILTIN).write_text(guest_needs.builtin_list(config) if config else "", encoding="utf-8")
        prune_modules(copy, directory)
        shutil.rmtree(copy)
        _require_release(spec, directory / "modules", release)
        known = config is not None or _BUILTIN in files
        guest_needs.require_root_support(spec, release, directory, _hint(tree, known=known), known=known)

    readable_by = readers.of_files(path, *([tree, *files.values()] if tree else ()))
    artefact = store.obtain("kernel", inputs, build, readable_by=readable_by)
    return Kernel(spec, release, version, artefact=artefact)


def _read(spec: str, path: Path) -> bytes:
    try:
        return fileio.read_bytes(path, fileio.PROGRAM)
    except OSError as error:
        raise InputError(f"kernel {spec!r}: cannot read {str(path)!r}: {error.strerror}", hint=_USAGE) from error


def _find_modules(spec: str, directory: Path, release: str) -> Path:
    """Find the modules of a release: in ``directory`` or in its subdirectory for the release."""
    places = [directory / top / release for top in ("", "lib/modules", "usr/lib/modules")]
    for place in (*places, directory):
        if _holds_modules(place):
            return place
    if not directory.is_dir():
        raise InputError(f"kernel {spec!r}: no directory {str(directory)!r}", hint=_USAGE)
    there = sorted(path.name for path in directory.iterdir() if _holds_modules(path))
    raise InputError(
        f"kernel {spec!r}: {directory} holds no modules of {release}"
        + (f"; it holds those of {', '.join(there)}" if there else ""),
        hint=_USAGE,
    )


def _holds_modules(directory: Path) -> bool:
    return any((directory / mark).exists() for mark in _MODULE_MARKERS)


def _module_files(tree: Path) -> dict[str, Path]:
    """Map the path below ``tree`` of every module, and of ``modules.builtin``, to its file."""
    files: dict[str, Path] = {}
    for top, directories, names in os.walk(tree):
        directories[:] = sorted(set(directories) - set(_SOURCE_LINKS))
        for name in sorted(names):
            if name == _BUILTIN or _MODULE.fullmatch(name):
                files[str((Path(top) / name).relative_to(tree))] = Path(top) / name
    return files


def _find_config(path: Path, tree: Path | None, release: str) -> str | None:
    """Read the configuration from a file beside the image or its modules, or from the source tree it is in."""
    places = [path.with_name(name) for name in (f"config-{release}", "config", ".config")]
    if path.parent.name == "boot" and path.parent.parent.parent.name == "arch":
        places.append(path.parents[3] / ".config")
    if tree:
        places.append(tree / "config")
    texts = (fileio.read_text(place, errors="replace") for place in places if place.is_file())
    return next((text for text in texts if _KERNEL_OPTION in text), None)


def _require_release(spec: str, modules: Path, release: str) -> None:
    """Raise InputError when the modules were built for another release."""
    first = next(iter(sorted(modules.rglob("*.ko*"))), None)
    magic = dict(elf.strings(elf.load(first))).get("vermagic", "").split() if first else []
    if magic and magic[0] != release:
        raise InputError(f"kernel {spec!r}: the modules are of {magic[0]}, the image is {release}", hint=_USAGE)


def _hint(tree: Path | None, *, known: bool) -> str:
    """Return the advice for a kernel that lacks something: name more files, or build it with more options."""
    if tree is None:
        more = "build it with these options" if known else "put its config beside it"
        return f"name its modules' directory too, or {more}: {_USAGE}"
    return "build it with these options" + ("" if known else f", or put its {_BUILTIN} there")
