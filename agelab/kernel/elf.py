"""Kernels and modules as files: the ELF image in a bzImage, and what images and modules say of themselves.

A guest need not unpack its own kernel then: under TCG that takes four seconds of every boot.

Formats: ELF-64 Object File Format 1.5. A module's ``.modinfo`` section holds ``key=value`` strings, each ended by NUL
(include/linux/moduleparam.h of Linux). Of a bzImage Documentation/arch/x86/boot.rst of Linux has the real-mode header;
the payload is compressed and, except for gzip, followed by its unpacked size in four bytes. kernel/configs.c has the
embedded configuration.
"""

import lzma
import re
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Protocol

from agelab.base import atomic, confine, fileio, process
from agelab.base.errors import HostError
from agelab.base.types import Frozen

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SIGNATURE = struct.Struct(">5B3xI")
_SIGNED = b"~Module signature appended~\n"


class ModuleInfo(Frozen):
    """One module: where it is and what must be there before it is inserted."""

    name: str
    path: str
    depends: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Soft dependencies (``pre:``): module names or aliases, none of them an error when absent."""
    aliases: tuple[str, ...] = ()
    """The plain ones, such as ``crc32c``; patterns that match devices are left out."""


def canonical_name(name: str) -> str:
    """A module's name as the kernel has it: its file may be named with ``-`` for ``_``."""
    return name.replace("-", "_")


def load(path: Path) -> bytes:
    """Return a module's ELF image, unpacked where it is kept as .ko.xz or .ko.gz. Raises as ``fileio`` does."""
    if path.suffix in (".xz", ".gz"):
        return b"".join(fileio.unpacked_pieces(path, fileio.PROGRAM))
    return fileio.read_bytes(path, fileio.PROGRAM)


def unsigned(image: bytes) -> bytes:
    """A module without the signature that a distribution appends (struct module_signature of Linux).

    Checking it takes a guest 50 ms for each module, and proves nothing here: the package's hash was checked.
    """
    if not image.endswith(_SIGNED):
        return image
    trailer = len(image) - len(_SIGNED) - _SIGNATURE.size
    *_, length = _SIGNATURE.unpack_from(image, trailer)
    return image[: trailer - length]


def strings(image: bytes) -> list[tuple[str, str]]:
    """The (key, value) pairs of the ``.modinfo`` section, in file order. Raises ValueError for what is no ELF64."""
    if image[:5] != b"\x7fELF\x02":
        raise ValueError("not an ELF64 file")
    header = _HEADER.unpack_from(image)
    table, width, count, names_at = header[6], header[11], header[12], header[13]
    sections = [_SECTION.unpack_from(image, table + width * number) for number in range(count)]
    names = sections[names_at][4]
    for name, _, _, _, offset, size, *_ in sections:
        start = names + name
        if image[start : image.index(b"\0", start)] == b".modinfo":
            texts = image[offset : offset + size].decode(errors="replace").split("\0")
            return [(key, value) for key, equals, value in (text.partition("=") for text in texts) if equals]
    return []


def read_module(path: Path, relative: str) -> ModuleInfo:
    """Return the facts of one module file; ``relative`` is where it is kept in its kernel's tree.

    Raises HostError for a file that is no module, or larger than fileio.PROGRAM.
    """
    try:
        pairs = strings(load(path))
    except (ValueError, OverflowError, struct.error, IndexError, fileio.RefusedFile) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise HostError(f"{path} is not a kernel module: {why}") from error
    depends = [name for key, value in pairs if key == "depends" for name in value.split(",") if name]
    before: list[str] = []
    for value in (value for key, value in pairs if key == "softdep"):
        before += _before(value)
    plain = [value for key, value in pairs if key == "alias" and not set(value) & set("*:?[")]
    return ModuleInfo(
        name=canonical_name(path.name.partition(".")[0]),
        path=relative,
        depends=tuple(map(canonical_name, depends)),
        before=tuple(before),
        aliases=tuple(plain),
    )


def _before(softdep: str) -> list[str]:
    """The names after ``pre:`` and before ``post:`` in a softdep such as ``pre: crc32c post: b``."""
    names: list[str] = []
    collecting = False
    for word in softdep.split():
        if word.endswith(":"):
            collecting = word == "pre:"
        elif collecting:
            names.append(word)
    return names


_MAGIC = b"HdrS"
_ELF = b"\x7fELF\x02"
_SEGMENT = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_NOTES = 4
_PVH = (b"Xen\0", 18)
"""XEN_ELFNOTE_PHYS32_ENTRY (include/xen/interface/elfnote.h): where QEMU enters an ELF kernel."""
_SETUP = 1024
"""Bytes of the smallest real-mode part."""
_64_BIT = 1
_CONFIG = b"IKCFG_ST"
# The image also contains the banner's format string, with no number after "#".
_BANNER = re.compile(rb"Linux version \d[^\0\n]*#\d[^\0\n]*")


