"""What cells, and a run of them, take of host time, by earlier ones of the same kind. Never part of a result."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import mean

from agelab.base.errors import InputError
from agelab.data.corpus import Corpus
from agelab.results.conditions import QUESTION, Conditions, between
from agelab.results.result import Cell, End, RunPlan, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.plan.cell_spec import CellSpec, cell_of
from agelab.runner.plan.phases import phases
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve

WHOLE_TIME = (Status.OK, Status.UNSUPPORTED)
"""Statuses of cells that took their whole time."""
RUNS_READ = 3
RUNS_LOOKED_AT = 12
"""The most runs to look at: a run starts without delay, however full the store is."""
VARIES = (
    Conditions.model_fields.keys()
    - QUESTION
    - {"layout", "defaults", "machine", "band", "block_layer", "drives", "vcpus", "options", "effort"}
)
"""Conditions that do not change how long a cell takes, or not by much: nothing waits for a better guess."""

Took = Sequence[tuple[Cell, End]]


@dataclass(frozen=True)
class TimeRange:
    """A range of seconds."""

    low: float
    high: float


def cell_time(cell: Cell, took: Took, before: Took) -> TimeRange | None:
    """Estimate the time of a cell from others in this run (``took``) and in earlier ones (``before``).

    The range of its kind in this run, else earlier; else the mean of its filesystem in this run, else of
    all. None where nothing is known.
    """
    for known in (took, before):
        if own := _of_kind(cell, known):
            return TimeRange(min(own), max(own))
    ended = [(known_cell, end.host_seconds) for known_cell, end in took or before if end.status is Status.OK]
    alike = [seconds for known_cell, seconds in ended if known_cell.filesystem == cell.filesystem]
    others = alike or [seconds for _, seconds in ended]
    return TimeRange(mean(others), mean(others)) if others else None


def expected_cost(
    cell: Cell, spec: CellSpec, corpus: Corpus, before: Took, *, curve: bool = False
) -> tuple[float, int]:
    """Return a measure of what a cell will take, to compare with another's: seconds as far as known, then its steps.

    Seconds are the middle of ``cell_time``'s range. Through FUSE a filesystem takes longest, by far: where none of its
    kind has ended before, nothing compares with it.
    """
    steps = sum(len(phase.steps) for phase in phases(spec.scenario, corpus, curve=curve, failure=spec.failure))
    if "fuse" in spec.filesystem.modules and not _of_kind(cell, before):
        return inf, steps
    known = cell_time(cell, before, ())
    return (known.low + known.high) / 2 if known else 0.0, steps


def _of_kind(cell: Cell, took: Took) -> list[float]:
    """Return the seconds of the cells of its kind that took their whole time."""
    return [
        end.host_seconds for known_cell, end in took if _kind(known_cell) == _kind(cell) and end.status in WHOLE_TIME
    ]


def _kind(cell: Cell) -> tuple[object, ...]:
    """Return what cells share that take about the same time."""
    return cell.variant, cell.layout, cell.drives


def recent_cells(run: RunDirectory) -> Iterator[tuple[Cell, End]]:
    """Yield the cells, with their ends, of the newest runs that were asked for the same, ``run`` included.

    Damaged runs are skipped.
    """
    yield from cells_under(planned_conditions(run.plan()), run.home / "runs")


def cells_under(conditions: Sequence[Conditions], runs: Path) -> Iterator[tuple[Cell, End]]:
    """Yield the cells, with their ends, of the newest runs of this store's own under these conditions."""
    paths = sorted(runs.glob(f"*-{conditions[0].scenario}*/plan.json"), reverse=True)
    read = 0
    for path in paths[:RUNS_LOOKED_AT]:
        other = RunDirectory(path.parent)
        try:
            there = other.plan()
            if between(conditions, planned_conditions(there), VARIES) or not other.has_own_plan:
                continue
            ends = [other.end(number) for number in range(len(there.cells))]
        except InputError:
            continue
        ended = [(cell, end) for cell, end in zip(there.cells, ends, strict=True) if end]
        yield from ended
        read += bool(ended)
        if read == RUNS_READ:
            return


def asked_conditions(
    scenario: str, scale: str, options: RunOptions, cells: Iterable[Cell], accelerator: str
) -> tuple[Conditions, ...]:
    """Return the conditions of a run that has no plan yet, on a host with that accelerator."""
    plan = RunPlan(
        run="not begun",
        scenario=scenario,
        scale=scale,
        clock=options.guest_clock,
        cells=tuple(cell.model_copy(update={"accelerator": accelerator}) for cell in cells),
        provenance={"vcpus": options.vcpus},
        command=options.to_plan(),
    )
    return planned_conditions(plan)


def planned_conditions(plan: RunPlan) -> tuple[Conditions, ...]:
    """Return the conditions of each kind of cell of a run."""
    kinds = {cell.model_copy(update={"seed": 1, "corpus_seed": 1}): cell for cell in plan.cells}
    return tuple(Conditions.of(plan, cell) for cell in kinds.values()) or (Conditions.of(plan, None),)


@dataclass(frozen=True)
class Forecast:
    """A run before it is made."""

    options: RunOptions
    scenario: str
    scale: str
    cells: Sequence[Cell]
    before: Took
    """Cells like these that have ended before."""


def forecast(options: RunOptions, runs: Path) -> Forecast:
    """Say what a run would be. Raises InputError for options that make no run."""
    request = resolve(options)
    scenario, scale = request.selection.scenario.name, request.scale_name
    cells = [cell_of(spec, request.kernel) for spec in request.planned()]
    before: Took = ()
    for accelerator in ("kvm", "tcg"):  # in the wall clock a host has KVM, or has it not
        like = asked_conditions(scenario, scale, options, cells, accelerator)
        before = before or list(cells_under(like, runs))
    return Forecast(options, scenario, scale, cells, before)
