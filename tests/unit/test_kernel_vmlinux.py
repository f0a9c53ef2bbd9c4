"""The ELF image inside a bzImage."""

import lzma
import struct
import zlib

import pytest

from agelab.kernel import elf

ELF = b"\x7fELF\x02" + bytes(range(256)) * 40


RELEASE = "6.6.0-own"
BANNER = f"Linux version {RELEASE} (me@here) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld (GNU Binutils) 2.40) #"


def kernel(config: str = "", *, entry: bool = True) -> bytes:
    """An ELF64 kernel with a banner, the note that QEMU looks for, and its configuration where one is given."""
    note = struct.pack("<III4sQ", 4, 8, 18 if entry else 17, b"Xen", 0)
    other = struct.pack("<III4sI", 4, 3, 256, b"Lin", 0)
    header = struct.pack("<16sHHIQQQIHHHHHH", ELF[:5], 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(other + note), 0, 4)
    text = f"{BANNER} SMP\0{BANNER}1 SMP today\n\0".encode()
    embedded = b"IKCFG_ST" + gzip(config.encode()) + b"IKCFG_ED" if config else b""
    return header + segment + other + note + text + embedded


def bzimage(packed: bytes, *, magic: bytes = b"HdrS", version: int = 0x20F, flags: int = 1) -> bytes:
    """A bzImage of two setup sectors whose payload starts 100 bytes into the protected-mode code."""
    setup = bytearray(3 * 512)
    said = f"{RELEASE} (me@here) #1 SMP today".encode()
    setup[0x300 : 0x300 + len(said)] = said
    struct.pack_into("<H", setup, 0x20E, 0x100)
    struct.pack_into("<H", setup, 0x236, flags)
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
    assert elf.unpack(bzimage(packed)) == ELF


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
    assert elf.unpack(image) is None


def test_only_a_kernel_with_the_entry_point_is_booted_unpacked() -> None:
    assert elf.supports_pvh("CONFIG_X86=y\nCONFIG_PVH=y\n")
    assert not elf.supports_pvh("# CONFIG_PVH is not set\n")


def test_a_bzimage_says_its_release_and_version() -> None:
    assert elf.version(bzimage(b"")) == (RELEASE, "#1 SMP today")


@pytest.mark.parametrize("image", [b"", bzimage(b"", magic=b"none"), bzimage(b"")[:600], ELF])
def test_what_is_no_bzimage_says_nothing(image: bytes) -> None:
    assert elf.version(image) is None


def test_a_32_bit_kernel_is_told_from_one_too_old_to_say() -> None:
    assert elf.is_64_bit(bzimage(b""))
    assert not elf.is_64_bit(bzimage(b"", flags=0))
    assert elf.is_64_bit(bzimage(b"", flags=0, version=0x20A))


def test_a_kernel_says_where_it_is_entered_and_who_made_it() -> None:
    assert elf.has_pvh_entry(kernel())
    assert not elf.has_pvh_entry(kernel(entry=False))
    assert not any(elf.has_pvh_entry(kernel()[:size]) for size in range(5, 144))
    assert elf.banner(kernel()) == f"{BANNER}1 SMP today"
    assert elf.banner(ELF) is None


def test_a_configuration_may_be_in_the_kernel() -> None:
    assert elf.config(kernel("CONFIG_X86=y\n")) == "CONFIG_X86=y\n"
    assert elf.config(kernel()) is None
    assert elf.config(kernel("CONFIG_X86=y\n")[:-20]) is None
