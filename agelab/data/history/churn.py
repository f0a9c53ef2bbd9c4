"""The cycles of scenario ``aging`` as operations: copy a tree, delete half of its files, again and again.

This follows the study of 2009 behind the scenario: at the end the disk is filled with more copies and a share of all
files is deleted. The shell commands of the scenario become one stream of operations, the same on every filesystem.
The study's disk had room for every copy; a longer history makes room by deleting the oldest files and the directories
that become empty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agelab.data.corpus.random_content import SeededRandom
from agelab.data.corpus.tree import TreeFile
from agelab.data.history.operations import HEADER, escape_path, whole_blocks

RECIPE = 1
"""Raise this when a change of this module changes a log."""


@dataclass(frozen=True)
class ChurnRequest:
    """How often to write and how full to keep the disk; sizes in bytes."""

    disk: int
    turns: int
    fullness: float
    """Share of the disk in whole blocks: a maximum in the turns, and met as closely as files allow by the final
    filling."""
    freed: float
    """Share of all files to delete at the end."""
    points: int
    """Number of points: the last is the log's end, the others follow equal numbers of turns; at most turns + 1."""


@dataclass
class _TreeCopy:
    """Remaining files and directories of one copy of the tree."""

    files: dict[bytes, int] = field(default_factory=dict)
    """Size in whole blocks by path."""
    directories: list[bytes] = field(default_factory=list)


def operations(tree: Sequence[TreeFile], asked: ChurnRequest, seed: int) -> Iterator[bytes]:
    """Yield the lines of the log, header included."""
    yield HEADER + b"\n"
    draws = SeededRandom(seed, "churn")
    room = int(asked.disk * asked.fullness)
    copies: dict[int, _TreeCopy] = {}
    used = point = 0
    needed = sum(whole_blocks(entry.size) for entry in tree)
    for turn in range(1, asked.turns + 1):
        while copies and used + needed > room:
            oldest = copies[next(iter(copies))]
            if oldest.files:
                path = next(iter(oldest.files))
                used -= oldest.files.pop(path)
                yield b"unlink %s\n" % path
            else:
                yield from (b"rmdir %s\n" % path for path in reversed(oldest.directories))
                del copies[next(iter(copies))]
        copy = copies[turn] = _TreeCopy()
        yield from _copy_tree(tree, b"copy-%d" % turn, needed, copy)
        for path in list(copy.files):
            if draws.below(2):
                del copy.files[path]
                yield b"unlink %s\n" % path
        used += sum(copy.files.values())
        while point < asked.points - 1 and turn * (asked.points - 1) >= asked.turns * (point + 1):
            point += 1
            yield b"point %d\n" % point
    yield b"mkdir fill\n"
    room, number = room - used, 0
    while True:
        fill = copies[-number - 1] = _TreeCopy()
        yield from _copy_tree(tree, b"fill/%d" % number, room, fill)
        if len(fill.files) < len(tree):
            break
        room -= needed
        number += 1
    for path in sorted(path for copy in copies.values() for path in copy.files):
        if draws.below(1000) < round(asked.freed * 1000):
            yield b"unlink %s\n" % path
    yield b"point %d\n" % asked.points


def _copy_tree(tree: Sequence[TreeFile], where: bytes, room: int, copy: _TreeCopy) -> Iterator[bytes]:
    """Yield operations that copy files while there is room; directories are made when first needed."""
    made: set[bytes] = set()
    for entry in tree:
        taken = whole_blocks(entry.size)
        room -= taken
        if room < 0:
            return
        directory = where
        *above, _ = entry.path.encode().split(b"/")
        for part in (b"", *above):
            directory += b"/" + escape_path(part) if part else b""
            if directory not in made:
                made.add(directory)
                copy.directories.append(directory)
                yield b"mkdir %s\n" % directory
        path = b"%s/%s" % (where, escape_path(entry.path.encode()))
        yield b"create %s\n" % path
        if entry.size:
            yield b"write %s 0 %d\n" % (path, entry.size)
        copy.files[path] = taken
