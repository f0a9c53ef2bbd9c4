"""Kernels of the user's own: images, modules and configurations, packed and not."""

import lzma
from collections.abc import Iterator
from contextlib import suppress

from agelab.base.errors import AgelabError
from agelab.kernel import elf, guest_needs, recipes
from tests.build.kernel_builder import bzimage, gzip, kernel, module
from tests.fuzz._files import directory

ELF = b"\x7fELF\x02"
CONFIG = 'CONFIG_64BIT=y\nCONFIG_EXT4_FS=m\n# CONFIG_XFS_FS is not set\nCONFIG_CC_VERSION_TEXT="gcc"\n'


def one(data: bytes) -> None:
    """Read it as each of them."""
    if elf.version(data):
        elf.is_64_bit(data)
        image = elf.unpack(data)
        if image:
            elf.has_pvh_entry(image)
    if data.startswith(ELF):
        elf.has_pvh_entry(data)
    elf.config(data)
    elf.banner(data)
    text = data.decode("utf-8", "replace")
    recipes.options(text)
    guest_needs.builtin_list(text)
    for suffix in ("ko", "ko.xz", "ko.gz"):
        path = directory() / f"a-b.{suffix}"
        path.write_bytes(data)
        with suppress(AgelabError):
            elf.read_module(path, "modules/a.ko")


def seeds() -> Iterator[bytes]:
    """A kernel in each packing, one unpacked, a module and a configuration."""
    elf = kernel(CONFIG)
    yield from (elf, bzimage(gzip(elf)), bzimage(lzma.compress(elf)), CONFIG.encode())
    yield from (module(), gzip(module()), lzma.compress(module()))
