"""The tables of docs/today.md: what the steps of 2009 do to the filesystems of today, on a disk and on an SSD.

    .venv/bin/python -m bench.today [--jobs 2] [--run RUN,RUN] [--write]

Runs scenario ``today`` on both drives (or takes runs that are there), prints a table for each drive, and with --write
puts them into docs/today.md.
"""

import sys
from collections.abc import Sequence

from agelab.results.run_directory import RunDirectory
from bench import aging
from bench.page import DOCS, command, put

KERNEL = "debian:6.12"
SSD = "model:samsung-970-evo-500"


def report(runs: Sequence[RunDirectory]) -> str:
    """Write a table for each drive, in the order of the runs. Raises InputError for runs of different tables."""
    drives = dict.fromkeys(_drive(run) for run in runs)
    parts = (
        f"**On {drive}**\n\n{aging.report([run for run in runs if _drive(run) == drive])}" for drive in drives
    )
    return "\n".join(parts)


def _drive(run: RunDirectory) -> str:
    return ", ".join(run.plan().cells[0].drives)


def write(_: Sequence[RunDirectory], text: str) -> None:
    """Put the tables into the page."""
    put(DOCS / "today.md", "python -m bench.today --write", text)


if __name__ == "__main__":
    sys.exit(
        command(__doc__, "today", "1", report, write, [{"kernel": KERNEL}, {"kernel": KERNEL, "disks": SSD}])
    )
