"""What a run of a study takes, for docs/replication.md: its cells, the host's time, and room for their disks."""

from collections.abc import Mapping, Sequence

from agelab.present.view.progress import format_time_left
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import TimeRange
from agelab.runner.request.options import OPTIONS, RunOptions, make_variable
from agelab.runner.request.request import planned_cells, resolve
from docs.make.catalogue import Made, Table
from docs.make.forecast import disk_of
from docs.make.page import grid

AT_ONCE = 2
"""Cells at a time."""
VARIABLES = {"name": "NAME", **{name: variable for name in OPTIONS if (variable := make_variable(name))}}
"""Option -> variable of ``make scenario``."""
HEAD = ("", "cells", "time", "GB of disk at most")


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make a row for each run."""
    parts = zip(table.runs, table.asked, runs, strict=True)
    return Made("\n".join(grid(HEAD, (_row(words, options, run) for words, options, run in parts))))


def _row(words: Mapping[str, str | bool], options: RunOptions, run: RunDirectory) -> list[str]:
    """Describe a run: what its cells took one at a time, shared between as many as go at once."""
    command = " ".join(f"{VARIABLES[name]}={value}" for name, value in words.items())
    ends = [end for number in range(len(run.plan().cells)) if (end := run.end(number))]
    lacking = sum(1 for end in ends if end.status is Status.UNSUPPORTED)
    seconds = sum(end.host_seconds for end in ends) / AT_ONCE
    disk = disk_of(resolve(options), planned_cells(options), AT_ONCE)
    return [
        f"`make scenario {command} JOBS={AT_ONCE}`",
        f"{len(ends)}{f', {lacking} unsupported' if lacking else ''}",
        format_time_left(TimeRange(seconds, seconds)),
        f"{disk / 1e9:.1f}",
    ]
