"""The pictures as they were looked at last.

``AGELAB_REGENERATE=1 pytest tests/golden/pictures`` writes them anew; look at what changed before you commit it.
"""

import os
from pathlib import Path

import pytest

from agelab.evaluate.layout import picture
from agelab.evaluate.layout.model import Extent, ExtentMap, FileMap, FreeSpace

HERE = Path(__file__).parent
BLOCK, SIZE = 4096, 24 << 20
OWN = ((0, 200 * BLOCK), (2048 * BLOCK, 64 * BLOCK))


def _disk(pieces: int) -> tuple[ExtentMap, FreeSpace]:
    """Forty files of 64 to 181 blocks, each in so many pieces that the files take turns to write."""
    files, lengths = [], [64 + 3 * number for number in range(40)]
    places: list[list[Extent]] = [[] for _ in lengths]
    at, free = 300, [(220 * BLOCK, 80 * BLOCK)]
    for turn in range(pieces):
        for number, length in enumerate(lengths):
            many = length // pieces
            places[number].append(Extent(turn * many * BLOCK, at * BLOCK, many * BLOCK, 0))
            at += many
            if number % 7 == 0 and pieces > 1:
                free.append((at * BLOCK, 6 * BLOCK))
                at += 6
            if at < 2048 <= at + 200:
                at = 2112
    for number, extents in enumerate(places):
        files.append(FileMap(f"file-{number}", 12 + number, lengths[number] * BLOCK, 0, 1, tuple(extents), None))
    free.append((at * BLOCK, SIZE - at * BLOCK))
    return ExtentMap(BLOCK, "fiemap", tuple(files)), FreeSpace(SIZE, tuple(free), OWN)


def _pictures() -> dict[str, str]:
    aged, control = _disk(4), _disk(1)
    return {
        "aged-and-control": picture.draw_disks(
            "Forty files", [picture.MappedDisk("aged", SIZE, *aged), picture.MappedDisk("control", SIZE, *control)]
        ),
        "no-free-space": picture.draw_disks("Forty files", [picture.MappedDisk("", SIZE, aged[0], None)]),
        "no-extents": picture.draw_disks("Forty files", [picture.MappedDisk("", SIZE, None, aged[1])]),
    }


@pytest.mark.parametrize("name", ["aged-and-control", "no-free-space", "no-extents"])
def test_the_picture_is_the_one_that_was_looked_at(name: str) -> None:
    document = _pictures()[name]
    kept = HERE / f"{name}.svg"
    if os.environ.get("AGELAB_REGENERATE"):
        kept.write_text(document, encoding="utf-8")
    assert document == kept.read_text(encoding="utf-8")
