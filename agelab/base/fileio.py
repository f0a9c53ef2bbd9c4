"""Read files of any origin: regular files alone, up to a limit, text as UTF-8 whatever the locale says.

Whatever agelab takes into memory from a file it reads here. docs/reliability.md lists the limits.
"""

import errno
import fcntl
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

MIB = 1 << 20
FORM = MIB
"""Bytes of a file at most that a person fills in: a scenario, a drive, a control file, a study's table."""
TEXT = 16 * MIB
"""Bytes of any other text at most: a script, a kernel's configuration, a journal, the end of a log."""
RECORD = 64 * MIB
"""Bytes of a JSON object at most: a plan, a manifest, a cell's inputs."""
LINES = 512 * MIB
"""Bytes of a run's samples at most."""
PROGRAM = 512 * MIB
"""Bytes of a kernel, a module, an initramfs or a program at most, packed and unpacked."""
MAP = 1024 * MIB
"""Bytes of a disk's map at most, unpacked: as many as the results disk of a guest has."""
OPERATIONS = 16 * 1024 * MIB
"""Bytes of an operation log at most, which is read line by line."""

_CHUNK = MIB
_KINDS = {
    stat.S_IFDIR: "directory",
    stat.S_IFIFO: "pipe",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


class RefusedFile(OSError):
    """A file that is not read: not a regular one, larger than its limit, or packed data that is damaged."""


def link_text(path: Path) -> str:
    """Return what a symbolic link says, to the byte: Path.readlink leaves out dots and slashes that lead nowhere."""
    return os.readlink(path)  # noqa: PTH115


def opened(path: Path, most: int | None = None, *, link: bool = True) -> BufferedReader:
    """Open a regular file of at most so many bytes for reading; ``link``: also one that a link leads to.

    What was opened is what is looked at, and a pipe that nobody writes to is not waited for. Raises RefusedFile, and
    OSError as ``open`` does.
    """
    opener = _open_regular if link else _open_no_link
    file = open(path, "rb", opener=opener)  # noqa: SIM115 (Path.open takes no opener)
    if most is not None and os.fstat(file.fileno()).st_size > most:
        file.close()
        raise _too_large(path, most)
    return file


def _open_regular(path: str | os.PathLike[str], flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno not in (errno.ENXIO, errno.ENODEV):
            raise
        raise _not_regular(path, "socket, or a device that is not there") from error
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise _not_regular(path, _KINDS.get(kind, "special file"))
    return descriptor


def _open_no_link(path: str | os.PathLike[str], flags: int) -> int:
    try:
        return _open_regular(path, flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise _not_regular(path, "link") from error


def read_bytes(path: Path, most: int = RECORD, *, locked: bool = False, link: bool = True) -> bytes:
    """Return a regular file's content. Raises RefusedFile for more than ``most`` bytes, and as ``opened`` does.

    ``locked``: nobody who locks it changes it meanwhile, as far as its filesystem has locks.
    """
    pieces: list[bytes] = []
    left = most
    with opened(path, most, link=link) as file:
        if locked:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_SH)
        while piece := file.read(_CHUNK):
            left -= len(piece)
            if left < 0:
                raise _too_large(path, most)
            pieces.append(piece)
    return b"".join(pieces)


def read_text(path: Path, most: int = TEXT, errors: str = "strict") -> str:
    """Return a regular file's UTF-8 text. Raises UnicodeDecodeError for other text, and as ``read_bytes`` does."""
    text = read_bytes(path, most).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def tail(path: Path, most: int = TEXT) -> str:
    """Return the last ``most`` bytes of a log as text, with what is no UTF-8 replaced."""
    with opened(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - most))
        return file.read(most).decode("utf-8", "replace")


def unpacked_pieces(path: Path, most: int) -> Iterator[bytes]:
    """Yield the content of a file packed by gzip or, where it is called ``.xz``, by xz.

    Raises RefusedFile for a damaged one, and as ``read_bytes`` does.
    """
    left = most
    try:
        with opened(path) as file, _unpacking(path, file) as unpacked:
            while piece := unpacked.read(_CHUNK):
                left -= len(piece)
                if left < 0:
                    raise _too_large(path, most)
                yield piece
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise RefusedFile(errno.EBADMSG, f"it is damaged: {error}", str(path)) from error


def _unpacking(path: Path, file: BufferedReader) -> gzip.GzipFile | lzma.LZMAFile:
    return lzma.LZMAFile(file) if path.suffix == ".xz" else gzip.GzipFile(fileobj=file)


def _not_regular(path: str | os.PathLike[str], what: str) -> RefusedFile:
    message = f"it is a {what}, not a regular file; name a file that holds the content"
    return RefusedFile(errno.EINVAL, message, str(path))


def _too_large(path: Path, most: int) -> RefusedFile:
    return RefusedFile(
        errno.EFBIG,
        f"it has more than {most // MIB} MiB, the most that is read of such a file; is it the one that you mean?",
        str(path),
    )
