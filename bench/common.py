"""Helpers of the benchmarks: wait for a quiet machine, medians, tables."""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agelab.errors import HostError


def guests() -> list[int]:
    """List the process ids of the QEMU guests that run on this machine."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith("qemu-system"):
                found.append(int(comm.parent.name))
        except OSError:  # it ended while we looked
            continue
    return sorted(found)


def quietly(start: Callable[[], float], patience: float) -> float:
    """Call ``start`` while no other guest runs on this machine: on two cores a guest would disturb the measurement.

    Waits for others to end, and starts again when one came meanwhile. Raises HostError after ``patience``
    seconds without a quiet moment.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if guests():
            time.sleep(1)
            continue
        took = start()
        if not guests():
            return took
    raise HostError(
        f"other guests run on this machine: process {', '.join(map(str, guests()))}",
        hint="wait until they have ended: their load would be part of the measurement",
    )


def spread(values: Sequence[float]) -> str:
    """Median and range of host seconds."""
    return f"{statistics.median(values):6.2f}  {min(values):6.2f} - {max(values):.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns as wide as their widest cell."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
