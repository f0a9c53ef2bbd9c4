"""Who may read a user's files: what is made of them is for nobody else, wherever it lies.

Readers are a mask for modes: 0o700 for the owner alone, and 0o070 and 0o007 where the group and others may read, too.
No mode enters a key or a content.
"""

import errno
import fcntl
import gzip
import lzma
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from tempfile import gettempdir

from agelab.base.errors import InputError

ALLOWED = "letters and digits of any script, and / . _ - + @ = ~"
MAX_LABEL = 100
"""Characters of a user's name in the name of a file or directory of ours."""
_PLAIN = re.compile(r"[A-Za-z0-9/._+@=~-]")
_NOT_IN_LABEL = re.compile(r"[^A-Za-z0-9_-]+")


def misfit(path: Path) -> str:
    """Return the first character that some program would not take as it is; empty where there is none."""
    return next(
        (one for one in str(path) if not (_PLAIN.match(one) if one.isascii() else one.isprintable())), ""
    )


def require_plain(path: Path, what: str, hint: str) -> None:
    """Raise InputError for a path that some program would not take as it is."""
    if bad := misfit(path):
        raise InputError(
            f"{what} cannot be {str(path)!r}: QEMU and others would misread a path with {bad!r}",
            hint=f"{hint}; fit are {ALLOWED}",
        )


def plain_label(name: str) -> str:
    """Return the part of a user's name that a file or directory of ours may have in its own name."""
    return _NOT_IN_LABEL.sub("-", name).strip("-")[:MAX_LABEL] or "unnamed"


def temp_parent() -> Path:
    """Return the directory for temporary files that no store has room for. Raises InputError where TMPDIR is unfit."""
    path = Path(gettempdir())
    require_plain(path, "the directory for temporary files", "name another one: TMPDIR=<directory>")
    return path


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
    said = f"it is a {what}, not a regular file; name a file that holds the content"
    return RefusedFile(errno.EINVAL, said, str(path))


def _too_large(path: Path, most: int) -> RefusedFile:
    return RefusedFile(
        errno.EFBIG,
        f"it has more than {most // MIB} MiB, the most that is read of such a file; is it the one that you mean?",
        str(path),
    )


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
    found = path.lstat()
    before = stat.S_IMODE(found.st_mode)
    if not stat.S_ISLNK(found.st_mode) and before & EVERYBODY & ~mask:
        path.chmod(before & (mask | ~EVERYBODY))


def restrict_tree(root: Path, mask: int) -> None:
    """Do the same to a directory and everything in it."""
    for path in (root, *_below(root)):
        restrict(path, mask)


def new_file(path: Path, mask: int) -> None:
    """Make an empty file for these readers, where none may exist yet."""
    path.touch(0o666 & mask, exist_ok=False)


def _below(root: Path) -> Iterator[Path]:
    for directory, directories, names in os.walk(root):
        for name in (*directories, *names):
            yield Path(directory, name)


def _allowed_to_read(found: os.stat_result) -> int:
    if stat.S_ISLNK(found.st_mode):
        return EVERYBODY
    return _allowed(found, _READ | _PASS if stat.S_ISDIR(found.st_mode) else _READ)


def _allowed(found: os.stat_result, wanted: int) -> int:
    """Return the mask of those who have these rights; of a group only where what is made has the same one."""
    others = found.st_mode & wanted == wanted
    group = found.st_mode >> 3 & wanted == wanted and (others or found.st_gid == os.getegid())
    return 0o700 | (0o070 if group else 0) | (0o007 if others else 0)
