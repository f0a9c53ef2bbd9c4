"""One scenario on several kernels: each metric by variant and kernel, and the changes from one kernel to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from agelab.analysis.cells import CellResult, SeedGroup, group_cells, load
from agelab.analysis.comparability import same_data
from agelab.analysis.host_noise import HostNoise, noise_of_runs
from agelab.analysis.judge import judge
from agelab.analysis.run_set import kernel_names
from agelab.errors import InputError
from agelab.kernel.versions import is_version, sort_key
from agelab.model.metrics import METRICS
from agelab.model.result import RunKernel, RunPlan, Sample, Status
from agelab.model.step_id import AGED_MAP
from agelab.results.run_directory import RunDirectory
from agelab.stats.order_statistics import exact
from agelab.stats.series import Place, Series, SeriesPair, series
from agelab.stats.verdict import ComparedSeries

TOTAL: Place = ("all steps", 1, "elapsed")
"""The sum of the times of a cell's steps."""
DEFAULT = ((AGED_MAP, "layout_score"), ("", "slowdown"))
"""Step and metric to show unasked, beside the sum; without a step those of every step."""

Row = tuple[str, str]
"""Variant and layout."""


@dataclass(frozen=True)
class SweepCell:
    """A variant on a kernel."""

    group: SeedGroup

    @cached_property
    def measured(self) -> Mapping[Place, Series]:
        """Its series, with the sum of all steps."""
        cells = ((seeds, with_total(one.samples)) for seeds, one in self.group.counted.items())
        return series(cells, self.group.own_metrics)

    @property
    def why(self) -> str:
        """The reasons of cells that are not ok."""
        return "; ".join(dict.fromkeys(one.ended for one in self._left_out))

    @property
    def unsupported(self) -> bool:
        statuses = {one.end.status if one.end else None for one in self._left_out}
        return statuses == {Status.UNSUPPORTED}

    @property
    def _left_out(self) -> list[CellResult]:
        return [one for one in self.group.results if not one.ok]


@dataclass(frozen=True)
class Sweep:
    """The runs of one scenario, kernel by kernel in the order of their versions."""

    kernels: tuple[RunKernel, ...]
    """The columns."""
    entries: Mapping[Row, tuple[SweepCell | None, ...]]
    """Variant and layout to what there is on each kernel; None where it was not asked for."""
    host: HostNoise = field(default_factory=HostNoise)
    """The noise of the hosts; the sum of all steps has the largest floor of any of them."""

    @property
    def names(self) -> list[str]:
        """The heads of the columns."""
        return kernel_names(self.kernels)

    def label(self, row: Row) -> str:
        """The head of a row."""
        return next(entry.group.cell.short_label for entry in self.entries[row] if entry)

    def places(self) -> list[Place]:
        """List what is shown unasked, of what was measured."""
        every = dict.fromkeys(
            place for row in self.entries.values() for entry in row if entry for place in entry.measured
        )
        shown = [at for step, metric in DEFAULT for at in every if at[2] == metric and step in ("", at[0])]
        shown += [at for at in every if at[2] not in METRICS]
        return [*shown, *([TOTAL] if TOTAL in every else [])]

    def series(self, row: Row, column: int, place: Place) -> Series | None:
        """Return what was measured there, or None."""
        entry = self.entries[row][column]
        found = entry.measured.get(place) if entry else None
        return found if found and found.values else None

    def changes(self, place: Place) -> dict[tuple[Row, int], ComparedSeries]:
        """Judge each cell of a table against the last kernel before that has a value; all are one family."""
        found: dict[tuple[Row, int], SeriesPair] = {}
        for row in self.entries:
            before: Series | None = None
            for column in range(len(self.kernels)):
                now = self.series(row, column, place)
                if now and before:
                    found[row, column] = SeriesPair(before, now)
                before = now or before
        return dict(zip(found, judge([*found.values()], self.host), strict=True))

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
    kinds = {(run.plan.scenario, run.plan.scale, run.plan.clock, run.plan.cells[0].defaults) for run in runs}
    if len(kinds) > 1:
        said = "; ".join(", ".join(kind) for kind in sorted(kinds))
        raise InputError(f"these runs do not belong into one table: {said}")
    _must_be_alike([run.plan for run in runs])
    if unknown := [run.name for run in runs if run.plan.kernel is None]:
        raise InputError(f"{unknown[0]} does not say its kernel in a way that is known here")
    found = group_cells(runs, lambda run, cell: (cell.variant, cell.layout, run.plan.kernel))
    kernels = tuple(sorted(dict.fromkeys(run.plan.kernel for run in runs if run.plan.kernel), key=_version))
    entries = {
        (variant, layout): tuple(
            SweepCell(found[variant, layout, kernel]) if (variant, layout, kernel) in found else None
            for kernel in kernels
        )
        for variant, layout, _ in found
    }
    return Sweep(kernels, entries, noise_of_runs(runs, widest=True))


def _must_be_alike(plans: Sequence[RunPlan]) -> None:
    """Raise InputError where something else than the kernel would be seen as a kernel's change."""
    said: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell in (cell for plan in plans for cell in plan.cells):
        conditions = {
            "machine": cell.machine,
            "drives": ", ".join(cell.drives),
            "accelerator": cell.accelerator,
        }
        for what, value in conditions.items():
            said.setdefault((cell.variant, cell.layout, what), {})[value] = None
    for (variant, _, what), values in said.items():
        if len(values) > 1:
            raise InputError(
                f"these runs do not belong into one table: {variant} has {what} {'; '.join(values)}"
            )
    if any(not same_data(one, other) for one, other in combinations(plans, 2)):
        raise InputError(
            "these runs do not belong into one table: their corpora differ",
            hint="which inputs differ says: agelab compare",
        )


def _version(kernel: RunKernel) -> tuple[int, ...]:
    """Return what kernels are sorted by: the version, or for an image, whose version is its banner, the release."""
    return sort_key(kernel.version if is_version(kernel.version) else kernel.release)


def with_total(rows: Sequence[Sample]) -> Sequence[Sample]:
    """Return a cell's samples with the sum of the times of its steps."""
    step, repetition, metric = TOTAL
    elapsed = [exact(row.value) for row in rows if row.metric == metric and row.value is not None]
    if not elapsed:
        return rows
    total = round(float(sum(elapsed)), 6)
    return [*rows, Sample(step=step, metric=metric, value=total, unit="s", repetition=repetition)]
