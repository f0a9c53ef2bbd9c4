"""Estimate the time left of a run from the host time of earlier cells. Never part of a result."""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import inf

from agelab.results.result import Cell
from agelab.runner.cell_times import TimeRange, Took, cell_time

UNITS = ((90, "s", 1, 10), (5400, "min", 60, 1), (inf, "h", 3600, 0.5))
"""Seconds below which a unit is used, the unit, its seconds, and the step it is rounded to."""


def time_left(
    waiting: Sequence[Cell], running: Sequence[tuple[Cell, float]], jobs: int, took: Took, before: Took = ()
) -> TimeRange | None:
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
    return TimeRange(
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


def format_time_left(time: TimeRange | None) -> str:
    """Format ``about 4 min``, ``4-6 min``, or words where there is no figure or it is over."""
    if time is None:
        return "not known before a cell has ended"
    if time.high < 1:
        return "any moment now, by what cells took before"
    _, unit, size, step = next(one for one in UNITS if time.high < one[0])
    low, high = (max(step, step * round(seconds / size / step)) for seconds in (time.low, time.high))
    return f"about {high:g} {unit}" if low == high else f"{low:g}-{high:g} {unit}"
