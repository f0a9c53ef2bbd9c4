"""Results over time: lines over kernels or dates, of runs that differ in nothing else, judged point by point.

Runs with another scenario, guest, harness or QEMU are never on one line, nor are those of this store and of capsules.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import VARIES as IN_ONE_TABLE
from agelab.analysis.cells import (
    CellResult,
    RunResult,
    SeedGroup,
    distinct_names,
    group_cells,
    kernel_names,
    load,
    main_measures,
    noise_of_runs,
)
from agelab.analysis.comparison import side_by_side
from agelab.analysis.judge import judge
from agelab.base.errors import InputError, unknown
from agelab.kernel.debian_kernel import is_version, sort_key
from agelab.results.conditions import (
    EFFORT,
    FILES,
    HASH,
    KERNEL,
    SEEDS,
    apart,
    files_of,
    grouped,
    names,
)
from agelab.results.measure import ALL_STEPS, MEAN, Measure, own_steps
from agelab.results.result import Cell, RunKernel
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import Seeds, seeds_text
from agelab.scenario.step import AGED_MAP
from agelab.stats.series import Series, SeriesPair
from agelab.stats.verdict import ComparedSeries

LAYOUT = Measure(AGED_MAP, MEAN, "layout_score")
"""What is shown unasked of the layout, beside the slowdowns and the sum."""

Row = tuple[str, ...]
"""Variant, layout, and what else tells a subject from the others."""


@dataclass(frozen=True)
class ResultGrid:
    """Subjects in rows, with what was measured of each in every column."""

    names: Sequence[str]
    """The heads of the columns, in their order."""
    entries: Mapping[Row, tuple[SeedGroup | None, ...]]
    """A subject to its cells in each column; None where it was not asked for."""
    host: HostNoise = field(default_factory=HostNoise)
    """The noise of the hosts; the sum of all steps has the largest floor of any of them."""

    @property
    def groups(self) -> list[SeedGroup]:
        """The groups of all rows and columns."""
        return [group for row in self.entries.values() for group in row if group]

    def every(self) -> list[Measure]:
        """List what was measured: each step's mean, and the sum of all steps."""
        groups = self.groups
        means = dict.fromkeys(Measure(step, MEAN, metric) for group in groups for step, metric in group.steps)
        return [*means, *([ALL_STEPS] if any(group.measured(ALL_STEPS) for group in groups) else [])]

    def measures(self) -> list[Measure]:
        """List what is shown unasked, of what was measured."""
        every = self.every()
        slowdowns = [at for at in main_measures(self.groups) if at.metric == "slowdown"]
        shown = [*([LAYOUT] if LAYOUT in every else []), *slowdowns]
        shown += [at for at in every if at.metric not in METRICS]
        return [*shown, *([ALL_STEPS] if ALL_STEPS in every else [])]

    def title(self, measure: Measure) -> str:
        """Name the step of a measure as tables do; nothing where nobody has it."""
        measured = (group.measured(measure) for group in self.groups)
        return next((series.title for series in measured if series), "")

    def series(self, row: Row, column: int, measure: Measure) -> Series | None:
        """Return what was measured there, or None."""
        group = self.entries[row][column]
        series = group.measured(measure) if group else None
        return series if series and series.values else None

    def changes(self, measure: Measure) -> dict[tuple[Row, int], ComparedSeries]:
        """Judge each cell of a table against the last column before that has a value; all are one family."""
        pairs: dict[tuple[Row, int], SeriesPair] = {}
        for row in self.entries:
            before: Series | None = None
            for column in range(len(self.names)):
                now = self.series(row, column, measure)
                if now and before:
                    pairs[row, column] = SeriesPair(before, now)
                before = now or before
        return dict(zip(pairs, judge([*pairs.values()], self.host), strict=True))


def chosen_measures(grids: Sequence[ResultGrid], asked: Sequence[str]) -> list[Measure]:
    """Return the measures that the words ask for, or those shown unasked.

    Raises InputError for one that none of the grids has.
    """
    if not asked:
        return list(dict.fromkeys(measure for grid in grids for measure in grid.measures()))
    groups = [group for grid in grids for group in grid.groups]
    chosen = list(dict.fromkeys(Measure.parse(words) for words in asked))
    for measure in chosen:
        if not any(group.measured(measure) for group in groups):
            raise unknown("metric", str(measure), [str(at) for grid in grids for at in grid.every()])
    return chosen


