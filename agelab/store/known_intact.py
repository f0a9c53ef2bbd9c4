"""Remember that the files of a directory were read and are intact, so that they are not read by each process.

What is remembered is what the kernel says of every file: name, device, inode, size, and the times of its last change.
Nobody changes a file without its ctime: it cannot be set, and a write, a link, a rename and a new owner each move it.
What lies below the filesystem is not in it, so memory has an end: a host that starts anew (a crash may leave old files
without their data), and AT_MOST seconds (a disk may lose bits). Files changed in the last SETTLED seconds are never
remembered: a further change could fall into the same tick of ctime.
"""

import hashlib
import json
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agelab.base import atomic, fileio

AT_MOST = 86400.0
"""Seconds for which it is remembered, as the host's kernel counts them from its start."""
SETTLED = 2.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class FileState:
    """The files of a directory, as the kernel describes them."""

    hash: str
    settled: bool
    """True if no file was changed in the last SETTLED seconds."""

    @classmethod
    def of(cls, directory: Path) -> "FileState":
        now = time.time_ns()
        digest, newest = hashlib.sha256(), 0
        for above, directories, files in os.walk(directory):
            directories.sort()
            for path in (f"{above}/{name}" for name in (*sorted(files), *directories)):
                status = os.lstat(path)
                if stat.S_ISDIR(status.st_mode):  # its times tell of its names, which are listed, and of its last use
                    continue
                known = (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
                digest.update(repr((path, *known, status.st_ctime_ns)).encode("utf-8", "surrogateescape"))
                newest = max(newest, status.st_ctime_ns)
        return cls(digest.hexdigest(), newest <= now - int(SETTLED * 1e9))


def is_remembered(record: Path, state: FileState) -> bool:
    """Return True if files in this state were intact when they were last read."""
    try:
        remembered = json.loads(fileio.read_bytes(record))
        age = _now() - float(remembered["at"])
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return (remembered.get("boot"), remembered.get("state")) == (_boot(), state.hash) and 0 <= age <= AT_MOST


def remember(record: Path, state: FileState) -> None:
    """Remember that files were intact which were in this state before they were read."""
    if not state.settled:
        return
    facts: dict[str, Any] = {"boot": _boot(), "at": _now(), "state": state.hash}
    with suppress(OSError):  # a full disk, another user's store: they are read again
        record.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(record, json.dumps(facts).encode())


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _boot() -> str:
    return fileio.read_text(BOOT_ID).strip()
