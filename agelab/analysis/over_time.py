"""Results over time: lines over kernels or dates, of runs that differ in nothing else, judged point by point.

Runs with another scenario, guest, harness or QEMU are never on one line, nor are those of this store and of capsules.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agelab.analysis.cells import CellResult, RunResult, SeedGroup
from agelab.analysis.comparison import side_by_side
from agelab.analysis.host_noise import noise_of_runs
from agelab.analysis.result_grid import GridCell, ResultGrid, Row
from agelab.analysis.run_set import VARIES as IN_ONE_TABLE
from agelab.analysis.run_set import distinct_names, kernel_names
from agelab.analysis.sweep import version_key
from agelab.base.errors import InputError
from agelab.results.conditions import FILES, HASH, Conditions, apart, files_of, grouped, names
from agelab.results.measure import Measure
from agelab.results.result import Cell, RunKernel
from agelab.scenario.seeds import Seeds, seeds_text
from agelab.stats.verdict import ComparedSeries

VARIES = IN_ONE_TABLE | {"files", "profiles"}
"""Conditions in which joined runs differ; a line has one value of each that is no kernel and no seed."""


class Axis(StrEnum):
    """What results are shown over."""

    KERNEL = "kernel"
    DATE = "date"


@dataclass(frozen=True)
class TimedRun:
    """A run, of this store or from a capsule."""

    result: RunResult
    origin: str = ""
    """Whose it is; empty for a run of this store."""

    @property
    def name(self) -> str:
        return self.result.plan.run

    @property
    def conditions(self) -> tuple[Conditions, ...]:
        return self.result.conditions

    @property
    def moment(self) -> str:
        """When it began: its name begins so. An imported run may be called anything."""
        return self.name[: len("20261122-200217")]


@dataclass(frozen=True)
class JoinedRuns:
    """Runs that differ in kernel, date, variants and seeds alone: their lines, over kernels or dates."""

    runs: tuple[TimedRun, ...]
    grid: ResultGrid
    """A row for each line, a column for each kernel or date."""
    _judged: dict[Measure, dict[tuple[Row, int], ComparedSeries]] = field(default_factory=dict, repr=False)

    def changes(self, measure: Measure) -> Mapping[tuple[Row, int], ComparedSeries]:
        """Judge each point against the one before it; these points alone are one family."""
        if measure not in self._judged:
            self._judged[measure] = self.grid.changes(measure)
        return self._judged[measure]

    def before(self, row: Row, column: int, measure: Measure) -> int:
        """Return the column that a change is told against: the last before it that has a value."""
        return max(at for at in range(column) if self.grid.series(row, at, measure))

    @property
    def left_out(self) -> Iterator[str]:
        """Say which cells are on no line, and why."""
        found: dict[tuple[str, str, str], list[Seeds]] = {}
        for run in self.runs:
            for one in run.result.cells:
                if not one.ok:
                    found.setdefault((run.name, one.cell.short_label, one.ended), []).append(one.seeds)
        for (run_name, label, why), seeds in found.items():
            yield f"{run_name}, {label}, {seeds_text(seeds)}: {why}"


@dataclass(frozen=True)
class OverTime:
    """Results over kernels or dates."""

    axis: Axis
    joined: tuple[JoinedRuns, ...]

    @property
    def apart(self) -> Iterator[str]:
        """Say of runs of one question and one origin what keeps them off each other's lines."""
        for origin in dict.fromkeys(one.runs[0].origin for one in self.joined):
            yield from apart(
                [one.runs for one in self.joined if one.runs[0].origin == origin], VARIES
            ).values()


def over_time(runs: Sequence[TimedRun], axis: Axis) -> OverTime:
    """Put runs on lines. Raises InputError where no line would have two points."""
    if not any(one.ok for run in runs for one in run.result.cells):
        raise InputError(f"no cell of {names(runs)} is ok: there is nothing to show")
    found = grouped(runs, VARIES, lambda known, run: known.origin == run.origin)
    joined = OverTime(axis, tuple(JoinedRuns(tuple(group), _grid(group, axis)) for group in found))
    if not any(sum(map(bool, row)) > 1 for one in joined.joined for row in one.grid.entries.values()):
        raise InputError(_nothing_to_compare(joined), hint=_instead(joined))
    return joined


