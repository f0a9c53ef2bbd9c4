"""The state of a cell in one word."""

from pathlib import Path

from agelab.results.result import End, Status

RUNNING, WAITING = GOING = ("running", "waiting")
"""States of a cell without an end record while its run is going on: begun, or to come."""


def status_of(end: End | None, directory: Path, going_on: bool) -> str:
    """Return its status at the end; while its run is going on, also whether it runs or waits for its turn.

    ``directory`` is the cell's: whoever has begun has one.
    """
    if not going_on:
        return str(end.status if end else Status.INTERRUPTED)
    if end is None:
        return RUNNING if directory.exists() else WAITING
    # What was interrupted is taken up again in its turn, and has no end then.
    return WAITING if end.status is Status.INTERRUPTED else str(end.status)
