"""Who may read a user's files: what is made of them is for nobody else, wherever it lies.

Readers are a mask for modes: 0o700 for the owner alone, and 0o070 and 0o007 where the group and others may read, too.
No mode enters a key or a content.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agelab.base import atomic
from agelab.base.errors import InputError

EVERYBODY = 0o777
_READ, _PASS = 0o4, 0o1


def of_files(*paths: Path) -> int:
    """Return who may read all of these files and directories, without what is in the directories.

    A file in a directory that others may not enter is not theirs to read, whatever its own mode.
    """
    mask = EVERYBODY
    for path in paths:
        real = path.resolve()
        for above in real.parents:
            mask &= _allowed(above.stat(), _PASS)
        mask &= _allowed_to_read(real.lstat())
    return mask


def of_tree(root: Path) -> int:
    """Return who may read a file, or a directory with everything in it."""
    mask = of_files(root)
    for path in _below(root.resolve()):
        mask &= _allowed_to_read(path.lstat())
    return mask


def of_made(*paths: Path) -> int:
    """Return who may read all of these, which agelab has made: what leads there is not asked for."""
    mask = EVERYBODY
    for path in paths:
        mask &= _allowed_to_read(path.stat())
    return mask


def restrict(path: Path, mask: int) -> None:
    """Take a file or directory from all who are not among the readers; nobody else passes through a directory."""
    status = path.lstat()
    before = stat.S_IMODE(status.st_mode)
    if not stat.S_ISLNK(status.st_mode) and before & EVERYBODY & ~mask:
        path.chmod(before & (mask | ~EVERYBODY))


def restrict_tree(root: Path, mask: int) -> None:
    """Do the same to a directory and everything in it."""
    for path in (root, *_below(root)):
        restrict(path, mask)


def new_file(path: Path, mask: int) -> None:
    """Make an empty file for these readers, where none may exist yet."""
    path.touch(0o666 & mask, exist_ok=False)


@contextmanager
def whole_file(path: Path, mask: int) -> Iterator[Path]:
    """Make a file for these readers, which takes the path when the body ends. Raises InputError if it cannot."""
    partial = atomic.temp_name(path)
    try:
        new_file(partial, mask)
        yield partial
        partial.rename(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


def _below(root: Path) -> Iterator[Path]:
    for directory, directories, names in os.walk(root):
        for name in (*directories, *names):
            yield Path(directory, name)


def _allowed_to_read(status: os.stat_result) -> int:
    if stat.S_ISLNK(status.st_mode):
        return EVERYBODY
    return _allowed(status, _READ | _PASS if stat.S_ISDIR(status.st_mode) else _READ)


def _allowed(status: os.stat_result, rights: int) -> int:
    """Return the mask of those who have these rights; of a group only where what is made has the same one."""
    others = status.st_mode & rights == rights
    group = status.st_mode >> 3 & rights == rights and (others or status.st_gid == os.getegid())
    return 0o700 | (0o070 if group else 0) | (0o007 if others else 0)
