"""Where a target writes what its code reads from a file."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]


@cache
def directory() -> Path:
    """An empty directory of this process, in memory where there is one."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="agelab-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
