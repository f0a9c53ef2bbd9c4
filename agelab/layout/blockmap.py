"""What fills each stretch of a disk: the shares of free space, of files in one run or in several, and of the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from agelab.layout.model import Extent, ExtentMap, FileMap, FreeSpace

LONG_RUN_BYTES = 1 << 20
"""Bytes from which a run is long: about here a disk takes as long to read a run as to seek to it."""
# FIEMAP_EXTENT_* flags (Linux, filesystems/fiemap.rst). Without a place, or with a place but without a length there:
# that of a compressed extent (ENCODED, and not ENCRYPTED) is the length of its plain data.
UNKNOWN, DELALLOC, ENCODED, ENCRYPTED = 0x2, 0x4, 0x8, 0x80
NOT_ALIGNED = 0x100
NO_OWN_BLOCK = 0x200 | 0x400
"""DATA_INLINE and DATA_TAIL: in a block of the filesystem's own, or in one shared with other files."""
Run = tuple[int, int]
"""First byte, and the byte after the last."""


class BlockKind(Enum):
    """What a byte of the disk is taken for."""

    SHORT = "fragmented files, in short runs"
    LONG = "fragmented files, in long runs"
    WHOLE = "files in one run"
    OWN = "the filesystem's own"
    UNKNOWN = "unknown"
    UNMEASURED = "not measured"
    FREE = "free"


RANKS = (BlockKind.SHORT, BlockKind.LONG, BlockKind.WHOLE, BlockKind.OWN, BlockKind.FREE)
"""What can be claimed, the strongest claim first: a block that two files share is fragmented if one of them is."""
Claim = tuple[int, int, int]
"""First byte, the byte after the last, and the place in RANKS."""


class FileCensus(NamedTuple):
    """The files of an extent map, each counted once however many names it has."""

    files: int
    placed: int
    """Those that have blocks, all with a known place; the next two are of these."""
    fragmented: int
    runs: int
    unplaced: int
    """Those of which not every place is known; nothing of them is drawn as a file's."""
    inside: int
    """Extents in blocks that are not the file's alone."""


