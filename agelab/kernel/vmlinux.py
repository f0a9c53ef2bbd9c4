"""Unpack the ELF image in a bzImage, and read release, configuration and banner from both.

A guest then need not unpack its own kernel: under TCG that takes four seconds of every boot.

Formats: Documentation/arch/x86/boot.rst of Linux
(the real-mode header); the payload is compressed and, except for gzip, followed by its unpacked size in
four bytes. ELF-64 Object File Format 1.5 (program headers, notes). kernel/configs.c (the embedded configuration).
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
    found, at = [], 0
    while at + _NOTE.size <= len(segment):
        name, content, kind = _NOTE.unpack_from(segment, at)
        at += _NOTE.size
        found.append((segment[at : at + name], kind))
        at += -(-name // 4) * 4 + -(-content // 4) * 4
    return found


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
    found = _BANNER.search(elf)
    return found.group().decode(errors="replace") if found else None


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