OF_A_SWEEP = KERNEL | SEEDS | EFFORT | {"variant", "layout"}
"""Conditions in which the runs of a table differ."""


@dataclass(frozen=True)
class Sweep(ResultGrid):
    """The runs of one scenario, kernel by kernel in the order of their versions; rows are variant and layout."""

    kernels: tuple[RunKernel, ...] = ()
    """The columns."""

    def measures(self) -> list[Measure]:
        """List what is shown unasked: the times of the scenario's own steps, too, before their sum."""
        shown = super().measures()
        if ALL_STEPS in shown:
            steps = own_steps(place for group in self.groups for place in group.series)
            shown[-1:-1] = [Measure(step, MEAN, ALL_STEPS.metric) for step in steps]
        return shown

    def label(self, row: Row) -> str:
        """The head of a row."""
        return next(group.cell.short_label for group in self.entries[row] if group)

    def last_seen(self, row: Row) -> str | None:
        """Return the newest kernel on which a variant ran that the last one does not support; None for others."""
        entries = self.entries[row]
        if entries[-1] is None or not entries[-1].unsupported:
            return None
        ran = [
            name for name, entry in zip(self.names, entries, strict=True) if entry and not entry.unsupported
        ]
        return ran[-1] if ran else ""


def load_sweep(directories: Sequence[RunDirectory]) -> Sweep:
    """Put runs into one table. Raises InputError for runs that do not belong into one."""
    runs = [load(directory) for directory in directories]
    if empty := [run.name for run in runs if not run.cells]:
        raise InputError(f"{empty[0]} has no cells: there is nothing to put into a table")
    if len(groups := grouped(runs, OF_A_SWEEP)) > 1:
        raise InputError(
            f"these runs do not belong into one table: {apart(groups, OF_A_SWEEP, question=())[1]}",
            hint=side_by_side(groups[0][0], groups[1][0]),
        )
    kernels = tuple(sorted(dict.fromkeys(map(_kernel, runs)), key=version_key))
    seed_groups = group_cells(runs, lambda run, cell: (cell.cell.variant, cell.cell.layout, run.plan.kernel))
    entries: dict[Row, tuple[SeedGroup | None, ...]] = {
        (variant, layout): tuple(seed_groups.get((variant, layout, kernel)) for kernel in kernels)
        for variant, layout, _ in seed_groups
    }
    return Sweep(kernel_names(kernels), entries, noise_of_runs(runs, widest=True), kernels)


def version_key(kernel: RunKernel) -> tuple[int, ...]:
    """Return what kernels are sorted by: the version, or for an image, whose version is its banner, the release."""
    return sort_key(kernel.version if is_version(kernel.version) else kernel.release)


VARIES = IN_ONE_TABLE | {"files", "profiles"}
"""Conditions in which joined runs differ; a line has one value of each that is no kernel and no seed."""


class Axis(StrEnum):
    """What results are shown over."""

    KERNEL = "kernel"
    DATE = "date"


@dataclass(frozen=True)
class JoinedRuns:
    """Runs that differ in kernel, date, variants and seeds alone: their lines, over kernels or dates."""

    runs: tuple[RunResult, ...]
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
        omitted: dict[tuple[str, str, str], list[Seeds]] = {}
        for run in self.runs:
            for cell in run.cells:
                if not cell.ok:
                    omitted.setdefault((run.name, cell.cell.short_label, cell.ended), []).append(cell.seeds)
        for (run_name, label, why), seeds in omitted.items():
            yield f"{run_name}, {label}, {seeds_text(seeds)}: {why}"


@dataclass(frozen=True)
class OverTime:
    """Results over kernels or dates."""

    axis: Axis
    joined: tuple[JoinedRuns, ...]

    @property
    def apart(self) -> Iterator[str]:
        """Say of runs of one question and one origin what keeps them off each other's lines."""
        for origin in dict.fromkeys(joined.runs[0].origin for joined in self.joined):
            yield from apart(
                [joined.runs for joined in self.joined if joined.runs[0].origin == origin], VARIES
            ).values()