@dataclass(frozen=True, slots=True)
class BlockMap:
    """A disk, cell by cell from its first byte to its last."""

    size: int
    cell: int
    """Bytes of a cell; the last one may be shorter."""
    shares: dict[BlockKind, list[int]]
    """Bytes of each kind in each cell; a kind that could not be told is not in it."""
    census: FileCensus | None
    disputed: int
    """Bytes claimed more than once, not only by files: taken for the first of RANKS."""
    outside: int
    """Bytes of runs beyond the end of the disk."""

    @property
    def count(self) -> int:
        """How many cells there are."""
        return -(-self.size // self.cell)

    def totals(self) -> dict[BlockKind, int]:
        """Bytes of each kind on the whole disk."""
        return {kind: sum(cells) for kind, cells in self.shares.items()}


def build_block_map(size: int, cell: int, extents: ExtentMap | None, free: FreeSpace | None) -> BlockMap:
    """Take every byte of a disk for one kind, and add them up in cells; None is what was not measured."""
    if size <= 0 or cell <= 0:
        raise ValueError(f"a disk of {size} bytes cannot be drawn in cells of {cell}")
    claims: list[Claim] = []
    known: set[BlockKind] = set()
    census = None
    if extents is not None:
        census = _claim_files(extents, claims)
        known |= {BlockKind.SHORT, BlockKind.LONG, BlockKind.WHOLE}
    if free is not None:
        known.add(BlockKind.FREE)
        if free.metadata:
            known.add(BlockKind.OWN)
        for kind, runs in ((BlockKind.OWN, free.metadata), (BlockKind.FREE, free.runs)):
            rank = RANKS.index(kind)
            claims += [(start, start + length, rank) for start, length in runs if length > 0]
    tally = _Tally(size, cell)
    tally.add(claims)
    rest = tally.capacity
    for held in tally.held:
        rest = [left - here for left, here in zip(rest, held, strict=True)]
    shares = {kind: held for kind, held in zip(RANKS, tally.held, strict=True) if kind in known}
    shares[BlockKind.UNKNOWN if extents is not None and free is not None else BlockKind.UNMEASURED] = rest
    return BlockMap(size, cell, shares, census, tally.disputed, tally.outside)


def file_runs(file: FileMap, block_size: int) -> list[list[Run]] | None:
    """The stretches of each run of a file, in the order of the file; None where a place is not known.

    As filefrag (e2fsprogs 1.47) counts, an extent belongs to the run of the one before if it follows it on the disk,
    or leaves just the hole between them its place. Only such a hole makes a run of more than one stretch.
    """
    if file.unmapped is not None:
        return None
    found: list[list[Run]] = []
    before: Extent | None = None
    for extent in file.extents:
        flags = extent.flags
        if flags & NO_OWN_BLOCK:
            continue
        if flags & (UNKNOWN | DELALLOC) or (flags & ENCODED and not flags & ENCRYPTED):
            return None
        start, length = extent.physical, extent.length
        # Where blocks were asked for one by one, the last extent ends with the file and not with its block.
        end = start + (length if flags & NOT_ALIGNED else -(-length // block_size) * block_size)
        if before is None:
            found.append([(start, end)])
        elif start - before.physical == before.length:
            found[-1][-1] = (found[-1][-1][0], end)
        elif start - before.physical == extent.logical - before.logical:
            found[-1].append((start, end))
        else:
            found.append([(start, end)])
        before = extent
    return found


def _claim_files(extents: ExtentMap, claims: list[Claim]) -> FileCensus:
    """What the files claim, and their number."""
    short, long, whole = (RANKS.index(kind) for kind in (BlockKind.SHORT, BlockKind.LONG, BlockKind.WHOLE))
    linked: set[int] = set()
    files = placed = fragmented = total = unplaced = inside = 0
    for file in extents.files:
        if file.links > 1:
            if file.inode in linked:
                continue
            linked.add(file.inode)
        files += 1
        runs = file_runs(file, extents.block_size)
        if runs is None:
            unplaced += 1
            continue
        inside += sum(1 for extent in file.extents if extent.flags & NO_OWN_BLOCK)
        if len(runs) == 1:
            claims += [(start, end, whole) for start, end in runs[0]]
        for run in runs if len(runs) > 1 else ():
            rank = long if _length(run) >= LONG_RUN_BYTES else short
            claims += [(start, end, rank) for start, end in run]
        placed += bool(runs)
        fragmented += len(runs) > 1
        total += len(runs)
    return FileCensus(files, placed, fragmented, total, unplaced, inside)


class _Tally:
    """Claims on a disk, added up in its cells: each byte once, for the first of those who claim it in RANKS."""

    def __init__(self, size: int, cell: int) -> None:
        self.size, self.cell = size, cell
        count = -(-size // cell)
        self.capacity = [cell] * count
        self.capacity[-1] = size - cell * (count - 1)
        self.held = [[0] * count for _ in RANKS]
        self.disputed = self.outside = 0

    def add(self, claims: list[Claim]) -> None:
        """Add all claims there are, which are put in the order of the disk."""
        claims.sort()
        # Claims that overlap, directly or through others; nearly always a single one.
        group: list[Claim] = []
        reach = -1
        for claim in claims:
            if claim[0] >= reach:
                self._settle(group)
                group = [claim]
                reach = claim[1]
            else:
                group.append(claim)
                reach = max(reach, claim[1])
        self._settle(group)

    def _settle(self, group: list[Claim]) -> None:
        if len(group) == 1:
            self._spread(*group[0])
            return
        taken: list[Run] = []
        for rank, kind in enumerate(RANKS):
            claimed = _union([(start, end) for start, end, other in group if other == rank])
            mine = _difference(claimed, taken)
            if kind in (BlockKind.OWN, BlockKind.FREE):
                self.disputed += _length(claimed) - _length(mine)
            for start, end in mine:
                self._spread(start, end, rank)
            taken = _union(taken + mine)

    def _spread(self, start: int, end: int, rank: int) -> None:
        held, cell = self.held[rank], self.cell
        if end > self.size:
            self.outside += end - max(start, self.size)
            end = self.size
            if start >= end:
                return
        first, last = start // cell, (end - 1) // cell
        if first == last:
            held[first] += end - start
            return
        held[first] += (first + 1) * cell - start
        for whole in range(first + 1, last):
            held[whole] = cell
        held[last] += end - last * cell


def _length(runs: Sequence[Run]) -> int:
    return sum(end - start for start, end in runs)


def _union(runs: list[Run]) -> list[Run]:
    """The same bytes as disjoint runs in the order of the disk."""
    joined: list[Run] = []
    first = last = -1
    for start, end in sorted(runs):
        if end <= start:
            continue
        if start > last:
            if last > first:
                joined.append((first, last))
            first, last = start, end
        elif end > last:
            last = end
    if last > first:
        joined.append((first, last))
    return joined


def _difference(runs: list[Run], taken: list[Run]) -> list[Run]:
    """What of some runs is not in others; both disjoint and in order."""
    left: list[Run] = []
    at, many = 0, len(taken)
    for start, end in runs:
        while at < many and taken[at][1] <= start:
            at += 1
        following = at
        while following < many and taken[following][0] < end:
            first, last = taken[following]
            if first > start:
                left.append((start, first))
            start = last
            if last >= end:
                break
            following += 1
        at = following
        if start < end:
            left.append((start, end))
    return left