def _nothing_to_compare(found: OverTime) -> str:
    if why := next(found.apart, None):
        return f"nothing to compare: no two of these runs belong on one line: {why}"
    heads = dict.fromkeys(name for one in found.joined for name in one.grid.names)
    return f"nothing to compare: no line has two {found.axis}s, there is {', '.join(heads)}"


def _instead(found: OverTime) -> str:
    if any(found.apart):
        return side_by_side(*(group.runs[0] for group in found.joined[:2]))
    runs = sum(len(one.runs) for one in found.joined)
    if found.axis is Axis.KERNEL and runs > 1:
        return "over the dates of the runs: --by date"
    if found.axis is Axis.DATE:
        return "name runs of one kernel on several dates; over kernels: --by kernel"
    return "name runs of other kernels, as agelab run SCENARIO --kernel A --kernel B makes them"


def _grid(runs: Sequence[TimedRun], axis: Axis) -> ResultGrid:
    """Sort the cells that are ok into lines and columns."""
    columns: dict[Any, int] = {}
    heads: Sequence[str]
    if axis is Axis.KERNEL:
        kernels = sorted(dict.fromkeys(_kernel(run) for run in runs), key=version_key)
        heads, columns = kernel_names(kernels), {kernel: at for at, kernel in enumerate(kernels)}
    else:
        runs = sorted(runs, key=lambda run: (run.moment, run.name))
        heads, columns = _dates(runs), {run.name: at for at, run in enumerate(runs)}
    cells: dict[tuple[tuple[str, ...], int], tuple[RunResult, list[CellResult]]] = {}
    for run in runs:
        at = columns[_kernel(run) if axis is Axis.KERNEL else run.name]
        for one in run.result.cells:
            if one.ok:
                key = (*_subject(one), "" if axis is Axis.KERNEL else _asked(_kernel(run)))
                cells.setdefault((key, at), (run.result, []))[1].append(one)
    subjects = list(dict.fromkeys(key for key, _ in cells))
    entries: dict[Row, tuple[GridCell | None, ...]] = {}
    for name, key in zip(distinct_names(subjects), subjects, strict=True):
        entries[name,] = tuple(
            GridCell(SeedGroup(name, *_of(cells[key, at]))) if (key, at) in cells else None
            for at in range(len(heads))
        )
    return ResultGrid(heads, entries, noise_of_runs([run.result for run in runs], widest=True))


def _of(found: tuple[RunResult, list[CellResult]]) -> tuple[RunResult, tuple[CellResult, ...]]:
    run, cells = found
    return run, tuple(cells)


def _kernel(run: TimedRun) -> RunKernel:
    """Return the run's kernel. Raises InputError for a run that does not say it."""
    if run.result.plan.kernel is None:
        raise InputError(f"{run.name} does not say its kernel in a way that is known here")
    return run.result.plan.kernel


def _asked(kernel: RunKernel) -> str:
    """Return what was asked for, without the commit of a tree: the kernel that a date's newest is."""
    return kernel.spec.partition("@")[0]


def _dates(runs: Sequence[TimedRun]) -> list[str]:
    """Name each run's moment: its day, and the time or a number where that does not tell it from the others."""
    moments = [run.moment for run in runs]
    named = distinct_names([(f"{at[:4]}-{at[4:6]}-{at[6:8]}", f"{at[9:11]}:{at[11:13]}") for at in moments])
    return [
        f"{name} #{named[:at].count(name) + 1}" if named.count(name) > 1 else name
        for at, name in enumerate(named)
    ]


def _subject(one: CellResult) -> tuple[str, ...]:
    """Return what all cells on a line have in common; the first is its name, the others only where they tell."""
    files = files_of(one.inputs, one.end.evaluated_by if one.end else None)
    return *_place(one.cell), *(f"{name} {files.get(name, '')[:HASH]}" for name in FILES)


def _place(cell: Cell) -> tuple[str, ...]:
    return cell.short_label, cell.defaults, cell.machine, " + ".join(cell.drives), cell.accelerator
