"""Atomic writes and removals, through files and directories named ``*.partial`` that are locked while in use.

The lock is on the file's or directory's own descriptor, so it ends with its holder, however that ends. One that nobody
holds was left by a process that is gone, and can be removed.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from agelab.base import fileio, process
from agelab.base.errors import HostError

SUFFIX = ".partial"
MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def temp_name(path: Path) -> Path:
    """Return a name beside ``path`` that no other process or thread uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{SUFFIX}")


def write(path: Path, data: bytes) -> None:
    """Write a file atomically and sync it: a reader sees the old content or all of the new."""
    while True:
        partial = temp_name(path)
        with partial.open("xb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not _is_same_file(partial, file.fileno()):
                    continue  # a clean-up removed it before it was locked
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                partial.rename(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        return


@contextmanager
def locked_directory(path: Path, mode: int = 0o777) -> Iterator[Path]:
    """Make an empty, locked directory whose name ends in SUFFIX, and remove it after the body unless it was renamed.

    Anything left under that name is removed first.
    """
    while True:
        discard(path)
        path.mkdir(mode, parents=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_same_file(path, descriptor):
                continue
            try:
                yield path
            finally:
                discard(path)
            return
        finally:
            os.close(descriptor)


@contextmanager
def temp_dir(parent: Path) -> Iterator[Path]:
    """Make a temporary directory below ``parent`` for this user alone, removed after the body."""
    with locked_directory(temp_name(parent / "agelab"), 0o700) as place:
        yield place


def remove(path: Path) -> None:
    """Remove a directory atomically: it is renamed first, so nobody sees part of it under its own name.

    Raises FileNotFoundError when it does not exist.
    """
    renamed = temp_name(path)
    path.rename(renamed)
    descriptor = os.open(renamed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        discard(renamed)
    finally:
        os.close(descriptor)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file that is never written to, or copy it where it cannot be linked: to another filesystem."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def try_lock(file: int | IO[Any]) -> bool:
    """Lock an open file or directory for this process alone; return False where another has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_abandoned(path: Path) -> bool:
    """Return True when no process holds the lock of a partial file or directory."""
    with _locked(path) as free:
        return free


def remove_abandoned(path: Path) -> bool:
    """Remove a partial file or directory that no process holds. Returns True when it is gone."""
    with _locked(path) as free:
        if free:
            discard(path)
        return free and not os.path.lexists(path)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Try to lock ``path`` for the body. Yields True when that worked and the name still belongs to it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        yield try_lock(descriptor) and _is_same_file(path, descriptor)
    finally:
        os.close(descriptor)


def _is_same_file(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    return False


def discard(path: Path) -> None:
    """Remove a file or directory if it exists. Filesystems mounted in it are unmounted first, never emptied.

    Raises HostError when one stays mounted.
    """
    for place in mounts(path):
        try:
            process.run(["umount", "--", str(place)])
        except process.ProcessFailed as error:
            raise HostError(f"{path} cannot be removed: {place} is mounted in it", hint=f"umount {place}") from error
    if path.is_dir() and not path.is_symlink():
        with suppress(RecursionError):  # of a tree that is deeper than Python's calls
            shutil.rmtree(path, ignore_errors=True)
        if path.exists():  # mmdebstrap's tree has files of this user's other ids
            apart = process.namespaces() if os.geteuid() else ()
            process.run([*apart, "rm", "-rf", "--", str(path)], ok=range(256))
    else:
        path.unlink(missing_ok=True)


def mounts(below: Path) -> list[Path]:
    """List the mount points below a directory, the last mounted first (proc(5), mountinfo, field 5)."""
    lines = fileio.read_bytes(MOUNTS).split(b"\n")[:-1]
    named = (_ESCAPED.sub(lambda match: bytes((int(match[1], 8),)), line.split(b" ")[4]) for line in lines)
    return [Path(os.fsdecode(name)) for name in named if name.startswith(os.fsencode(below) + b"/")][::-1]
