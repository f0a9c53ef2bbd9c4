"""Wait for what another process brings about."""

import time
from collections.abc import Callable
from pathlib import Path


def until(holds: Callable[[], object], seconds: float = 60, log: Path | None = None) -> None:
    """Wait until it holds, and fail after so long, with the end of that process's log."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, log.read_text(errors="replace")[-2000:] if log else "nothing happened"
        time.sleep(0.02)
