"""The cycles of scenario ``aging`` as operations: a tree is copied in and half of its files deleted, again and again.

After the study of 2009 that the scenario follows; at the end the disk is filled with more copies and a part of all
files deleted. What the shell does there is one stream of operations here, the same on every filesystem.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agelab.corpus.draw import Draws
from agelab.corpus.tree import Entry
from agelab.history.operations import HEADER, escaped

BLOCK = 4096
"""Bytes that a file's last block takes whole: fullness counts them."""


@dataclass(frozen=True)
class Cycles:
    """How often, and how full; sizes in bytes."""

    disk: int
    turns: int
    fullness: float
    """Of the disk, after the filling."""
    freed: float
    """The share of all files that is deleted at the end."""


def operations(tree: Sequence[Entry], wanted: Cycles, seed: int) -> Iterator[bytes]:
    """The lines of the log, header and all, with a point after each turn and at the end."""
    yield HEADER + b"\n"
    draws = Draws(seed, "churn")
    there: dict[bytes, int] = {}
    for turn in range(1, wanted.turns + 1):
        copied = list(_copy(tree, b"copy-%d" % turn))
        yield from (line for lines, *_ in copied for line in lines)
        for _, path, size in copied:
            if path and draws.below(2):
                yield b"unlink %s\n" % path
            elif path:
                there[path] = size
        yield b"point %d\n" % turn
    room = int(wanted.disk * wanted.fullness)
    used, number = sum(map(_blocks, there.values())), 0
    yield b"mkdir fill\n"
    while tree:
        for lines, path, size in _copy(tree, b"fill/%d" % number):
            if used + _blocks(size) > room:
                break
            yield from lines
            if path:
                there[path] = size
                used += _blocks(size)
        else:
            number += 1
            continue
        break
    for path in sorted(there):
        if draws.below(1000) < round(wanted.freed * 1000):
            yield b"unlink %s\n" % path
    yield b"point %d\n" % (wanted.turns + 1)


def _copy(tree: Sequence[Entry], where: bytes) -> Iterator[tuple[list[bytes], bytes, int]]:
    """The lines that copy each file, its path in the log and its size; directories come when they are needed."""
    yield [b"mkdir %s\n" % where], b"", 0
    made: set[bytes] = set()
    for entry in tree:
        lines = []
        directory = b""
        *above, _ = entry.path.encode().split(b"/")
        for part in above:
            directory += b"/" + part
            if directory not in made:
                made.add(directory)
                lines.append(b"mkdir %s%s\n" % (where, escaped(directory)))
        path = b"%s/%s" % (where, escaped(entry.path.encode()))
        lines.append(b"create %s\n" % path)
        if entry.size:
            lines.append(b"write %s 0 %d\n" % (path, entry.size))
        yield lines, path, entry.size


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
