"""Cells of recent runs and how long they took on the host, for the estimate of the time left. No result has it."""

from collections.abc import Iterator

from agelab.errors import InputError
from agelab.model.result import Cell, End, RunPlan
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions

RUNS_READ = 3
RUNS_LOOKED_AT = 12
"""The most runs to look at: a run starts without delay, however full the store is."""
NO_EFFECT = {
    "directory", "name", "kernel", "filesystem", "seeds", "erase", "jobs", "corpus_seed", "scale", "clock",
}  # fmt: skip
"""Options that do not change how long a cell takes, or that a plan has elsewhere (scale and clock)."""


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