def over_time(runs: Sequence[RunResult], axis: Axis) -> OverTime:
    """Put runs on lines. Raises InputError where no line would have two points."""
    if not any(cell.ok for run in runs for cell in run.cells):
        raise InputError(f"no cell of {names(runs)} is ok: there is nothing to show")
    groups = grouped(runs, VARIES, lambda known, run: known.origin == run.origin)
    joined = OverTime(axis, tuple(JoinedRuns(tuple(group), _grid(group, axis)) for group in groups))
    if not any(sum(map(bool, row)) > 1 for part in joined.joined for row in part.grid.entries.values()):
        raise InputError(_nothing_to_compare(joined), hint=_instead(joined))
    return joined


def _nothing_to_compare(results: OverTime) -> str:
    if why := next(results.apart, None):
        return f"nothing to compare: no two of these runs belong on one line: {why}"
    heads = dict.fromkeys(name for part in results.joined for name in part.grid.names)
    return f"nothing to compare: no line has two {results.axis}s, there is {', '.join(heads)}"


def _instead(results: OverTime) -> str:
    if any(results.apart):
        return side_by_side(*(group.runs[0] for group in results.joined[:2]))
    runs = sum(len(part.runs) for part in results.joined)
    if results.axis is Axis.KERNEL and runs > 1:
        return "over the dates of the runs: --by date"
    if results.axis is Axis.DATE:
        return "name runs of one kernel on several dates; over kernels: --by kernel"
    return "name runs of other kernels, as agelab run SCENARIO --kernel A --kernel B makes them"


def _grid(runs: Sequence[RunResult], axis: Axis) -> ResultGrid:
    """Sort the cells that are ok into lines and columns."""
    columns: dict[Any, int] = {}
    heads: Sequence[str]
    if axis is Axis.KERNEL:
        kernels = sorted(dict.fromkeys(_kernel(run) for run in runs), key=version_key)
        heads, columns = kernel_names(kernels), {kernel: at for at, kernel in enumerate(kernels)}
    else:
        runs = sorted(runs, key=lambda run: (run.moment, run.name))
        heads, columns = _dates(runs), {run.name: at for at, run in enumerate(runs)}

    def key(run: RunResult, cell: CellResult) -> tuple[tuple[str, ...], int] | None:
        """Return the line and the column of a cell; None for one that is not ok."""
        if not cell.ok:
            return None
        if axis is Axis.KERNEL:
            return (*_subject(cell), ""), columns[_kernel(run)]
        return (*_subject(cell), _asked(_kernel(run))), columns[run.name]

    groups = group_cells(runs, key)
    subjects = list(dict.fromkeys(subject for subject, _ in groups))
    entries: dict[Row, tuple[SeedGroup | None, ...]] = {
        (name,): tuple(
            replace(groups[subject, at], name=name) if (subject, at) in groups else None
            for at in range(len(heads))
        )
        for name, subject in zip(distinct_names(subjects), subjects, strict=True)
    }
    return ResultGrid(heads, entries, noise_of_runs(runs, widest=True))


def _kernel(run: RunResult) -> RunKernel:
    """Return the run's kernel. Raises InputError for a run that does not say it."""
    if run.plan.kernel is None:
        raise InputError(f"{run.name} does not say its kernel in a way that is known here")
    return run.plan.kernel


def _asked(kernel: RunKernel) -> str:
    """Return what was asked for, without the commit of a tree: the kernel that a date's newest is."""
    return kernel.spec.partition("@")[0]


def _dates(runs: Sequence[RunResult]) -> list[str]:
    """Name each run's moment: its day, and the time or a number where that does not tell it from the others."""
    moments = [run.moment for run in runs]
    named = distinct_names([(f"{at[:4]}-{at[4:6]}-{at[6:8]}", f"{at[9:11]}:{at[11:13]}") for at in moments])
    return [
        f"{name} #{named[:at].count(name) + 1}" if named.count(name) > 1 else name
        for at, name in enumerate(named)
    ]


def _subject(cell: CellResult) -> tuple[str, ...]:
    """Return what all cells on a line have in common; the first is its name, the others only where they tell."""
    files = files_of(cell.inputs, cell.end.evaluated_by if cell.end else None)
    return *_place(cell.cell), *(f"{name} {files.get(name, '')[:HASH]}" for name in FILES)


def _place(cell: Cell) -> tuple[str, ...]:
    return cell.short_label, cell.defaults, cell.machine, " + ".join(cell.drives), cell.accelerator
