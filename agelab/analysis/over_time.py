"""Results over time: lines over kernels or dates, of runs that differ in nothing else, judged point by point.

Runs with another scenario, guest, harness or QEMU are never on one line, nor are those of this store and of capsules.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from agelab.analysis.cell_diff import PHASES
from agelab.analysis.cells import CellResult, RunResult, SeedGroup
from agelab.analysis.comparability import same_data
from agelab.analysis.host_noise import noise_of_runs
from agelab.analysis.result_grid import GridCell, ResultGrid, Row
from agelab.analysis.run_set import distinct_names, kernel_names
from agelab.analysis.sweep import version_key
from agelab.errors import InputError
from agelab.model.measure import Measure
from agelab.model.result import Cell, RunKernel
from agelab.model.seeds import Seeds, seeds_text
from agelab.stats.formatting import name_some
from agelab.stats.verdict import ComparedSeries
from agelab.store import key_of

CONDITIONS = {
    "steps of the scenario": "scenario",
    "harness": "harness",
    "QEMU": "qemu",
    "processors": "vcpus",
    "files brought along": "brought",
}
"""What runs on one line have in common, beside the guest's packages, and its name in a plan's provenance."""
NAMED = 4
"""Runs to name in a line."""
HASH = 12
"""Characters of a hash to show."""


class Axis(StrEnum):
    """What results are shown over."""

    KERNEL = "kernel"
    DATE = "date"


@dataclass(frozen=True)
class TimedRun:
    """A run, of this store or from a capsule."""

    result: RunResult
    guest: str = ""
    """The hash of the guest's packages; empty where the run does not say."""
    origin: str = ""
    """Whose it is; empty for a run of this store."""

    @property
    def name(self) -> str:
        return self.result.plan.run

    @property
    def kind(self) -> tuple[str, ...]:
        """The question that it asks, and whose answer it is."""
        plan = self.result.plan
        return plan.scenario, plan.scale, plan.clock, "emulated" * plan.emulated, self.origin

    @cached_property
    def conditions(self) -> dict[str, str]:
        """What must be the same in all runs on a line, by name."""
        plan = self.result.plan
        said = {name: str(plan.provenance.get(key, "")) for name, key in CONDITIONS.items()}
        if plan.clock == "wall":
            said["host"] = str(plan.provenance.get("host", ""))
        return {**said, "packages of the guest": self.guest}

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
        for number, group in enumerate(self.joined):
            first = next(one for one in self.joined if one.runs[0].kind == group.runs[0].kind)
            if first is not self.joined[number]:
                ours, theirs = first.runs[0], group.runs[0]
                yield f"{names(group.runs)} | {names(first.runs)}: {'; '.join(_differences(theirs, ours))}"


def names(runs: Sequence[TimedRun]) -> str:
    """Name runs, the first of many."""
    return name_some([run.name for run in runs], NAMED)


def over_time(runs: Sequence[TimedRun], axis: Axis) -> OverTime:
    """Put runs on lines. Raises InputError where no line would have two points."""
    if not any(one.ok for run in runs for one in run.result.cells):
        raise InputError(f"no cell of {names(runs)} is ok: there is nothing to show")
    found: list[list[TimedRun]] = []
    for run in runs:
        group = next((group for group in found if all(_belong(run, one) for one in group)), None)
        if group is None:
            found.append([run])
        else:
            group.append(run)
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
    runs = sum(len(one.runs) for one in found.joined)
    if found.axis is Axis.KERNEL and runs > 1:
        return "over the dates of the runs: --by date"
    if found.axis is Axis.DATE:
        return "name runs of one kernel on several dates; over kernels: --by kernel"
    return "name runs of other kernels, as agelab run SCENARIO --kernel A --kernel B makes them"


def _belong(run: TimedRun, other: TimedRun) -> bool:
    return run.kind == other.kind and not any(_differences(run, other))


def _differences(run: TimedRun, other: TimedRun) -> Iterator[str]:
    """Say in what two runs of one question differ that keeps them off one line."""
    for name, value in run.conditions.items():
        if value != other.conditions.get(name):
            yield f"{name} {_shown(value)} | {_shown(other.conditions.get(name, ''))}"
    if not same_data(run.result.plan, other.result.plan):
        yield "data"


def _shown(value: str) -> str:
    is_hash = len(value) == 64 and not value.strip("0123456789abcdef")
    return value[:HASH] if is_hash else value or "not stated"


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
    parts = [part for part in (one.inputs, *map(one.inputs.get, PHASES)) if isinstance(part, Mapping)]

    def found(name: str) -> Any:
        return next((part[name] for part in parts if name in part), None)

    module, drives = found("drive_module"), found("drives")
    drives = drives if isinstance(drives, list) else []
    files = {
        "machine's file": found("machine"),
        "drives' files": [drive.get("profile") for drive in drives if isinstance(drive, Mapping)],
        "drive's sources": module.get("sources") if isinstance(module, Mapping) else None,
        "QEMU's files": found("qemu"),
        "guest's programs": found("tools"),
        "evaluated by": one.end.evaluated_by if one.end else None,
    }
    return *_place(one.cell), *(f"{name} {key_of(what)[:HASH]}" for name, what in files.items())


def _place(cell: Cell) -> tuple[str, ...]:
    return cell.short_label, cell.defaults, cell.machine, " + ".join(cell.drives), cell.accelerator
