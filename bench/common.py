"""What the benchmarks share: a quiet machine, medians, tables."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from agelab.errors import HostError


def guests() -> list[int]:
    """The process ids of the QEMU guests that run on this machine now."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith("qemu-system"):
                found.append(int(comm.parent.name))
        except OSError:  # it ended while we looked
            continue
    return sorted(found)


def need_quiet() -> None:
    """Raise HostError when another guest runs: with two cores, it would be measured too."""
    if found := guests():
        raise HostError(
            f"another guest runs on this machine (process {', '.join(map(str, found))})",
            hint="wait until it has ended: its load would be part of the measurement",
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
