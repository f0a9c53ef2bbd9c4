"""Maps of a disk, as the guest's programs print them: a map, or an error that says where."""

import lzma
from collections.abc import Iterator
from contextlib import suppress

from agelab.base.errors import AgelabError
from agelab.evaluate.layout import extents, freespace, measures
from agelab.evaluate.layout.freespace import FORMATS
from tests.fuzz._files import PROJECT

LONGEST = 16384
EXTENTS = b"""agelab-extents 1 4096 fiemap
F 12 4096 8 1 a/b\\040c
E 0 40960 4096 0
F 13 8192 16 2 d
E 0 81920 4096 1
E 4096 122880 4096 1
F 14 10 0 1 e
N no room
"""


def one(data: bytes) -> None:
    """Parse it as an extent map and as the format that its first byte chooses; what a map says can be measured."""
    with suppress(AgelabError):
        measures.layout_measures(extents.parse_extents(data), "")
    kind = sorted(FORMATS)[data[0] % len(FORMATS) if data else 0]
    with suppress(AgelabError):
        measures.free_space_measures(freespace.parse(kind, data[1:]), "")


def seeds() -> Iterator[bytes]:
    """An extent map, and what each tool printed, or the beginning of it."""
    yield EXTENTS
    yield EXTENTS.replace(b"12 4096", b"9" * 5000 + b" 4096")
    for path in sorted((PROJECT / "tests" / "golden" / "free-space").iterdir()):
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        for number, kind in enumerate(sorted(FORMATS)):
            if path.name.startswith((kind[:3], kind)):
                yield bytes([number]) + content[:LONGEST]
