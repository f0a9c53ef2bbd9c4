"""Initramfs archives, byte for byte the same for the same content.

Format: "newc" cpio (Documentation/driver-api/early-userspace/buffer-format.rst of Linux). The kernel takes
several archives one after another, so a cell's own archive is appended to its kernel's base for each boot.
"""

import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from agelab.kernel.modules import Module, Modules

BASE_MODULES = ("libnvdimm", "nd_btt", "nd_pmem", "nfit", "squashfs", "overlay")
"""What reaches the root: a squashfs on a memory-backed disk, under an overlay."""

_DIRECTORIES = ("bin", "dev", "lower", "proc", "root", "rw", "sys")
_BLOCK = 512
# One mount program for each stage of init (busybox's mount -a -T): device, where, type, options. The overlay's memory
# moves to where the harness finds it, limits it and unmounts it.
_MOUNTS = {
    "early": "dev /dev devtmpfs\nproc /proc proc\nsys /sys sysfs\n",
    "root": "tmpfs /rw tmpfs\n",
    "new": (
        "overlay /root overlay lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work\n"
        "tmpfs /root/run tmpfs mode=755\ndevpts /dev/pts devpts\ntmpfs /dev/shm tmpfs\n"
        "/rw /root/media none move\n/dev /root/dev none move\n/proc /root/proc none move\n/sys /root/sys none move\n"
    ),
}


@dataclass(frozen=True)
class Entry:
    """One path of an archive, owned by root, of time 0."""

    path: str
    data: bytes = b""
    mode: int = stat.S_IFREG | 0o644

    @classmethod
    def directory(cls, path: str) -> "Entry":
        return cls(path, b"", stat.S_IFDIR | 0o755)

    @classmethod
    def program(cls, path: str, data: bytes) -> "Entry":
        return cls(path, data, stat.S_IFREG | 0o755)


def pack(entries: Iterable[Entry]) -> bytes:
    """The archive of these entries, sorted, with the directories they need, padded to whole blocks."""
    by_path: dict[str, Entry] = {}
    for entry in entries:
        for parent in PurePosixPath(entry.path).parents:
            if str(parent) != ".":
                by_path.setdefault(str(parent), Entry.directory(str(parent)))
        by_path[entry.path] = entry
    archive = bytearray()
    # A parent sorts before what is in it: the kernel makes paths in the order of the archive.
    for number, path in enumerate(sorted(by_path), start=1):
        archive += _record(number, by_path[path])
    archive += _record(0, Entry("TRAILER!!!", mode=0))
    return bytes(archive) + bytes(-len(archive) % _BLOCK)


def _record(number: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (number, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    padded = header + bytes(-len(header) % 4)
    return padded + entry.data + bytes(-len(entry.data) % 4)


def base(modules: Modules, busybox: bytes, init: bytes) -> bytes:
    """The archive that every boot of a kernel starts with: busybox, init, the modules that reach the root."""
    return pack(
        [
            *(Entry.directory(name) for name in _DIRECTORIES),
            Entry.program("bin/busybox", busybox),
            Entry.program("init", init),
            *(Entry(f"mounts/{name}", table.encode()) for name, table in _MOUNTS.items()),
            *_inserted("base", modules.closure(BASE_MODULES)),
        ]
    )


def cell(
    modules: Modules,
    names: Sequence[str],
    files: Mapping[str, bytes],
    programs: Mapping[str, bytes] | None = None,
    extra: Mapping[str, bytes] | None = None,
) -> bytes:
    """The archive to append to a kernel's base for one boot: modules to insert, and the content of /agelab.

    The modules of ``names`` are inserted with their dependencies, without those that the base has inserted
    already; then those of ``extra``, which are none of the kernel's own: name to ELF image. ``files`` and
    ``programs`` (these executable) map paths below /agelab to content: the guest finds them in /run/agelab,
    and runs /run/agelab/start as its first process. Raises MissingModule.
    """
    there = {module.name for module in modules.closure(BASE_MODULES)}
    return pack(
        [
            *_inserted("cell", [module for module in modules.closure(names) if module.name not in there], extra or {}),
            *(Entry(f"agelab/{path}", data) for path, data in files.items()),
            *(Entry.program(f"agelab/{path}", data) for path, data in (programs or {}).items()),
        ]
    )


def _inserted(stage: str, modules: Sequence[Module], extra: Mapping[str, bytes] = MappingProxyType({})) -> list[Entry]:
    # The init program takes the mark to mean that the guest can do without.
    order = "".join(f"{module.name}.ko{' optional' if module.optional else ''}\n" for module in modules)
    order += "".join(f"{name}.ko\n" for name in extra)
    files = [Entry(f"modules/{stage}/{module.name}.ko", module.read()) for module in modules]
    files += [Entry(f"modules/{stage}/{name}.ko", image) for name, image in extra.items()]
    return [Entry(f"modules/{stage}.order", order.encode()), *files]
