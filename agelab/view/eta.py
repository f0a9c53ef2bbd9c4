"""Estimate the time left of a run from the host time of earlier cells. Never part of a result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import inf
from statistics import mean

from agelab.errors import InputError
from agelab.model.result import Cell, End, RunPlan, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions

WHOLE_TIME = (Status.OK, Status.UNSUPPORTED)
"""Statuses of cells that took their whole time."""
UNITS = ((90, "s", 1, 10), (5400, "min", 60, 1), (inf, "h", 3600, 0.5))
"""Seconds below which a unit is used, the unit, its seconds, and the step it is rounded to."""
RUNS_READ = 3
RUNS_LOOKED_AT = 12
"""The most runs to look at: a run starts without delay, however full the store is."""
NO_EFFECT = {
    "directory", "name", "kernel", "filesystem", "seeds", "erase", "jobs", "corpus_seed", "scale", "clock",
}  # fmt: skip
"""Options that do not change how long a cell takes, or that a plan has elsewhere (scale and clock)."""

Took = Sequence[tuple[Cell, End]]


@dataclass(frozen=True)
class TimeLeft:
    """A range of seconds."""

    low: float
    high: float


def cell_time(cell: Cell, took: Took, before: Took) -> TimeLeft | None:
    """Estimate the time of a cell from others in this run (``took``) and in earlier ones (``before``).

    The range of its kind in this run, else earlier; else the mean of its filesystem in this run, else of
    all. None where nothing is known.
    """
    for known in (took, before):
        own = [
            end.host_seconds for one, end in known if _kind(one) == _kind(cell) and end.status in WHOLE_TIME
        ]
        if own:
            return TimeLeft(min(own), max(own))
    ended = [(one, end.host_seconds) for one, end in took or before if end.status is Status.OK]
    alike = [seconds for one, seconds in ended if one.filesystem == cell.filesystem]
    others = alike or [seconds for _, seconds in ended]
    return TimeLeft(mean(others), mean(others)) if others else None


def time_left(
    waiting: Sequence[Cell], running: Sequence[tuple[Cell, float]], jobs: int, took: Took, before: Took = ()
) -> TimeLeft | None:
    """Estimate the time until the last cell ends; None while nothing is known of some cell.

    ``waiting`` are the cells that have not begun, in their turn, so many ``jobs`` at a time; ``running`` are the
    others, with the seconds since each began. One that takes longer than any before it is taken to end at any moment.
    """
    to_come = [cell_time(cell, took, before) for cell in waiting]
    begun = [(cell_time(cell, took, before), since) for cell, since in running]
    whole = [one for one in to_come if one]
    rest = [(one, since) for one, since in begun if one]
    if len(whole) < len(to_come) or len(rest) < len(begun):
        return None
    return TimeLeft(
        _until_the_last([one.low for one in whole], [one.low - since for one, since in rest], jobs),
        _until_the_last([one.high for one in whole], [one.high - since for one, since in rest], jobs),
    )


def _until_the_last(waiting: Sequence[float], running: Sequence[float], jobs: int) -> float:
    """Return when the last one ends if each free job takes the next."""
    free = [max(0.0, rest) for rest in running] + [0.0] * (jobs - len(running))
    heapify(free)
    for seconds in waiting:
        heapreplace(free, free[0] + seconds)
    return max(free)


def format_time_left(time: TimeLeft | None) -> str:
    """Format ``about 4 min``, ``4-6 min``, or words where there is no figure or it is over."""
    if time is None:
        return "not known before a cell has ended"
    if time.high < 1:
        return "any moment now, by what cells took before"
    _, unit, size, step = next(one for one in UNITS if time.high < one[0])
    low, high = (max(step, step * round(seconds / size / step)) for seconds in (time.low, time.high))
    return f"about {high:g} {unit}" if low == high else f"{low:g}-{high:g} {unit}"


def _kind(cell: Cell) -> tuple[object, ...]:
    """Return what cells share that take about the same time."""
    return cell.variant, cell.layout, cell.drives


def recent_cells(run: RunDirectory) -> Iterator[tuple[Cell, End]]:
    """Yield the cells, with their ends, of the newest runs that were asked for the same, ``run`` included.

    Damaged runs are skipped.
    """
    plan = run.plan()
    try:
        wanted = _conditions(plan)
    except InputError:
        return
    paths = sorted(run.path.parent.glob(f"*-{plan.scenario}*/plan.json"), reverse=True)
    read = 0
    for path in paths[:RUNS_LOOKED_AT]:
        other = RunDirectory(path.parent)
        try:
            there = other.plan()
            if _conditions(there) != wanted:
                continue
            ends = [other.end(number) for number in range(len(there.cells))]
        except InputError:
            continue
        ended = [(cell, end) for cell, end in zip(there.cells, ends, strict=True) if end]
        yield from ended
        read += bool(ended)
        if read == RUNS_READ:
            return


def _conditions(plan: RunPlan) -> tuple[object, ...]:
    """Return what the duration of cells depends on, beside the cell. Raises InputError where the plan lacks it."""
    options = RunOptions.from_plan(plan).model_dump(exclude=NO_EFFECT)
    return plan.scenario, plan.scale, plan.clock, plan.emulated, options
