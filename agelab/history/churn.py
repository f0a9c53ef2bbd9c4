"""The cycles of scenario ``aging`` as operations: a tree is copied in and half of its files deleted, again and again.

After the study of 2009 that the scenario follows; at the end the disk is filled with more copies and a part of all
files deleted. What the shell does there is one stream of operations here, the same on every filesystem. The study's
disk had room for every copy; a history that goes on longer makes room: the oldest files go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agelab.corpus.draw import Draws
from agelab.corpus.tree import Entry
from agelab.history.operations import BLOCK, HEADER, escaped

RECIPE = 1
"""To be raised when a change of this module changes a log."""


@dataclass(frozen=True)
class Cycles:
    """How often, and how full; sizes in bytes."""

    disk: int
    turns: int
    fullness: float
    """Of the disk, in whole blocks: at most so in the turns, as nearly as a file fits after the filling."""
    freed: float
    """The share of all files that is deleted at the end."""
    points: int
    """The last is the log's end, the others come after equal numbers of turns: at most one more than the turns."""


def operations(tree: Sequence[Entry], wanted: Cycles, seed: int) -> Iterator[bytes]:
    """The lines of the log, header and all."""
    yield HEADER + b"\n"
    draws = Draws(seed, "churn")
    room = int(wanted.disk * wanted.fullness)
    there: dict[bytes, int] = {}
    used = point = 0
    needed = sum(_blocks(entry.size) for entry in tree)
    for turn in range(1, wanted.turns + 1):
        while there and used + needed > room:
            path = next(iter(there))
            used -= there.pop(path)
            yield b"unlink %s\n" % path
        copied = []
        for lines, path, size in _copy(tree, b"copy-%d" % turn):
            yield from lines
            copied.append((path, size))
        for path, size in copied:
            if draws.below(2):
                yield b"unlink %s\n" % path
            else:
                there[path] = size
                used += size
        while point < wanted.points - 1 and turn * (wanted.points - 1) >= wanted.turns * (point + 1):
            point += 1
            yield b"point %d\n" % point
    yield b"mkdir fill\n"
    yield from _filled(tree, room - used, there)
    for path in sorted(there):
        if draws.below(1000) < round(wanted.freed * 1000):
            yield b"unlink %s\n" % path
    yield b"point %d\n" % wanted.points


def _filled(tree: Sequence[Entry], room: int, there: dict[bytes, int]) -> Iterator[bytes]:
    """Copies until one file finds no room."""
    number = 0
    while tree:
        for lines, path, size in _copy(tree, b"fill/%d" % number):
            room -= size
            if room < 0:
                return
            yield from lines
            there[path] = size
        number += 1


def _copy(tree: Sequence[Entry], where: bytes) -> Iterator[tuple[list[bytes], bytes, int]]:
    """The lines that copy each file, its path in the log and its blocks' bytes; directories when they are needed."""
    made: set[bytes] = set()
    for entry in tree:
        lines = []
        directory = where
        *above, _ = entry.path.encode().split(b"/")
        for part in (b"", *above):
            directory += b"/" + escaped(part) if part else b""
            if directory not in made:
                made.add(directory)
                lines.append(b"mkdir %s\n" % directory)
        path = b"%s/%s" % (where, escaped(entry.path.encode()))
        lines.append(b"create %s\n" % path)
        if entry.size:
            lines.append(b"write %s 0 %d\n" % (path, entry.size))
        yield lines, path, _blocks(entry.size)


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
