"""The ELF image inside a bzImage."""

import lzma
import struct
import zlib

import pytest

from agelab.kernel import vmlinux

ELF = b"\x7fELF\x02" + bytes(range(256)) * 40


def bzimage(packed: bytes, *, magic: bytes = b"HdrS", version: int = 0x20F) -> bytes:
    """A bzImage of two setup sectors whose payload starts 100 bytes into the protected-mode code."""
    setup = bytearray(3 * 512)
    setup[0x1F1] = 2
    setup[0x202:0x206] = magic
    struct.pack_into("<H", setup, 0x206, version)
    struct.pack_into("<II", setup, 0x248, 100, len(packed))
    return bytes(setup) + bytes(100) + packed + bytes(333)


def gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


SIZE = struct.pack("<I", len(ELF))


@pytest.mark.parametrize("packed", [lzma.compress(ELF) + SIZE, gzip(ELF)], ids=["xz", "gzip"])
def test_the_image_is_unpacked(packed: bytes) -> None:
    assert vmlinux.unpack(bzimage(packed)) == ELF


@pytest.mark.parametrize(
    "image",
    [
        bzimage(lzma.compress(b"no ELF image") + SIZE),
        bzimage(lzma.compress(ELF)[:40]),
        bzimage(b"\x02\x21\x4c\x18 lz4 is not for us"),
        bzimage(lzma.compress(ELF), magic=b"none"),
        bzimage(lzma.compress(ELF), version=0x207),
        bzimage(b""),
        b"",
    ],
    ids=["no-elf", "cut", "lz4", "no-magic", "too-old", "empty", "nothing"],
)
def test_anything_else_means_the_kernel_unpacks_itself(image: bytes) -> None:
    assert vmlinux.unpack(image) is None


def test_only_a_kernel_with_the_entry_point_is_booted_unpacked() -> None:
    assert vmlinux.bootable("CONFIG_X86=y\nCONFIG_PVH=y\n")
    assert not vmlinux.bootable("# CONFIG_PVH is not set\n")
