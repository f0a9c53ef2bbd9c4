"""The measures of maps whose figures can be worked out by hand."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest

from agelab.evaluate.layout import measures
from agelab.evaluate.layout.model import Extent, ExtentMap, FileMap

BLOCK = 4096
UNKNOWN, DELALLOC, ENCODED, ENCRYPTED, NOT_ALIGNED = 0x2, 0x4, 0x8, 0x80, 0x100
INLINE, TAIL, UNWRITTEN, SHARED = 0x200, 0x400, 0x800, 0x2000
Blocks = tuple[int, int, int] | tuple[int, int, int, int]
"""First block in the file, first on the disk, how many, and flags."""


def file(path: str, *runs: Blocks, inode: int = 0, links: int = 1, unmapped: str | None = None) -> FileMap:
    extents = tuple(
        Extent(run[0] * BLOCK, run[1] * BLOCK, run[2] * BLOCK, run[3] if len(run) == 4 else 0) for run in runs
    )
    size = sum(extent.length for extent in extents)
    return FileMap(path, inode, size, size, links, extents, unmapped)


def measured(*files: FileMap, block: int = BLOCK) -> dict[str, float | int | str]:
    """Each metric's value, or why it has none."""
    found = measures.layout_measures(ExtentMap(block, "fiemap", files))
    assert [measure.metric for measure in found] == list(measures.METRICS)
    for measure in found:
        assert (measure.value is None) == (measure.not_measured is not None)
    return {one.metric: one.not_measured if one.value is None else one.value for one in found}  # type: ignore[misc]


def test_files_by_turns_are_as_fragmented_as_can_be() -> None:
    # Two files of eight blocks, their blocks by turns; a third that is whole, behind them.
    left = file("a", *((i, 100 + 2 * i, 1) for i in range(8)))
    right = file("b", *((i, 101 + 2 * i, 1) for i in range(8)))
    whole = file("c", (0, 116, 4))
    assert measured(left, right, whole) == {
        "files": 3,
        "unmapped_files": 0,
        "extents": 17,
        "tails": 0,
        "extents_per_file": 5.666667,
        "fragmented_files": 0.666667,
        "layout_score": 0.176471,  # 3 of 7 + 7 + 3 blocks
        "extent_length_p10": 4096,
        "extent_length_p50": 4096,
        "extent_length_p90": 4096,
        "extent_length_mean": 4818.823529,  # 20 blocks in 17 extents
        "locality_score": 0.5,
        "locality_distance": 7 * 4096,  # 14 blocks back, and none
    }


@pytest.mark.parametrize(
    ("runs", "extents", "share"),
    [
        ([(0, 1000, 32768), (32768, 33768, 32768)], 1, 1),  # as ext4 has a large file: none is longer than 128 MiB
        ([(0, 10, 1), (5, 15, 1)], 1, 1),  # the hole has its place on the disk
        ([(0, 10, 1), (5, 11, 1)], 1, 1),  # the hole has none
        ([(0, 10, 1), (1, 0, 9, UNWRITTEN | UNKNOWN), (10, 11, 1)], 1, 1),  # reserved, without a place
        ([(0, 10, 1), (5, 14, 1)], 2, 0),
        ([(0, 10, 1), (5, 9, 1)], 2, 0),
        ([(0, 12, 1), (1, 11, 1), (2, 10, 1)], 3, 0),  # backwards
    ],
)
def test_what_lies_behind_the_block_before_is_no_fragment_and_a_hole_is_none(
    runs: list[Blocks], extents: int, share: int
) -> None:
    found = measured(file("a", *runs))
    assert (found["extents"], found["layout_score"], found["unmapped_files"]) == (extents, share, 0)


def test_files_of_one_block_have_no_score() -> None:
    found = measured(file("a", (0, 1, 1)), file("b", (0, 9, 1)), file("empty"))
    assert found["layout_score"] == "no mapped file has a second block"
    assert (found["extents"], found["extents_per_file"], found["fragmented_files"]) == (2, 1, 0)


def test_no_file_is_none_fragmented_and_none_whole() -> None:
    found = measured()
    assert (found["files"], found["extents"], found["tails"], found["unmapped_files"]) == (0, 0, 0, 0)
    assert {found[name] for name in ("layout_score", "fragmented_files", "extents_per_file")} == {
        "no mapped file has a block"
    }
    assert found["extent_length_p50"] == found["extent_length_mean"] == "no mapped file has a block"
    assert found["locality_score"] == "no two files with blocks follow each other in a directory"


def test_what_was_not_mapped_is_not_measured() -> None:
    found = measures.layout_measures(None, "no way exists")
    assert [one.metric for one in found] == list(measures.METRICS)
    assert {(one.value, one.not_measured) for one in found} == {(None, "no way exists")}


def test_where_no_file_could_be_mapped_the_numbers_of_files_alone_are_known() -> None:
    why = "FIEMAP: Operation not supported"
    found = measured(file("a", unmapped=why), file("b", unmapped=why))
    assert (found.pop("files"), found.pop("unmapped_files")) == (2, 2)
    assert set(found.values()) == {f"2 of 2 files could not be mapped ({why})"}


