"""Runs of one scenario on several kernels in one table, each column judged against the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import RunResult, SeedGroup, group_cells, kernel_names, load, main_measures, noise_of_runs
from agelab.analysis.comparison import side_by_side
from agelab.analysis.judge import judge
from agelab.base.errors import InputError, unknown
from agelab.kernel.debian_kernel import is_version, sort_key
from agelab.results.conditions import EFFORT, KERNEL, SEEDS, apart, grouped
from agelab.results.measure import ALL_STEPS, MEAN, Measure, own_steps
from agelab.results.result import RunKernel
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import METRICS
from agelab.scenario.step import AGED_MAP
from agelab.stats.series import Series, SeriesPair
from agelab.stats.verdict import ComparedSeries

LAYOUT = Measure(AGED_MAP, MEAN, "layout_score")
"""What is shown unasked of the layout, beside the slowdowns and the sum."""

Row = tuple[str, str]
"""Variant and layout."""


OF_A_SWEEP = KERNEL | SEEDS | EFFORT | {"variant", "layout"}
"""Conditions in which the runs of a table differ."""


@dataclass(frozen=True)
class Sweep:
    """The runs of one scenario, kernel by kernel in the order of their versions; rows are variant and layout."""

    names: Sequence[str]
    """The heads of the columns, in their order."""
    entries: Mapping[Row, tuple[SeedGroup | None, ...]]
    """A subject to its cells in each column; None where it was not asked for."""
    host: HostNoise = field(default_factory=HostNoise)
    """The noise of the hosts; the sum of all steps has the largest floor of any of them."""
    kernels: tuple[RunKernel, ...] = ()
    """The columns."""

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
        """List what is shown unasked: the times of the scenario's own steps, too, before their sum."""
        every = self.every()
        slowdowns = [at for at in main_measures(self.groups) if at.metric == "slowdown"]
        shown = [*([LAYOUT] if LAYOUT in every else []), *slowdowns]
        shown += [at for at in every if at.metric not in METRICS]
        if ALL_STEPS not in every:
            return shown
        steps = own_steps(place for group in self.groups for place in group.series)
        return [*shown, *(Measure(step, MEAN, ALL_STEPS.metric) for step in steps), ALL_STEPS]

    def chosen(self, asked: Sequence[str]) -> list[Measure]:
        """Return the measures that the words ask for, or those shown unasked. Raises InputError for an unknown one."""
        chosen = list(dict.fromkeys(map(Measure.parse, asked)))
        for measure in chosen:
            if not any(group.measured(measure) for group in self.groups):
                raise unknown("metric", str(measure), [str(at) for at in self.every()])
        return chosen or self.measures()

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

    def label(self, row: Row) -> str:
        """The head of a row."""
        return next(group.cell.short_label for group in self.entries[row] if group)

    def last_seen(self, row: Row) -> str | None:
        """Return the newest kernel on which a variant ran that the last one does not support; None for others."""
        entries = self.entries[row]
        if entries[-1] is None or not entries[-1].unsupported:
            return None
        ran = [name for name, entry in zip(self.names, entries, strict=True) if entry and not entry.unsupported]
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


def _kernel(run: RunResult) -> RunKernel:
    """Return the run's kernel. Raises InputError for a run that does not say it."""
    if run.plan.kernel is None:
        raise InputError(f"{run.name} does not say its kernel in a way that is known here")
    return run.plan.kernel
