"""How much of the host's time cells took: what a run that goes on can be expected to take. No result has it."""

from collections.abc import Iterator, Mapping
from typing import Any

from agelab.errors import InputError
from agelab.model.result import Cell, End, RunPlan
from agelab.results.run_directory import RunDirectory

NEWEST = 3
"""Earlier runs to read, and"""
LOOKED_AT = 12
"""how many at most to look at for them: a run begins in no time, however full the store is."""
ITS_OWN = ("kernel", "filesystem", "seeds", "erase", "jobs", "corpus_seed")
"""Options in which runs may differ whose cells take about the same."""


def recent_cells(run: RunDirectory) -> Iterator[tuple[Cell, End]]:
    """The cells, and their ends, of the newest runs that were asked the same as this one, itself among them.

    What is damaged is passed over.
    """
    plan = run.plan()
    names = sorted(run.path.parent.glob(f"*-{plan.scenario}*/plan.json"), reverse=True)
    read = 0
    for path in names[:LOOKED_AT]:
        found = RunDirectory(path.parent)
        try:
            there = found.plan()
            if _asked(there) != _asked(plan):
                continue
            ends = [found.end(number) for number in range(len(there.cells))]
        except InputError:
            continue
        known = [(cell, end) for cell, end in zip(there.cells, ends, strict=True) if end]
        yield from known
        read += bool(known)
        if read == NEWEST:
            return


def _asked(plan: RunPlan) -> tuple[object, ...]:
    """What the time of its cells hangs on, beside the cells; an option that says nothing was not asked for."""
    words, more = (_said(plan.command.get(part, {})) for part in ("words", "more"))
    return plan.scenario, plan.scale, plan.clock, plan.emulated, words, more


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    aside = (*ITS_OWN, "scale", "clock")
    return {
        name: value
        for name, value in options.items()
        if name not in aside and value not in (None, "", False, [])
    }