def test_a_total_is_of_all_files_or_none() -> None:
    found = measured(file("a", (0, 1, 2)), file("b", unmapped="open: Input/output error"), file("c", (0, 7, 1)))
    why = "1 of 3 files could not be mapped (open: Input/output error)"
    assert found["extents"] == found["tails"] == why
    assert (found["unmapped_files"], found["layout_score"], found["extents_per_file"]) == (1, 1, 1)
    # What lies between a and c is not known.
    assert found["locality_score"] == "no two files with blocks follow each other in a directory"


@pytest.mark.parametrize("flags", [TAIL | NOT_ALIGNED, INLINE | NOT_ALIGNED, INLINE | NOT_ALIGNED | ENCODED])
def test_a_tail_is_no_extent_no_hole_and_nothing_unknown(flags: int) -> None:
    found = measured(
        FileMap("small", 1, 100, 4096, 1, (Extent(0, 0, 100, flags),)),
        FileMap("large", 2, 8292, 12288, 1, (Extent(0, 81920, 8192, 0), Extent(8192, 0, 100, flags))),
    )
    assert (found["tails"], found["extents"], found["unmapped_files"]) == (2, 1, 0)
    assert (found["extents_per_file"], found["fragmented_files"], found["layout_score"]) == (1, 0, 1)


@pytest.mark.parametrize(
    ("flags", "known"),
    [
        (UNKNOWN, False), (UNKNOWN | DELALLOC, False), (UNKNOWN | DELALLOC | UNWRITTEN, False),
        (ENCODED, False), (ENCODED | ENCRYPTED, True), (UNWRITTEN, True), (SHARED, True), (1, True),
    ],
)  # fmt: skip
def test_flags_decide_whether_a_place_is_known(flags: int, known: bool) -> None:
    found = measured(file("a", (0, 10, 1), (1, 0, 1, flags)))
    assert found["unmapped_files"] == (not known)
    assert (found["extents"] == 2) == known


@pytest.mark.parametrize("written, blocks", [(BLOCK + 479, 2), (479, 1), (479, 3)])
def test_a_block_that_is_written_in_part_is_one_block(written: int, blocks: int) -> None:
    whole = Extent(0, 10 * BLOCK, blocks * BLOCK, 0)
    rest = Extent(written, 10 * BLOCK + written, blocks * BLOCK - written, UNWRITTEN)
    divided = FileMap("a", 0, written, 0, 1, (Extent(0, 10 * BLOCK, written, 0), rest), None)
    other = file("b", (0, 20, 2))
    assert measured(divided, other) == measured(FileMap("a", 0, written, 0, 1, (whole,), None), other)


def test_a_file_of_several_names_is_measured_once() -> None:
    twice = (file("a", (0, 10, 2), inode=7, links=2), file("d/b", (0, 10, 2), inode=7, links=2))
    assert measured(*twice) == measured(twice[0])
    assert measured(*twice)["files"] == 1


def test_locality_is_within_a_directory_and_passes_over_files_without_blocks() -> None:
    found = measured(
        file("a", (0, 10, 2)), file("d/x", (0, 50, 1)), file("empty"), file("d/y", (0, 51, 1)),
        file("b", (0, 12, 1)), file("c", (0, 23, 1)),
    )  # fmt: skip
    # x to y and a to b are 0 blocks, b to c are 10
    assert (found["locality_score"], found["locality_distance"]) == (0.666667, 0)
    found = measured(file("a", (0, 100, 1)), file("b", (0, 91, 1)), file("c", (0, 95, 1)))
    assert found["locality_distance"] == (10 + 3) * BLOCK // 2  # without a sign, in the middle of two


def test_a_short_last_sector_ends_with_its_block() -> None:
    # A cluster of 4096 bytes, asked for in sectors of 512.
    one = FileMap("a", 1, 5000, 8192, 1, (Extent(0, 33280, 5120, 0),))
    two = FileMap("b", 2, 100, 4096, 1, (Extent(0, 41472, 512, 0),))
    found = measured(one, two)
    assert (found["locality_score"], found["layout_score"], found["extent_length_mean"]) == (1, 1, 6144)


def test_percentiles_are_lengths_that_occur() -> None:
    files = [file(f"f{i}", (0, 1000 * i, i)) for i in range(1, 12)]
    found = measured(*files)
    lengths = (found["extent_length_p10"], found["extent_length_p50"], found["extent_length_p90"])
    assert lengths == (2 * BLOCK, 6 * BLOCK, 10 * BLOCK)
    assert found["extent_length_mean"] == 6 * BLOCK


def by_blocks(files: Iterable[FileMap]) -> tuple[int, Fraction]:
    """Extents and layout score, one block after the other, of files without holes."""
    extents = followers = following = 0
    for one in files:
        places = [e.physical + i for e in one.extents for i in range(0, e.length, BLOCK)]
        extents += 1
        for before, after in pairwise(places):
            followers += 1
            following += after == before + BLOCK
            extents += after != before + BLOCK
    return extents, Fraction(following, followers)


@pytest.mark.parametrize("seed", range(20))
def test_extents_and_score_are_those_of_counting_block_by_block(seed: int) -> None:
    random = Random(seed)
    files = []
    for number in range(random.randint(1, 30)):
        logical, runs = 0, []
        for _ in range(random.randint(1, 9)):
            length = random.randint(1, 5)
            runs.append((logical, random.randint(0, 12) * 3, length))
            logical += length
        files.append(file(f"f{number}", *runs, (logical, 999, 2)))
    extents, share = by_blocks(files)
    found = measured(*files)
    assert (found["extents"], found["layout_score"]) == (extents, float(round(share, 6)))
