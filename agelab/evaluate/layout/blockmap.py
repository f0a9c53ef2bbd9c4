"""Block map: the shares of free space, contiguous and fragmented files, and metadata in each stretch of a disk."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from agelab.evaluate.layout import svg
from agelab.evaluate.layout.freespace.runs import Run, join_runs, subtract, total_bytes
from agelab.evaluate.layout.model import (
    DELALLOC,
    ENCODED,
    ENCRYPTED,
    INLINE,
    NOT_ALIGNED,
    TAIL,
    UNKNOWN,
    Extent,
    ExtentMap,
    FileMap,
    FreeSpace,
)

LONG_RUN_BYTES = 1 << 20
"""Bytes from which a run is long: reading it then takes a disk about as long as seeking to it."""
NO_OWN_BLOCK = INLINE | TAIL
"""Flags of an extent in a metadata block, or in a block shared with other files."""
Stretch = tuple[int, int]
"""First byte, and the byte after the last."""


class BlockKind(Enum):
    """Use of a byte of the disk, as a legend names it; a picture stacks them in this order, from bottom to top."""

    SHORT = f"fragmented files: their runs of less than {svg.human(LONG_RUN_BYTES)}"
    LONG = f"fragmented files: their runs of {svg.human(LONG_RUN_BYTES)} and more"
    WHOLE = "files in one run"
    OWN = "the filesystem's own, as its tool names it"
    UNKNOWN = "unknown: in use, but by no mapped file (directories, what no tool names)"
    UNMEASURED = "not measured"
    FREE = "free"


RANKS = (BlockKind.SHORT, BlockKind.LONG, BlockKind.WHOLE, BlockKind.OWN, BlockKind.FREE)
"""Claimable kinds, strongest claim first: a block shared by two files is fragmented if one of them is."""
Claim = tuple[int, int, int]
"""First byte, the byte after the last, and the index in RANKS."""


class FileCensus(NamedTuple):
    """Number of files in an extent map; a file with several hard links counts once."""

    files: int
    placed: int
    """Files with blocks, all of known place; the next two refer to these."""
    fragmented: int
    runs: int
    unplaced: int
    """Files with a block of unknown place; these are not drawn as files."""
    inside: int
    """Extents in blocks that are not the file's alone."""


@dataclass(frozen=True, slots=True)
class BlockMap:
    """Use of a disk, cell by cell from the first byte to the last."""

    size: int
    cell: int
    """Bytes of a cell; the last one may be shorter."""
    shares: dict[BlockKind, list[int]]
    """Bytes of each kind in each cell; kinds that could not be measured are missing."""
    census: FileCensus | None
    disputed: int
    """Bytes claimed more than once, not only by files; drawn as the first of RANKS."""
    outside: int
    """Bytes of runs beyond the end of the disk."""

    @property
    def count(self) -> int:
        return -(-self.size // self.cell)

    def totals(self) -> dict[BlockKind, int]:
        return {kind: sum(cells) for kind, cells in self.shares.items()}


def build_block_map(size: int, cell: int, extents: ExtentMap | None, free: FreeSpace | None) -> BlockMap:
    """Assign each byte of a disk to one kind and add them up in cells; None means not measured."""
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


def file_runs(file: FileMap, block_size: int) -> list[list[Stretch]] | None:
    """Return the stretches of each run of a file in file order, or None if a place is unknown.

    As filefrag (e2fsprogs 1.47) counts, an extent continues the run of the previous one if it follows it on the disk,
    or leaves exactly the space of the hole between them. Only such a hole gives a run several stretches.
    """
    if file.unmapped is not None:
        return None
    stretches: list[list[Stretch]] = []
    before: Extent | None = None
    for extent in file.extents:
        flags = extent.flags
        if flags & NO_OWN_BLOCK:
            continue
        # A compressed extent (ENCODED, and not ENCRYPTED) has the length of its uncompressed data.
        if flags & (UNKNOWN | DELALLOC) or (flags & ENCODED and not flags & ENCRYPTED):
            return None
        start, length = extent.physical, extent.length
        # With FIBMAP the last extent ends with the file, not with its block.
        end = start + (length if flags & NOT_ALIGNED else -(-length // block_size) * block_size)
        if before is None:
            stretches.append([(start, end)])
        elif start - before.physical == before.length:
            stretches[-1][-1] = (stretches[-1][-1][0], end)
        elif start - before.physical == extent.logical - before.logical:
            stretches[-1].append((start, end))
        else:
            stretches.append([(start, end)])
        before = extent
    return stretches


def _claim_files(extents: ExtentMap, claims: list[Claim]) -> FileCensus:
    """Add the claims of the files, and return their census."""
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
            rank = long if sum(end - start for start, end in run) >= LONG_RUN_BYTES else short
            claims += [(start, end, rank) for start, end in run]
        placed += bool(runs)
        fragmented += len(runs) > 1
        total += len(runs)
    return FileCensus(files, placed, fragmented, total, unplaced, inside)


class _Tally:
    """Adds up claims by cell, each byte once, for the strongest claim in RANKS."""

    def __init__(self, size: int, cell: int) -> None:
        self.size, self.cell = size, cell
        count = -(-size // cell)
        self.capacity = [cell] * count
        self.capacity[-1] = size - cell * (count - 1)
        self.held = [[0] * count for _ in RANKS]
        self.disputed = self.outside = 0

    def add(self, claims: list[Claim]) -> None:
        """Sort and add the claims; call this once."""
        claims.sort()
        # A group of claims that overlap, directly or through others; nearly always a single one.
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
        taken: tuple[Run, ...] = ()
        for rank, kind in enumerate(RANKS):
            claimed = join_runs((start, end - start) for start, end, other in group if other == rank)
            mine = subtract(claimed, taken)
            if kind in (BlockKind.OWN, BlockKind.FREE):
                self.disputed += total_bytes(claimed) - total_bytes(mine)
            for start, length in mine:
                self._spread(start, start + length, rank)
            taken = join_runs((*taken, *mine))

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
