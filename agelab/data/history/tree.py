"""Turn the versions of a source tree into operations, as a checkout of each version would.

As in git, a changed file is removed and written anew under its name; a directory is made with its first file and
removed with its last (builtin/checkout.c and unpack-trees.c of git). The repository's own files are left out: the
history ages the work tree.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agelab.data.history.operations import HEADER, escape_path

RECIPE = 1
"""Raise this when a change of this module, or of git.py, changes a log."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file of a version."""

    path: bytes
    size: int | None
    """New size in bytes; None if the file was removed."""


Version = tuple[FileChange, ...]
"""Changes of one version. A renamed file is removed under one name and added under the other."""


def operations(versions: Iterable[Version], points: Sequence[int]) -> Iterator[bytes]:
    """Yield the lines of the log, header included.

    ``points`` are numbers of bytes written; a point comes at the end of the version that reaches them, the last at
    the end of the log.
    """
    yield HEADER + b"\n"
    there: set[bytes] = set()
    entries: Counter[bytes] = Counter()
    """Number of files and directories in a directory."""
    written, number = 0, 0
    for version in versions:
        # Removals come first: a file may become a directory, and the other way round.
        for change in sorted(version, key=lambda change: (change.size is not None, change.path)):
            path = escape_path(change.path)
            if change.path in there:
                yield b"unlink %s\n" % path
            if change.size is None:
                if change.path in there:
                    there.remove(change.path)
                    yield from _remove_empty_directories(change.path, entries)
                continue
            if change.path not in there:
                there.add(change.path)
                yield from _make_directories(change.path, entries)
            yield b"create %s\n" % path
            if change.size:
                yield b"write %s 0 %d\n" % (path, change.size)
                written += change.size
        while number < len(points) - 1 and written >= points[number]:
            number += 1
            yield b"point %d\n" % number
    while number < len(points):
        number += 1
        yield b"point %d\n" % number


def _make_directories(path: bytes, entries: Counter[bytes]) -> Iterator[bytes]:
    """Yield operations that make the directories of a new file."""
    missing = []
    while directory := path.rpartition(b"/")[0]:
        entries[directory] += 1
        if entries[directory] > 1:
            break
        missing.append(directory)
        path = directory
    for directory in reversed(missing):
        yield b"mkdir %s\n" % escape_path(directory)


def _remove_empty_directories(path: bytes, entries: Counter[bytes]) -> Iterator[bytes]:
    """Yield operations that remove the directories that became empty."""
    while directory := path.rpartition(b"/")[0]:
        entries[directory] -= 1
        if entries[directory]:
            return
        del entries[directory]
        yield b"rmdir %s\n" % escape_path(directory)
        path = directory
