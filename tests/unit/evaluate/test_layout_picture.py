"""The picture of a disk: its bytes, its words, and that it shows what the map says."""

import random
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from agelab.evaluate.layout import picture, svg
from agelab.evaluate.layout.blockmap import BlockKind, build_block_map
from agelab.evaluate.layout.model import Extent, ExtentMap, FileMap, FreeSpace

BLOCK = 4096
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert('x')</script> & \"quoted\" \x00\x1b\ud800 ]]> \N{PILE OF POO}"


def draw_disk(title: str, size: int, extents: ExtentMap | None, free: FreeSpace | None) -> str:
    return picture.draw_disks(title, [picture.MappedDisk("", size, extents, free)])


def extents_of(*files: tuple[tuple[int, int], ...]) -> ExtentMap:
    """Files, each given as its extents in blocks."""
    return ExtentMap(
        BLOCK,
        "fiemap",
        tuple(
            FileMap(
                f"{inode}", inode, 1, 1, 1,
                tuple(Extent(0, start * BLOCK, many * BLOCK, 0) for start, many in one),
            )
            for inode, one in enumerate(files)
        ),
    )  # fmt: skip


def scattered(seed: int, blocks: int) -> tuple[ExtentMap, FreeSpace]:
    """A disk with something of everything in most of its cells."""
    draw = random.Random(seed)
    bounds = sorted(draw.sample(range(blocks), blocks // 8))
    runs = [(start, end - start) for start, end in pairwise(bounds)]
    kinds: list[list[tuple[int, int]]] = [[], [], [], [], []]
    for run in runs:
        kinds[draw.randrange(5)].append(run)
    single, pieces, free, own, _ = kinds
    files = [(run,) for run in single] + [tuple(pieces[at : at + 3]) for at in range(0, len(pieces), 3)]

    def in_bytes(found: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        return tuple((start * BLOCK, many * BLOCK) for start, many in found)

    return extents_of(*files), FreeSpace(blocks * BLOCK, in_bytes(free), in_bytes(own))


def words_of(document: str) -> str:
    return "\n".join(node.text or "" for node in ElementTree.fromstring(document).iter(f"{SVG}text"))


def painted(document: str, count: int) -> list[list[str]]:
    """The colours of each cell from its floor up, as the paths of a picture of one disk paint them."""
    cells = [[""] * picture.CELL_HEIGHT for _ in range(count)]
    paths = [(node.get("fill"), node.get("d") or "") for node in ElementTree.fromstring(document).iter(f"{SVG}path")]
    top = min(int(y) for _, path in paths for y in re.findall(r"M\d+ (\d+)", path) if path.endswith("z"))
    for fill, path in paths:
        if fill == "none" or fill is None:
            continue
        for figure in path.split("z")[:-1]:
            x = height = floor = 0
            for letter, numbers in re.findall(r"([MhvV])(-?\d+(?: \d+)?)", figure):
                if letter == "M":
                    x, floor = map(int, numbers.split())
                    height = 0
                elif letter == "v":
                    height -= int(numbers)
                elif letter == "h":
                    for at in range(x, x + int(numbers), picture.CELL_WIDTH):
                        row = (floor - picture.CELL_HEIGHT - top) // picture.ROW_PITCH
                        cell = row * picture.COLUMNS + (at - picture.LEFT) // picture.CELL_WIDTH
                        cells[cell][:height] = [fill] * height
                    x += int(numbers)
                else:
                    assert int(numbers) == floor
    return cells


@pytest.mark.parametrize("seed", range(3))
def test_each_cell_is_painted_with_its_shares(seed: int) -> None:
    blocks = 40_000
    extents, free = scattered(seed, blocks)
    document = draw_disk("scattered", blocks * BLOCK, extents, free)
    cell = picture.cell_bytes(blocks * BLOCK, picture.ROWS)
    found = build_block_map(blocks * BLOCK, cell, extents, free)
    cells = painted(document, found.count)
    assert all(all(column) for column in cells), "a part of a cell is not painted"
    for index, column in enumerate(cells):
        length = sum(held[index] for held in found.shares.values())
        for kind, held in found.shares.items():
            drawn = column.count(picture.FILL[kind]) / picture.CELL_HEIGHT
            assert drawn == pytest.approx(held[index] / length, abs=1 / picture.CELL_HEIGHT)
        order = [picture.FILL[kind] for kind in BlockKind]
        assert [order.index(fill) for fill in column] == sorted(order.index(fill) for fill in column)


def test_a_full_disk_is_one_outline_in_each_row_and_the_same_bytes_again() -> None:
    rows = 3
    blocks = picture.COLUMNS * rows
    extents = extents_of(((0, blocks),))
    document = draw_disk("full", blocks * BLOCK, extents, FreeSpace(blocks * BLOCK, ()))
    assert document == draw_disk("full", blocks * BLOCK, extents, FreeSpace(blocks * BLOCK, ()))
    [path] = re.findall(f'<path fill="{picture.FILL[BlockKind.WHOLE]}" d="([^"]*)"', document)
    assert re.fullmatch(r"(M76 \d+v-10h896V\d+z){3}", path)


def test_a_map_with_everything_everywhere_stays_small() -> None:
    blocks = 1 << 18
    document = draw_disk("worst", blocks * BLOCK, *scattered(1, blocks))
    assert len(document.encode()) < 300_000
    outlines = re.findall(r' d="([^"]*)"', document)
    assert len(outlines) > 4
    assert not re.search("[^MhvVz0-9 -]", "".join(outlines)), "not whole numbers only"


def test_a_hostile_title_stays_text() -> None:
    document = picture.draw_disks(
        HOSTILE, [picture.MappedDisk(HOSTILE, 1 << 20, None, None), picture.MappedDisk("", 1 << 20, None, None)]
    )
    root = ElementTree.fromstring(document.encode())
    assert root.find(f"{SVG}title") is not None
    assert not list(root.iter(f"{SVG}script"))
    assert "</title><script>alert('x')</script> & \"quoted\" ��� ]]>" in (root.findtext(f"{SVG}title") or "")
    assert root.get("role") == "img"
    assert root.find(f"{SVG}desc") is not None


def test_what_was_not_measured_is_hatched_and_said() -> None:
    size = 1 << 24
    extents, free = extents_of(((0, 10),)), FreeSpace(size, ((1 << 20, 1 << 20),))
    hatched = f'<path fill="{picture.HATCH}"'
    unknown = f'<path fill="{picture.FILL[BlockKind.UNKNOWN]}"'
    both = draw_disk("both", size, extents, free)
    assert hatched not in both and unknown in both
    assert "not named" in words_of(both)
    for document, said in (
        (draw_disk("no free space", size, extents, None), "Free space was not measured"),
        (draw_disk("no extents", size, None, free), "Where the files lie was not measured"),
        (draw_disk("nothing", size, None, None), "not measured: neither the free space nor where"),
    ):
        assert hatched in document and unknown not in document
        assert said in words_of(document)
    no_free = words_of(draw_disk("no free space", size, extents, None))
    assert "\nfree\nnot measured\n" in no_free and "\nfiles in one run\n40 KiB, 0.2 %" in no_free
    no_extents = words_of(draw_disk("no extents", size, None, free))
    assert "\nfiles in one run\nnot measured\n" in no_extents and "\nfree\n1 MiB, 6." in no_extents
    assert f'<path fill="{picture.FILL[BlockKind.FREE]}"' not in draw_disk("nothing", size, extents, None)


def test_doubts_are_said_below_the_map() -> None:
    size = 16 * BLOCK
    files = (
        FileMap("inline", 1, 1, 0, 1, (Extent(0, 0, 60, 0x300),)),
        FileMap("refused", 2, 1, 0, 1, (), "EOPNOTSUPP"),
        FileMap("far", 3, 1, 0, 1, (Extent(0, 15 * BLOCK, 2 * BLOCK, 0),)),
    )
    document = draw_disk("doubts", size, ExtentMap(BLOCK, "fiemap", files), FreeSpace(size, ((0, size),)))
    said = words_of(document)
    for words in (
        "not every place is known: 1.",
        "not a file's alone: 1.",
        "3 files, 1 of them with blocks of a known place, 0 of these (0.0 %) in more than one run; 1 runs",
        "4 KiB are claimed twice",
        "4 KiB lie beyond",
    ):
        assert words in said


def test_disks_of_one_picture_have_one_scale() -> None:
    small, large = 40 << 20, 80 << 20
    disks = [picture.MappedDisk("aged", large, None, None), picture.MappedDisk("control", small, None, None)]
    document = picture.draw_disks("two", disks)
    cell = picture.cell_bytes(large, picture.ROWS // 2)
    assert words_of(document).count("A cell is") == 1
    [first, second] = re.findall(f'<path fill="{re.escape(picture.HATCH)}" d="([^"]*)"', document)
    assert first.count("M") == -(-large // (cell * picture.COLUMNS))
    assert second.count("M") == -(-small // (cell * picture.COLUMNS))
    assert words_of(picture.draw_disks("five", disks[:1] * 5)).count("100.0 %") == 5
    for wrong in (0, 6):
        with pytest.raises(ValueError, match=f"1 to 5 disks, not {wrong}"):
            picture.draw_disks("none", disks[:1] * wrong)


@pytest.mark.parametrize("seed", range(50))
def test_the_percents_add_up_to_a_hundred(seed: int) -> None:
    draw = random.Random(seed)
    totals = {kind: draw.choice([0, 1, draw.randrange(1 << 40)]) for kind in BlockKind}
    totals[BlockKind.FREE] += 1
    tenths = [int(shown.removesuffix(" %").replace(".", "")) for shown in picture.percents(totals).values()]
    assert sum(tenths) == 1000
    for tenth, total in zip(tenths, totals.values(), strict=True):
        assert abs(tenth - 1000 * total / sum(totals.values())) < 1


@pytest.mark.parametrize("size", [1, 4096, 10**6, 31457280, 640 << 20, 10**9, 250059350016, 6 * 10**12])
def test_cells_are_whole_blocks_and_fill_most_of_the_rows(size: int) -> None:
    cell = picture.cell_bytes(size, picture.ROWS)
    rows = -(-size // (cell * picture.COLUMNS))
    assert cell % picture.SMALLEST_CELL == 0
    assert rows <= picture.ROWS
    # Of cells near the smallest, the next smaller round size is far away.
    assert rows >= picture.ROWS * 3 // 4 or cell <= 8 * picture.SMALLEST_CELL


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), (640 << 20, "640 MiB"),
        (250059350016, "232.9 GiB"), (1 << 70, "1048576 PiB"),
    ],
)  # fmt: skip
def test_bytes_are_shown_in_the_largest_unit(count: int, shown: str) -> None:
    assert svg.human(count) == shown


def test_the_places_of_rows_are_exact() -> None:
    assert svg.exact(1 << 30, svg.power(5 << 28)) == "1024 MiB"
    assert svg.exact(98304, svg.power(98304)) == "96 KiB"
    said = words_of(draw_disk("2 GiB", 2 << 30, None, None))
    assert "A cell is 320 KiB, a row 40 MiB" in said
    assert "1000 MiB" in said and "2000 MiB" in said