def payload(image: bytes) -> bytes | None:
    """Return the compressed payload of a bzImage, or None if its header does not locate one."""
    if image[0x202:0x206] != _MAGIC or struct.unpack_from("<H", image, 0x206)[0] < 0x208:
        return None
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    return image[start : start + length]


def unpack(image: bytes) -> bytes | None:
    """Return the ELF vmlinux in a bzImage; None when it is damaged or its compression is unknown."""
    packed = payload(image)
    if not packed:
        return None
    try:
        if packed.startswith(b"\xfd7zXZ\0"):
            unpacked = _decompress(lzma.LZMADecompressor(), packed)
        elif packed.startswith(b"\x1f\x8b"):
            unpacked = _decompress(zlib.decompressobj(31), packed)
        elif packed.startswith(b"\x28\xb5\x2f\xfd"):
            unpacked = _decompress_zstd(packed[:-4])
        else:
            return None
    except (lzma.LZMAError, zlib.error, process.ProcessFailed):
        return None
    return unpacked if unpacked.startswith(_ELF) else None


def supports_pvh(config: str) -> bool:
    """Return True when QEMU can boot the ELF image of a kernel with that configuration (PVH entry)."""
    return "CONFIG_PVH=y" in config.splitlines()


def version(image: bytes) -> tuple[str, str] | None:
    """Return release and version (``uname -r`` and ``-v``) of a bzImage; None for any other file."""
    if image[0x202:0x206] != _MAGIC or len(image) < _SETUP:
        return None
    at = 0x200 + struct.unpack_from("<H", image, 0x20E)[0]
    release, _, rest = image[at : at + 512].partition(b"\0")[0].decode(errors="replace").partition(" ")
    return (release, rest[max(rest.find("#"), 0) :]) if release[:1].isdigit() else None


def is_64_bit(image: bytes) -> bool:
    """Return True when a bzImage has a 64-bit kernel; assumed before Linux 3.8, whose header does not tell."""
    (protocol,) = struct.unpack_from("<H", image, 0x206)
    return bool(protocol < 0x20C or struct.unpack_from("<H", image, 0x236)[0] & _64_BIT)


def has_pvh_entry(elf: bytes) -> bool:
    """Return True when QEMU can boot an ELF image, from its notes: for kernels of unknown configuration."""
    with suppress(struct.error, OverflowError):  # it is cut short, or no image
        table, (width, count) = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<HH", elf, 54)
        for number in range(count):
            kind, _, at, _, _, size, *_ = _SEGMENT.unpack_from(elf, table + width * number)
            if kind == _NOTES and _PVH in _notes(elf[at : at + size]):
                return True
    return False


def _notes(segment: bytes) -> list[tuple[bytes, int]]:
    """List owner and type of each note."""
    notes, at = [], 0
    while at + _NOTE.size <= len(segment):
        name, content, kind = _NOTE.unpack_from(segment, at)
        at += _NOTE.size
        notes.append((segment[at : at + name], kind))
        at += -(-name // 4) * 4 + -(-content // 4) * 4
    return notes


def config(elf: bytes) -> str | None:
    """Return the configuration in a kernel that was built with CONFIG_IKCONFIG, or None."""
    at = elf.find(_CONFIG)
    if at < 0:
        return None
    try:
        return _decompress(zlib.decompressobj(31), elf[at + len(_CONFIG) :], fileio.TEXT).decode() or None
    except (zlib.error, UnicodeDecodeError):
        return None


def banner(elf: bytes) -> str | None:
    """Return the first line that the kernel prints when it boots (release, compiler, version), or None."""
    match = _BANNER.search(elf)
    return match.group().decode(errors="replace") if match else None


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _decompress(decompressor: _Decompressor, packed: bytes, most: int | None = None) -> bytes:
    """Decompress a stream that other data may follow; empty when its end is not among so many bytes."""
    unpacked = decompressor.decompress(packed, most or fileio.PROGRAM)
    return unpacked if decompressor.eof else b""


def _decompress_zstd(packed: bytes) -> bytes:
    with atomic.temp_dir(Path(gettempdir())) as place:
        source, target = place / "packed", place / "unpacked"
        source.write_bytes(packed)
        limit = ["prlimit", f"--fsize={fileio.PROGRAM}"]
        confine.run([*limit, "zstd", "-dc", str(source)], read=[source], stdout=target)
        return fileio.read_bytes(target, fileio.PROGRAM)
