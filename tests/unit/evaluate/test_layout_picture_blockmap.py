"""The kind of block that fills each cell of a disk, against small known maps and against painting block by block."""

import random

import pytest

from agelab.evaluate.layout.blockmap import LONG_RUN_BYTES, RANKS, BlockKind, BlockMap, build_block_map, file_runs
from agelab.evaluate.layout.model import NOT_ALIGNED, Extent, ExtentMap, FileMap, FreeSpace

BLOCK = 4096
KIB = 1024


def extent(block: int, blocks: int, flags: int = 0) -> Extent:
    return Extent(0, block * BLOCK, blocks * BLOCK, flags)


def file(inode: int, *extents: Extent, links: int = 1, unmapped: str | None = None) -> FileMap:
    return FileMap(f"file-{inode}", inode, 1, 1, links, extents, unmapped)


def extent_map(*files: FileMap) -> ExtentMap:
    return ExtentMap(BLOCK, "fiemap", files)


def free_space(*runs: tuple[int, int], own: tuple[tuple[int, int], ...] = ()) -> FreeSpace:
    def in_bytes(blocks: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple((start * BLOCK, length * BLOCK) for start, length in blocks)

    return FreeSpace(16 * BLOCK, in_bytes(runs), in_bytes(own))


def blocks(found: BlockMap) -> dict[BlockKind, list[float]]:
    return {kind: [held / BLOCK for held in cells] for kind, cells in found.shares.items()}


def test_a_small_disk_gives_the_cells_known_by_heart() -> None:
    files = extent_map(
        file(1, extent(2, 2)),
        # In two runs: blocks 4 and 5, and block 8.
        file(2, extent(4, 1), extent(5, 1), extent(8, 1)),
    )
    found = build_block_map(15 * BLOCK, 2 * BLOCK, files, free_space((9, 3), (13, 2), own=((0, 1),)))
    assert blocks(found) == {
        BlockKind.SHORT: [0, 0, 2, 0, 1, 0, 0, 0],
        BlockKind.LONG: [0] * 8,
        BlockKind.WHOLE: [0, 2, 0, 0, 0, 0, 0, 0],
        BlockKind.OWN: [1, 0, 0, 0, 0, 0, 0, 0],
        BlockKind.FREE: [0, 0, 0, 0, 1, 2, 1, 1],
        BlockKind.UNKNOWN: [1, 0, 0, 2, 0, 0, 1, 0],
    }
    assert found.census == (2, 2, 1, 3, 0, 0)
    assert (found.disputed, found.outside) == (0, 0)


def test_a_run_of_a_fragmented_file_is_long_from_a_mebibyte_on() -> None:
    run = LONG_RUN_BYTES // BLOCK
    files = extent_map(file(1, extent(0, run), extent(run + 1, run - 1), extent(3 * run, 1)))
    totals = build_block_map(4 * LONG_RUN_BYTES, 64 * KIB, files, None).totals()
    assert totals[BlockKind.LONG] == LONG_RUN_BYTES
    assert totals[BlockKind.SHORT] == LONG_RUN_BYTES
    assert totals[BlockKind.UNMEASURED] == 2 * LONG_RUN_BYTES


def test_extents_that_follow_each_other_on_the_disk_are_one_run() -> None:
    def runs(*extents: Extent) -> list[list[tuple[int, int]]] | None:
        found = file_runs(file(1, *extents), BLOCK)
        return found and [[(start // BLOCK, end // BLOCK) for start, end in run] for run in found]

    there, following, before = extent(10, 2), extent(12, 3), extent(5, 5)
    assert runs(there, following) == [[(10, 15)]]
    # Backwards is not after each other.
    assert runs(there, before) == [[(10, 12)], [(5, 10)]]
    assert runs() == []


def test_a_hole_that_kept_its_place_is_not_the_files_and_does_not_break_its_run() -> None:
    kept = (Extent(0, 8 * BLOCK, BLOCK, 0), Extent(4 * BLOCK, 12 * BLOCK, 2 * BLOCK, 0))
    found = build_block_map(16 * BLOCK, BLOCK, extent_map(file(1, *kept)), free_space((0, 8), (9, 3), (14, 2)))
    assert found.census == (1, 1, 0, 1, 0, 0)
    assert found.totals()[BlockKind.WHOLE] == 3 * BLOCK
    assert found.totals()[BlockKind.FREE] == 13 * BLOCK


def test_an_extent_takes_whole_blocks_unless_it_says_otherwise() -> None:
    ends_early, unaligned = Extent(0, 0, 512, 0), Extent(0, 8 * BLOCK, 512, NOT_ALIGNED)
    totals = build_block_map(16 * BLOCK, BLOCK, extent_map(file(1, ends_early), file(2, unaligned)), None).totals()
    assert totals[BlockKind.WHOLE] == BLOCK + 512


@pytest.mark.parametrize(
    ("flags", "kind", "drawn", "free", "census"),
    [
        *((flags, BlockKind.WHOLE, 0, 15, (1, 0, 0, 0, 1, 0)) for flags in (0x2, 0x6, 0x8)),  # not known
        *((flags, BlockKind.WHOLE, 1, 15, (1, 1, 0, 1, 0, 1)) for flags in (0x300, 0x500)),  # in others' blocks
        *((flags, BlockKind.SHORT, 2, 14, (1, 1, 1, 2, 0, 0)) for flags in (0x1, 0x88, 0x100, 0x800, 0x1000, 0x2000)),
    ],
)
def test_flags_say_whether_a_place_is_known_and_the_files_own(
    flags: int, kind: BlockKind, drawn: int, free: int, census: tuple[int, ...]
) -> None:
    files = extent_map(file(1, extent(0, 1), extent(9, 1, flags)))
    found = build_block_map(16 * BLOCK, BLOCK, files, free_space((1, 15)))
    totals = found.totals()
    assert (totals[kind], totals[BlockKind.FREE], found.census) == (drawn * BLOCK, free * BLOCK, census)
    assert totals[BlockKind.UNKNOWN] == (16 - drawn - free) * BLOCK


def test_a_byte_counts_once_however_many_claim_it() -> None:
    shared = extent(3, 2, 0x2000)
    files = extent_map(
        file(1, shared), file(2, extent(8, 1), shared), file(3, extent(12, 1), links=2), file(3, extent(12, 1), links=2)
    )
    found = build_block_map(16 * BLOCK, BLOCK, files, None)
    assert found.totals() == {
        BlockKind.SHORT: 3 * BLOCK,
        BlockKind.LONG: 0,
        BlockKind.WHOLE: BLOCK,
        BlockKind.UNMEASURED: 12 * BLOCK,
    }
    assert found.disputed == 0
    assert found.census == (3, 3, 1, 4, 0, 0)


def test_what_was_not_measured_is_neither_free_nor_used() -> None:
    files = extent_map(file(1, extent(0, 4)))
    free = free_space((8, 8))
    assert set(build_block_map(16 * BLOCK, BLOCK, None, None).totals().items()) == {(BlockKind.UNMEASURED, 16 * BLOCK)}
    assert build_block_map(16 * BLOCK, BLOCK, None, free).totals() == {
        BlockKind.FREE: 8 * BLOCK,
        BlockKind.UNMEASURED: 8 * BLOCK,
    }
    without_free = build_block_map(16 * BLOCK, BLOCK, files, None).totals()
    assert (without_free[BlockKind.WHOLE], without_free[BlockKind.UNMEASURED]) == (4 * BLOCK, 12 * BLOCK)
    assert not {BlockKind.FREE, BlockKind.UNKNOWN, BlockKind.OWN} & set(without_free)
    # A tool that names nothing as the filesystem's own does not say that there is nothing.
    assert BlockKind.OWN not in build_block_map(16 * BLOCK, BLOCK, files, free).totals()


def test_contradictions_and_what_lies_outside_are_counted() -> None:
    files = extent_map(file(1, extent(0, 4)), file(2, extent(14, 6)), file(3, extent(40, 1)))
    found = build_block_map(16 * BLOCK, BLOCK, files, free_space((3, 2), own=((2, 1),)))
    assert found.disputed == 2 * BLOCK
    assert found.outside == 5 * BLOCK
    assert found.totals()[BlockKind.WHOLE] == 6 * BLOCK
    assert found.totals()[BlockKind.FREE] == BLOCK
    assert found.totals()[BlockKind.OWN] == 0


@pytest.mark.parametrize(("size", "cell"), [(0, BLOCK), (BLOCK, 0), (-1, BLOCK)])
def test_a_disk_without_bytes_is_refused(size: int, cell: int) -> None:
    with pytest.raises(ValueError, match="cannot be drawn"):
        build_block_map(size, cell, None, None)


@pytest.mark.parametrize("seed", range(20))
def test_any_map_is_what_painting_block_by_block_gives(seed: int) -> None:
    draw = random.Random(seed)
    size, cell = draw.randint(50, 900), draw.choice([1, 3, 7, 64])

    def runs(most: int) -> list[tuple[int, int]]:
        return [(draw.randrange(size + 20), draw.randint(1, 30)) for _ in range(draw.randint(0, most))]

    files = [file(inode, *(extent(*run) for run in runs(4))) for inode in range(draw.randint(0, 30))]
    own, free = runs(4), runs(20)
    painted: list[BlockKind | None] = [None] * size
    claims: dict[BlockKind, list[tuple[int, int]]] = {BlockKind.FREE: free, BlockKind.OWN: own}
    for each in files:
        found = file_runs(each, BLOCK) or []
        stretches = [(start // BLOCK, (end - start) // BLOCK) for run in found for start, end in run]
        claims.setdefault(BlockKind.SHORT if len(found) > 1 else BlockKind.WHOLE, []).extend(stretches)
    for kind in reversed(RANKS):
        for start, length in claims.get(kind, []):
            for block in range(start, min(start + length, size)):
                painted[block] = kind
    result = build_block_map(size * BLOCK, cell * BLOCK, extent_map(*files), free_space(*free, own=tuple(own)))
    for kind in BlockKind:
        wanted = [
            sum(1 for block in painted[at : at + cell] if (block or BlockKind.UNKNOWN) is kind) * BLOCK
            for at in range(0, size, cell)
        ]
        assert result.shares.get(kind, [0] * len(wanted)) == wanted
    assert sum(result.totals().values()) == size * BLOCK
