"""The ELF image inside a bzImage."""

import lzma
import struct

import pytest

from agelab.kernel import elf
from tests.build.kernel_builder import BANNER, ELF, RELEASE, bzimage, gzip, kernel

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


@pytest.mark.parametrize("image", [b"", bzimage(b"", magic=b"none"), bzimage(b"")[:600], ELF])
def test_a_bzimage_says_its_release_and_version_and_nothing_else_does(image: bytes) -> None:
    assert elf.version(bzimage(b"")) == (RELEASE, "#1 SMP today")
    assert elf.version(image) is None


def test_a_32_bit_kernel_is_told_from_one_too_old_to_say() -> None:
    assert elf.is_64_bit(bzimage(b""))
    assert not elf.is_64_bit(bzimage(b"", flags=0))
    assert elf.is_64_bit(bzimage(b"", flags=0, version=0x20A))


def test_a_kernel_says_where_it_is_entered_and_who_made_it() -> None:
    assert elf.supports_pvh("CONFIG_X86=y\nCONFIG_PVH=y\n")
    assert not elf.supports_pvh("# CONFIG_PVH is not set\n")
    assert elf.has_pvh_entry(kernel())
    assert not elf.has_pvh_entry(kernel(entry=False))
    assert not any(elf.has_pvh_entry(kernel()[:size]) for size in range(5, 144))
    assert elf.banner(kernel()) == f"{BANNER}1 SMP today"
    assert elf.banner(ELF) is None


def test_a_configuration_may_be_in_the_kernel() -> None:
    assert elf.config(kernel("CONFIG_X86=y\n")) == "CONFIG_X86=y\n"
    assert elf.config(kernel()) is None
    assert elf.config(kernel("CONFIG_X86=y\n")[:-20]) is None
