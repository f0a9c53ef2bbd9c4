"""Operations on runs of bytes, and the error of all parsers."""

from collections.abc import Collection, Iterable, Iterator

from agelab.evaluate.layout.model import FreeSpace

Run = tuple[int, int]
"""Start and length in bytes."""


class FormatError(ValueError):
    """A tool's output is not as its parser expects; ``line`` counts from 1."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.line = line


def numbered_lines(output: bytes) -> Iterator[tuple[int, str]]:
    """Return the lines of an output with their numbers."""
    return enumerate(output.decode(errors="replace").splitlines(), 1)


def require_fields(fields: Collection[str], needed: Iterable[str]) -> None:
    """Raise FormatError for the first name that is not among the fields."""
    for name in needed:
        if name not in fields:
            raise FormatError(f"there is no {name!r} in it")


def join_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the same bytes as disjoint runs, sorted; neighbours and overlaps are joined."""
    joined: list[Run] = []
    for start, length in sorted(runs):
        if length <= 0:
            continue
        if joined and start <= sum(joined[-1]):
            first, have = joined[-1]
            joined[-1] = (first, max(have, start + length - first))
        else:
            joined.append((start, length))
    return tuple(joined)


def total_bytes(runs: Iterable[Run]) -> int:
    return sum(length for _, length in runs)


def subtract(runs: Iterable[Run], taken: Iterable[Run]) -> tuple[Run, ...]:
    """Return the parts of ``runs`` outside ``taken``."""
    return tuple(_without(join_runs(runs), join_runs(taken)))


def _without(runs: tuple[Run, ...], taken: tuple[Run, ...]) -> Iterator[Run]:
    next_taken = 0
    for start, length in runs:
        at, end = start, start + length
        while next_taken < len(taken) and sum(taken[next_taken]) <= at:
            next_taken += 1
        overlapping = next_taken
        while overlapping < len(taken) and taken[overlapping][0] < end:
            first, size = taken[overlapping]
            if first > at:
                yield at, first - at
            at = max(at, first + size)
            overlapping += 1
        if at < end:
            yield at, end - at


def overlap_bytes(runs: Iterable[Run], other: Iterable[Run]) -> int:
    """Return the number of bytes that both cover."""
    mine = join_runs(runs)
    return total_bytes(mine) - total_bytes(subtract(mine, other))


def clear_bits(bitmap: bytes, count: int, *, high_first: bool = False) -> Iterator[Run]:
    """Yield runs of clear bits among the first ``count``, in bits; bit 0 of a byte is its lowest unless
    ``high_first``."""
    start, at = -1, 0
    for byte in bitmap[: -(-count // 8)]:
        width = min(8, count - at)
        if byte == 0 and width == 8:
            if start < 0:
                start = at
        elif byte == 0xFF:
            if start >= 0:
                yield start, at - start
                start = -1
        else:
            for bit in range(width):
                taken = byte >> (7 - bit if high_first else bit) & 1
                if taken and start >= 0:
                    yield start, at + bit - start
                    start = -1
                elif not taken and start < 0:
                    start = at + bit
        at += width
    if start >= 0:
        yield start, at - start


def to_bytes(runs: Iterable[Run], unit: int, offset: int = 0) -> Iterator[Run]:
    """Convert runs of blocks of ``unit`` bytes, the first of which lies at ``offset``, to runs of bytes."""
    for start, length in runs:
        yield offset + start * unit, length * unit


def build_free_space(
    size: int, runs: Iterable[Run], metadata: Iterable[Run], free: int | None = None, *, unit: int = 1
) -> FreeSpace:
    """Build FreeSpace after checking that runs lie within the filesystem and nothing free is metadata.

    All are in blocks of ``unit`` bytes; ``free`` is the amount reported by the tool, if any. Raises FormatError.
    """
    size *= unit
    free_runs, own = (join_runs(to_bytes(some, unit)) for some in (runs, metadata))
    for run in (*free_runs[:1], *free_runs[-1:], *own[:1], *own[-1:]):
        if run[0] < 0 or sum(run) > size:
            raise FormatError(f"bytes {run[0]} to {sum(run)} are not within the {size} there are")
    if free is not None and total_bytes(free_runs) != free * unit:
        raise FormatError(f"its runs of free space have {total_bytes(free_runs)} bytes, its total is {free * unit}")
    if both := overlap_bytes(free_runs, own):
        raise FormatError(f"{both} bytes are called free and metadata")
    return FreeSpace(size, free_runs, own)
