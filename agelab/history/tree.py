"""From the changes of a version-controlled tree to operations: what a checkout of each version does to the files.

As git does it: a file that changed is removed and written anew under its name, a directory is made when its first file
comes and removed with its last (builtin/checkout.c and unpack-trees.c of git). The repository's own files are left out:
what is aged is the tree that people work in.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agelab.history.operations import HEADER, escape_path

RECIPE = 1
"""To be raised when a change of this module, or of git.py, changes a log."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of one version."""

    path: bytes
    size: int | None
    """Bytes that it has now; None: it is gone."""


Version = tuple[FileChange, ...]
"""What one version changes. A file that was renamed is gone under the one name and there under the other."""


def operations(versions: Iterable[Version], points: Sequence[int]) -> Iterator[bytes]:
    """The lines of the log, header and all.

    ``points``: bytes written after which, at the end of the version that reaches them, a point comes; the last one
    comes at the end of the log.
    """
    yield HEADER + b"\n"
    there: set[bytes] = set()
    entries: Counter[bytes] = Counter()
    """How many files and directories a directory holds."""
    written, number = 0, 0
    for version in versions:
        # What goes makes room for a directory of its name, and the other way round.
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
    """Make the directories that a new file needs."""
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
    """Remove the directories that a file has left empty."""
    while directory := path.rpartition(b"/")[0]:
        entries[directory] -= 1
        if entries[directory]:
            return
        del entries[directory]
        yield b"rmdir %s\n" % escape_path(directory)
        path = directory
