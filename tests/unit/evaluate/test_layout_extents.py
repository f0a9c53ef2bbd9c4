"""The extent mapper's text: what is read, and what is refused."""

import pytest

from agelab.base.errors import AgelabError
from agelab.evaluate.layout import extents
from agelab.evaluate.layout.model import Extent, ExtentMap, FileMap

HEADER = b"agelab-extents 1 4096 fiemap\n"
FILE = b"F 12 5000 8192 1 a/b\n"


def test_a_map_is_read_as_it_was_written() -> None:
    text = (
        HEADER + FILE + b"E 0 40960 4096 0\nE 8192 53248 4096 801\n"
        b"F 13 0 0 2 empty\nF 14 7 0 1 strange\\040\\134\\303\\244\\377\nN FIEMAP: Operation not supported\n"
    )
    assert extents.parse_extents(text) == ExtentMap(
        block_size=4096,
        method="fiemap",
        files=(
            FileMap("a/b", 12, 5000, 8192, 1, (Extent(0, 40960, 4096, 0), Extent(8192, 53248, 4096, 0x801))),
            FileMap("empty", 13, 0, 0, 2, ()),
            FileMap("strange \\ä\udcff", 14, 7, 0, 1, (), "FIEMAP: Operation not supported"),
        ),
    )


def test_a_filesystem_without_a_file_is_a_map() -> None:
    assert extents.parse_extents(b"agelab-extents 1 512 fibmap\n") == ExtentMap(512, "fibmap", ())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"", 1),
        (b"agelab-extents 2 4096 fiemap\n", 1),
        (b"agelab-extents 1 0 fiemap\n", 1),
        (b"agelab-extents 1 4096 guess\n", 1),
        (HEADER + FILE + b"E 0 4096 4096", 3),
        (HEADER + b"E 0 4096 4096 0\n", 2),
        (HEADER + b"N why\n", 2),
        (HEADER + FILE + b"\n", 3),
        (HEADER + FILE + b"E 0 4096 0 0\n", 3),
        (HEADER + FILE + b"E 0 4096 4096\n", 3),
        (HEADER + FILE + b"E 0 4096 4096 0x1\n", 3),
        (HEADER + FILE + b"E -1 4096 4096 0\n", 3),
        (HEADER + FILE + b"E 0 4096 8192 0\nE 4096 16384 4096 0\n", 4),
        (HEADER + FILE + b"E 8192 4096 4096 0\nE 0 16384 4096 0\n", 4),
        (HEADER + FILE + b"E 0 4096 4096 0\nN why\n", 4),
        (HEADER + FILE + b"N why\nE 0 4096 4096 0\n", 4),
        (HEADER + FILE + b"N why\nN why\n", 4),
        (HEADER + FILE + b"N \n", 3),
        (HEADER + FILE + b"E " + b"9" * 5000 + b" 4096 4096 0\n", 3),
        (b"agelab-extents 1 " + b"9" * 5000 + b" fiemap\n", 1),
        (HEADER + b"F 12 5000 8192 1 a b\n", 2),
        (HEADER + b"F 12 5000 8192 1 a\\09\n", 2),
        (HEADER + b"F 12 5000 8192 1 a\\b\n", 2),
        (HEADER + b"F 12 5000 8192 1 \xc3\xa4\n", 2),
        (HEADER + b"F 12 5000 8192 1 \n", 2),
        (HEADER + b"F 12 5000 8192 a\n", 2),
    ],
)
def test_anything_else_is_refused_with_its_line(text: bytes, line: int) -> None:
    with pytest.raises(AgelabError, match=rf"^extent map, line {line}: "):
        extents.parse_extents(text)
