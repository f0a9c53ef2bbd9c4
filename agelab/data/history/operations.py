"""Operation logs: histories of a filesystem, one operation per line (docs/operations.md defines the format).

Every log is checked as a whole before it is replayed: each operation must be possible after those before it, on a
filesystem without limits. Limits of a real one show in the replay.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from agelab.base import fileio
from agelab.base.errors import InputError

HEADER = b"agelab-operations 1"
MAX_LINE_BYTES = 16_000
"""Maximum length of a line in bytes: two paths of PATH_MAX, half of their bytes escaped."""
MAX_OFFSET = 2**63 - 1
"""Largest file offset in Linux (loff_t)."""
BLOCK = 4096
"""Block size in bytes of nearly every filesystem; fullness counts a file's last block as a whole one."""
MAX_ENTRIES = 5_000_000
"""Files and directories that there may be at one time."""
MAX_FAULTS = 10
"""Maximum number of errors reported for a log; later ones often follow from the first."""

_ESCAPED = re.compile(rb"\\([0-3][0-7]{2})")
_UNSAFE = re.compile(rb"[\x00-\x20\\\x7f]")
_OPERATION_FIELDS = {
    **{b"mkdir": "p", b"rmdir": "p", b"create": "p", b"unlink": "p", b"fsync": "p", b"rename": "pp", b"link": "pp"},
    **{b"write": "pnn", b"overwrite": "pnn", b"allocate": "pnn", b"append": "pn", b"truncate": "pn", b"point": "n"},
}
"""Fields of each operation: p for path, n for number."""


@dataclass
class Linked:
    """A file that has, or had, several names."""

    size: int
    names: int = 1


File = int | Linked
"""A file by its size; one whose further names change with it, as an object of its own."""
Directory = dict[bytes, "Directory | File"]
"""Content of a directory by name."""


def size_of(file: File) -> int:
    """Return the size of a file in bytes."""
    return file.size if isinstance(file, Linked) else file


