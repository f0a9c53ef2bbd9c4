"""What is not finished: files and directories whose names end in ``.partial``, locked by who is at work on them.

The lock is one of the file's or directory's own descriptor, so it ends with its holder, however that ends; what nobody
holds was left by somebody who is gone, and can be removed.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agelab import process
from agelab.errors import HostError

SUFFIX = ".partial"
MOUNTS = Path("/proc/self/mountinfo")


def temp_name(path: Path) -> Path:
    """A name beside ``path`` that no other process and no other thread takes."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{SUFFIX}")


def write(path: Path, data: bytes) -> None:
    """A whole file of these bytes, or the one that was there before. It is on the disk when this returns."""
    while True:
        partial = temp_name(path)
        with partial.open("xb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not _is(partial, file.fileno()):
                    continue  # somebody who tidies up was faster
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                partial.rename(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        return


@contextmanager
def directory(path: Path) -> Iterator[Path]:
    """An empty directory of that name, which must end as SUFFIX says; it goes when the body ends, if it is still there.

    What was left under that name goes first.
    """
    while True:
        discard(path)
        path.mkdir(parents=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is(path, descriptor):
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
    """A directory of its own below ``parent``, which goes when the body ends."""
    with directory(temp_name(parent / "agelab")) as place:
        yield place


def remove(path: Path) -> None:
    """Remove a whole directory: under its own name it is there as a whole, or not at all.

    Raises FileNotFoundError where it is not there.
    """
    going = temp_name(path)
    path.rename(going)
    descriptor = os.open(going, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        discard(going)
    finally:
        os.close(descriptor)


def is_abandoned(path: Path) -> bool:
    """Whether nobody is at work on it."""
    with _locked(path) as free:
        return free


def remove_abandoned(path: Path) -> bool:
    """Remove what nobody is at work on. Whether it has gone."""
    with _locked(path) as free:
        if free:
            discard(path)
        return free and not os.path.lexists(path)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether it could be locked, and still has that name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield _is(path, descriptor)
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _is(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    return False


def discard(path: Path) -> None:
    """Remove a file or a whole directory that may be there; what is mounted in it is unmounted, never emptied.

    Raises HostError where something in it stays mounted.
    """
    for place in mounts(path):
        try:
            process.run(["umount", "--", str(place)])
        except process.ProcessFailed as error:
            raise HostError(
                f"{path} cannot be removed: {place} is mounted in it", hint=f"umount {place}"
            ) from error
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def mounts(below: Path) -> list[Path]:
    """What is mounted below a directory, the last one first (proc(5), mountinfo, field 5)."""
    lines = MOUNTS.read_text().splitlines()
    named = (line.split()[4].encode().decode("unicode_escape") for line in lines)
    return [Path(name) for name in named if name.startswith(f"{below}/")][::-1]
