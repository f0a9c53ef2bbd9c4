"""Errors for the user, by who must act, and what the user is told meanwhile."""

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryFile

DISK_ERRNOS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM))
"""System errors that the user can fix: no space, no permission. Any other is a bug in agelab."""

MAX_LISTED = 30
"""Valid names that an error lists when none is similar: more than there are of any kind of file in scenarios/."""


class AgelabError(Exception):
    """An error for the user. The message says what is wrong and where, ``hint`` what to do now."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class InputError(AgelabError):
    """The user's arguments or files are wrong (exit 2)."""

    exit_code = 2


class HostError(AgelabError):
    """The host lacks something: a tool, space, the network (exit 3)."""

    exit_code = 3


@contextmanager
def goes_on(command: str) -> Iterator[None]:
    """Have the user told the command that goes on, where the body is interrupted or the host cannot do it.

    What is begun within something else names its command first: the outermost one is told.
    """
    try:
        yield
    except (KeyboardInterrupt, HostError, OSError) as error:
        error.add_note(command)
        raise


def name_some(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first names, and say how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"


def unknown(kind: str, name: str, valid: Sequence[str], where: str = "") -> InputError:
    """Return the error for an unknown name, with the most similar valid names or else the first of them."""
    message = " ".join(filter(None, (f"no {kind} {name!r}", where)))
    if not valid:
        return InputError(f"{message}; there are none")
    names = did_you_mean(name, valid) or f"there are: {name_some(sorted(valid), MAX_LISTED)}"
    return InputError(f"{message}; {names}")


def did_you_mean(name: str, valid: Sequence[str]) -> str:
    """Return a question that suggests the most similar names; empty when none is similar."""
    near = get_close_matches(name, valid, n=3, cutoff=0.5)
    return "did you mean " + ", ".join(near) + "?" if near else ""


Notify = Callable[[str], None]
"""Called with one short line at the start of each stage that takes a while."""


def silent(line: str) -> None:
    """Ignore the line."""


FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
PROBE_BYTES = 1 << 16
MAX_LINE = 300
"""Characters of a program's line that are quoted: the last ones, which say why."""
_HINT = "free some space, or move the store with AGELAB_HOME=<directory>"
# A line up to strerror(3) of ENOSPC and EDQUOT in the C locale, which agelab's programs get; Go writes it small.
_FULL = re.compile(r".*(No space left on device|Disk quota exceeded)", re.IGNORECASE)


class DiskError(HostError):
    """The disk of the store is full, or not to be written to."""


@contextmanager
def naming_disk_errors(where: Path) -> Iterator[None]:
    """Turn errors of the disk below a directory of the store, also those that a program told of, into one line.

    Raises DiskError.
    """
    try:
        yield
    except DiskError:
        raise
    except OSError as error:
        if error.errno not in DISK_ERRNOS:
            raise
        raise DiskError(f"cannot write below {where}: {error}", _HINT) from error
    except HostError as error:
        full = full_disk_line(str(error))
        if not full and is_disk_full(where):  # not every program says why it cannot write
            full = f"{os.strerror(errno.ENOSPC)}: {str(error).splitlines()[0][:MAX_LINE]}"
        if full:
            raise DiskError(f"cannot write below {where}: {full}", _HINT) from error
        raise


def full_disk_line(text: str) -> str:
    """Return a program's first line that tells of a full disk, up to these words; empty where there is none."""
    match = _FULL.search(text)
    return match[0].strip()[-MAX_LINE:] if match else ""


def is_disk_full(directory: Path) -> bool:
    """Return True if this user cannot write some blocks to the directory's filesystem.

    What statvfs(3) calls free is not: ext4 keeps some blocks even from root.
    """
    try:
        with TemporaryFile(dir=directory) as probe:
            probe.write(bytes(PROBE_BYTES))
    except OSError as error:
        return error.errno in FULL_ERRNOS
    return False
