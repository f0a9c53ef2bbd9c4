"""Where a target writes what its code reads from a file."""

import tempfile
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]


@cache
def directory() -> Path:
    """An empty directory of this process, below the fuzzer's own, which removes it."""
    return Path(tempfile.mkdtemp(prefix="agelab-fuzz-"))
