"""The cells of a run: their states, where reused ones come from, and their samples as one table."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from agelab.base.errors import InputError
from agelab.base.gathered import gathered
from agelab.results.result import CellOrigin, End, Status
from agelab.results.run_directory import RunDirectory

RUNNING, WAITING = GOING = ("running", "waiting")
"""States of a cell without an end record while its run is going on: begun, or to come."""
COLUMNS = (
    *("run", "scenario", "scale", "clock", "cell", "variant", "filesystem", "layout", "kernel", "machine"),
    *("drives", "defaults", "accelerator", "seed", "corpus_seed", "status", "reason"),
    *("step", "repetition", "metric", "value", "unit", "not_measured", "caveat"),
    *("reused", "disputes"),
)
"""The columns, in this order."""
SCHEMA = 1
"""The version of the columns and tables that a file for other programs has."""
NUMBERS = ("cell", "seed", "corpus_seed", "repetition")
"""The columns of whole numbers; ``value`` is any number, the others are text."""
LARGEST = (1 << 63) - 1
"""The largest whole number of a column in SQLite and Parquet."""


def rows(run: RunDirectory) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run, cell by cell, each with all of COLUMNS.

    A cell without a sample has one row with no step, so that it does not vanish; what was not measured has no value,
    and the reason. ``drives`` of RAID-0 have a plus between them; ``reused`` says where a reused cell was measured. A
    cell that has not ended is ``interrupted``.
    """
    result = run.as_json()
    common = {name: result[name] for name in ("run", "scenario", "scale", "clock")}
    nothing = dict.fromkeys(("step", "repetition", "metric", "value", "unit", "not_measured", "caveat"))
    for number, cell in enumerate(result["cells"]):
        origin = str(CellOrigin(**cell["reused"])) if cell["reused"] else None
        about = {**common, "cell": number, **cell, "drives": "+".join(cell["drives"]), "reused": origin}
        for sample in cell["samples"] or [{}]:
            row = {**about, **nothing, **sample}
            yield {name: row[name] for name in COLUMNS}


def typed_rows(run: RunDirectory) -> Iterator[dict[str, Any]]:
    """Yield the same rows with ``value`` as a float. Raises InputError for a whole number that 64 bits do not hold."""
    for row in rows(run):
        for name in NUMBERS:
            if row[name] is not None and row[name] > LARGEST:
                raise InputError(
                    f"{run.name}, cell {row['cell']}: {name} {row[name]} does not fit into a column of 64 bits",
                    hint="csv and jsonl have it as it is",
                )
        yield {**row, "value": None if row["value"] is None else float(row["value"])}


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


def origins(ends: Iterable[End | None]) -> Iterator[str]:
    """Yield a line for each run and host that cells come from, with the time of the last: ``20 cells of RUN, ...``."""
    reused = [end.reused for end in ends if end and end.reused]
    by_run = gathered(((cell.run, cell.host), cell) for cell in reused)
    for some in by_run.values():
        cells = "1 cell" if len(some) == 1 else f"{len(some)} cells"
        yield f"{cells} of {max(some, key=lambda cell: cell.ended)}"
