"""The disk of the store, full or not to be written to: told in one line, whoever noticed it."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from agelab.errors import DISK_ERRNOS, HostError

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


def full_disk_line(said: str) -> str:
    """Return a program's first line that tells of a full disk, up to these words; empty where there is none."""
    found = _FULL.search(said)
    return found[0].strip()[-MAX_LINE:] if found else ""


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