def whole_blocks(size: int) -> int:
    """Return the size in bytes rounded up to whole blocks."""
    return -(-size // BLOCK) * BLOCK


class LogFault(Exception):
    """Reason why a line is invalid."""


@dataclass
class FilesystemState:
    """Content of the filesystem after some operations."""

    root: Directory = field(default_factory=dict)
    live_bytes: int = 0
    space: int = 0
    """Bytes of the files in whole blocks."""
    files: int = 0
    """Names of files."""
    directories: int = 0

    def remove_file(self, file: File) -> None:
        """Account for a name of a file that is gone, and with the last one the file."""
        self.files -= 1
        if isinstance(file, Linked):
            file.names -= 1
        if not isinstance(file, Linked) or not file.names:
            self.resize_file(size_of(file), 0)

    def resize_file(self, before: int, after: int) -> None:
        """Account for a change of a file's size; a file that does not exist has size 0."""
        self.live_bytes += after - before
        # whole_blocks() inlined: this runs for most lines of a log.
        self.space += (-(-after // BLOCK) + before // -BLOCK) * BLOCK


@dataclass(frozen=True)
class LogSummary:
    """Totals of a whole log; sizes in bytes."""

    operations: int
    counts: dict[str, int]
    """Number of lines by operation."""
    bytes_written: int
    files: int
    """At the end, as are directories, live_bytes and space."""
    directories: int
    live_bytes: int
    space: int
    """Bytes of the files in whole blocks."""
    peak_bytes: int
    """Largest live_bytes at any time."""
    peak_space: int
    peak_files: int
    points: tuple[int, ...]
    """Number of operations before each point."""


def escape_path(path: bytes) -> bytes:
    """Escape a path for a log: separators become a backslash and three octal digits."""
    return _UNSAFE.sub(lambda match: b"\\%03o" % match[0][0], path)


class LogChecker:
    """Checks a log line by line; ``name`` is used in error messages."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._state = FilesystemState()
        self._counts: Counter[bytes] = Counter()
        self._faults: list[str] = []
        self._line = self._operations = self._written = 0
        self._peak_bytes = self._peak_space = self._peak_files = 0
        self._points: list[int] = []

    def read(self, line: bytes) -> bytes:
        """Check the next line, newline included, and return its operation, or b"" if it has none.

        Raises InputError when the log cannot be continued or has MAX_FAULTS errors.
        """
        self._line += 1
        if line[-1:] != b"\n" or len(line) > MAX_LINE_BYTES:
            self._fault("no newline: the log is cut off" if len(line) < MAX_LINE_BYTES else "too long")
            self._refuse()
        if self._line == 1:
            if line[:-1] != HEADER:
                beginning = f"{line[:-1][:40].decode(errors='replace')!r}" if line[:-1] else "empty"
                self._fault(f"it is {beginning} and not {HEADER.decode()!r}")
                self._refuse()
            return b""
        if line[:1] in (b"#", b"\n"):
            return b""
        try:
            what, added = _apply(self._state, line[:-1])
        except LogFault as fault:
            self._fault(str(fault))
            if len(self._faults) >= MAX_FAULTS:
                self._refuse()
            return b""
        self._counts[what] += 1
        if what == b"point":
            self._points.append(self._operations)
            return what
        self._operations += 1
        self._written += added
        state = self._state
        if state.live_bytes > self._peak_bytes:
            self._peak_bytes = state.live_bytes
        if state.space > self._peak_space:
            self._peak_space = state.space
        if state.files > self._peak_files:
            self._peak_files = state.files
        return what

    def summary(self) -> LogSummary:
        """Return the totals after the last line. Raises InputError with line and reason of each error."""
        if not self._line:
            self._line = 1
            self._fault(f"it is empty and not {HEADER.decode()!r}")
        elif not self._faults and not self._operations:
            self._faults.append(f"{self._name}: there is no operation in it")
        if self._faults:
            self._refuse()
        state = self._state
        return LogSummary(
            operations=self._operations,
            counts={what.decode(): count for what, count in sorted(self._counts.items())},
            bytes_written=self._written,
            files=state.files,
            directories=state.directories,
            live_bytes=state.live_bytes,
            space=state.space,
            peak_bytes=self._peak_bytes,
            peak_space=self._peak_space,
            peak_files=self._peak_files,
            points=tuple(self._points),
        )

    def _fault(self, why: str) -> None:
        self._faults.append(f"{self._name}: line {self._line}: {why}")

    def _refuse(self) -> NoReturn:
        raise InputError("\n".join(self._faults), hint="docs/operations.md has the format")


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their newlines; only the beginning of one that is too long.

    Raises InputError if it cannot be read.
    """
    try:
        with fileio.opened(path, fileio.OPERATIONS) as log:
            yield from iter(lambda: log.readline(MAX_LINE_BYTES), b"")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def check_log(path: Path) -> LogSummary:
    """Check a whole log.

    Raises InputError with line and reason of each error, up to MAX_FAULTS.
    """
    checker = LogChecker(str(path))
    for line in read_lines(path):
        checker.read(line)
    return checker.summary()


def _apply(state: FilesystemState, line: bytes) -> tuple[bytes, int]:
    """Apply a line to the state; return its operation and the number of bytes written. Raises LogFault."""
    if line.endswith(b"\r"):
        raise LogFault("it ends in CR and LF; a line ends in LF alone (a CR in a name is \\015)")
    what, *words = line.split(b" ")
    takes = _OPERATION_FIELDS.get(what)
    if takes is None:
        raise LogFault(f"no operation {_quote(what)}; there are: {', '.join(sorted(_names()))}")
    if len(words) != len(takes):
        fields = "1 field" if len(takes) == 1 else f"{len(takes)} fields"
        more = " (a space in a name is \\040)" if len(words) > len(takes) else ""
        raise LogFault(f"{what.decode()} takes {fields}, not {len(words)}{more}")
    if what == b"point":
        _number(words[0])
        return what, 0
    parent, name = _resolve(state, words[0])
    there = parent.get(name)
    if what == b"mkdir" or what == b"create":
        if there is not None:
            raise LogFault(f"{_quote(words[0])} is there already")
        if state.files + state.directories >= MAX_ENTRIES:
            raise LogFault(f"more than {MAX_ENTRIES:,} files and directories at one time")
        if what == b"mkdir":
            parent[name] = {}
            state.directories += 1
        else:
            parent[name] = 0
            state.files += 1
        return what, 0
    if there is None:
        raise LogFault(f"there is no {_quote(words[0])}")
    if what == b"rename":
        _rename(state, words, parent, name, there)
        return what, 0
    if what == b"link":
        _link(state, words, parent, name, there)
        return what, 0
    if what == b"rmdir":
        if not isinstance(there, dict):
            raise LogFault(f"{_quote(words[0])} is no directory")
        if there:
            raise LogFault(f"{_quote(words[0])} is not empty")
        del parent[name]
        state.directories -= 1
        return what, 0
    if isinstance(there, dict):
        raise LogFault(f"{_quote(words[0])} is a directory")
    if what == b"unlink":
        del parent[name]
        state.remove_file(there)
        return what, 0
    if what == b"fsync":
        return what, 0
    before = size_of(there)
    size, added = _new_size(what, before, [_number(word) for word in words[1:]])
    if isinstance(there, Linked):
        there.size = size
    else:
        parent[name] = size
    state.resize_file(before, size)
    return what, added


def _new_size(what: bytes, size: int, numbers: list[int]) -> tuple[int, int]:
    """Return a file's size after an operation on its content, and the number of bytes written."""
    if what == b"truncate":
        return numbers[0], 0
    offset, length = (size, numbers[0]) if what == b"append" else numbers
    end = offset + length
    if end > MAX_OFFSET:
        raise LogFault("no file is as large as that")
    if what == b"overwrite" and end > size:
        raise LogFault(f"it goes beyond the file's end at {size}")
    return max(size, end) if length else size, 0 if what == b"allocate" else length


def _link(state: FilesystemState, words: list[bytes], parent: Directory, name: bytes, file: Directory | File) -> None:
    if isinstance(file, dict):
        raise LogFault(f"{_quote(words[0])} is a directory")
    to, other = _resolve(state, words[1])
    if other in to:
        raise LogFault(f"{_quote(words[1])} is there already")
    if state.files + state.directories >= MAX_ENTRIES:
        raise LogFault(f"more than {MAX_ENTRIES:,} files and directories at one time")
    linked = file if isinstance(file, Linked) else Linked(file)
    linked.names += 1
    parent[name] = to[other] = linked
    state.files += 1


def _rename(
    state: FilesystemState, words: list[bytes], parent: Directory, name: bytes, moved: Directory | File
) -> None:
    to, other = _resolve(state, words[1], beside=moved)
    there = to.get(other)
    if there is not None:
        if isinstance(there, dict) != isinstance(moved, dict):
            raise LogFault(f"{_quote(words[1])} is of another kind")
        if there is moved and (isinstance(moved, Linked) or (to is parent and other == name)):
            return  # rename(2): of two names of one file both stay
        if not isinstance(there, dict):
            state.remove_file(there)
        elif there:
            raise LogFault(f"{_quote(words[1])} is not empty")
        else:
            state.directories -= 1
    del parent[name]
    to[other] = moved


def _resolve(state: FilesystemState, word: bytes, beside: Directory | File | None = None) -> tuple[Directory, bytes]:
    """Return parent directory and last name of a path; ``beside`` is a directory that must not contain it."""
    if b"\\" in word:
        if b"\\" in _ESCAPED.sub(b"", word):
            raise LogFault(f"{_quote(word)}: a backslash without three octal digits")
        word = _ESCAPED.sub(lambda match: bytes((int(match[1], 8),)), word)
    if b"\0" in word:
        raise LogFault("no name has a zero byte")
    *above, name = word.split(b"/")
    directory = state.root
    for part in above:
        below = directory.get(part)
        if below is None:
            _require_plain_name(word, part)
            raise LogFault(f"there is no directory {_quote(part)} on the way to {_quote(word)}")
        if not isinstance(below, dict):
            raise LogFault(f"{_quote(part)} on the way to {_quote(word)} is no directory")
        if below is beside:
            raise LogFault("a directory cannot be moved into itself")
        directory = below
    if name not in directory:
        _require_plain_name(word, name)
    return directory, name


def _require_plain_name(word: bytes, part: bytes) -> None:
    """Raise LogFault for an empty name, ``.`` or ``..``."""
    if part in (b"", b".", b".."):
        raise LogFault(f"{_quote(word)} is not a plain path below the mount point")


def _number(word: bytes) -> int:
    if not word.isdigit() or len(word) > 19 or int(word) > MAX_OFFSET:
        raise LogFault(f"{_quote(word)} is not a number of bytes")
    return int(word)


def _names() -> list[str]:
    return [name.decode() for name in _OPERATION_FIELDS]


def _quote(word: bytes) -> str:
    """Quote bytes of the log for an error message."""
    return repr(word[:80].decode(errors="replace"))
