"""The ELF image inside a bzImage, so that a guest need not unpack its own kernel.

Under TCG the unpacking is four seconds of every boot. Format: Documentation/arch/x86/boot.rst of Linux
(the real-mode header); the payload is compressed and, except for gzip, followed by its unpacked size in
four bytes.
"""

import lzma
import struct
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from agelab import process

_MAGIC = b"HdrS"
_ELF = b"\x7fELF\x02"


def payload(image: bytes) -> bytes | None:
    """The compressed payload of a bzImage, or None when it is not one that says where it is."""
    if image[0x202:0x206] != _MAGIC or struct.unpack_from("<H", image, 0x206)[0] < 0x208:
        return None
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    return image[start : start + length]


def unpack(image: bytes) -> bytes | None:
    """The ELF vmlinux in a bzImage; None when it is damaged or compressed in a way that is not known here."""
    packed = payload(image)
    if not packed:
        return None
    try:
        if packed.startswith(b"\xfd7zXZ\0"):
            unpacked = _whole(lzma.LZMADecompressor(), packed)
        elif packed.startswith(b"\x1f\x8b"):
            unpacked = _whole(zlib.decompressobj(31), packed)
        elif packed.startswith(b"\x28\xb5\x2f\xfd"):
            unpacked = _zstd(packed[:-4])
        else:
            return None
    except (lzma.LZMAError, zlib.error, process.ProcessFailed):
        return None
    return unpacked if unpacked.startswith(_ELF) else None


def bootable(config: str) -> bool:
    """Whether a kernel of that configuration can be entered at its ELF image (QEMU needs the PVH entry)."""
    return "CONFIG_PVH=y" in config.splitlines()


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _whole(decompressor: _Decompressor, packed: bytes) -> bytes:
    """All of a stream that something else may follow; nothing when its end is missing."""
    unpacked = decompressor.decompress(packed)
    return unpacked if decompressor.eof else b""


def _zstd(packed: bytes) -> bytes:
    with TemporaryDirectory() as name:
        source, target = Path(name) / "packed", Path(name) / "unpacked"
        source.write_bytes(packed)
        process.run(["zstd", "-dc", str(source)], stdout=target)
        return target.read_bytes()
