"""Operations on runs of bytes, and the error of all parsers."""

from collections.abc import Iterable, Iterator

from agelab.errors import AgelabError
from agelab.layout.model import FreeSpace

Run = tuple[int, int]
"""Start and length in bytes."""


class UnexpectedOutput(AgelabError):
    """A tool's output is not as the parser expects."""

    def __init__(self, tool: str, line: int | None, what: str) -> None:
        where = f"line {line} of " if line else ""
        super().__init__(
            f"{where}{tool}'s output: {what}",
            hint="the free space is not measured; a newer version of the tool may print something else",
        )


def join_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the same bytes as disjoint runs, sorted; neighbours and overlaps are joined."""
    found: list[Run] = []
    for start, length in sorted(runs):
        if length <= 0:
            continue
        if found and start <= sum(found[-1]):
            first, have = found[-1]
            found[-1] = (first, max(have, start + length - first))
        else:
            found.append((start, length))
    return tuple(found)


def total_bytes(runs: Iterable[Run]) -> int:
    """Return the number of bytes."""
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
        for first, size in taken[next_taken:]:
            if first >= end:
                break
            if first > at:
                yield at, first - at
            at = max(at, first + size)
        if at < end:
            yield at, end - at


def overlap_bytes(one: Iterable[Run], other: Iterable[Run]) -> int:
    """Return the number of bytes that both cover."""
    mine = join_runs(one)
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
    tool: str, size: int, runs: Iterable[Run], metadata: Iterable[Run] = (), free: int | None = None
) -> FreeSpace:
    """Build FreeSpace after checking that runs lie within the filesystem and no free byte is metadata.

    ``free`` is the number of free bytes reported by the tool, if any. Raises Unreadable.
    """
    found, own = join_runs(runs), join_runs(metadata)
    for run in (*found[:1], *found[-1:], *own[:1], *own[-1:]):
        if run[0] < 0 or sum(run) > size:
            raise UnexpectedOutput(
                tool, None, f"bytes {run[0]} to {sum(run)} are not within the {size} there are"
            )
    if free is not None and total_bytes(found) != free:
        raise UnexpectedOutput(
            tool, None, f"its runs of free space have {total_bytes(found)} bytes, its total is {free}"
        )
    if both := overlap_bytes(found, own):
        raise UnexpectedOutput(tool, None, f"{both} bytes are called free and metadata")
    return FreeSpace(size, found, own)
