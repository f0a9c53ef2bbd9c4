"""One scenario on several kernels: each metric by variant and kernel, and the changes from one kernel to the next."""

from collections.abc import Sequence
from dataclasses import dataclass

from agelab.analysis.cells import group_cells, load
from agelab.analysis.comparison import side_by_side
from agelab.analysis.host_noise import noise_of_runs
from agelab.analysis.result_grid import GridCell, ResultGrid, Row
from agelab.analysis.run_set import kernel_names
from agelab.base.errors import InputError
from agelab.kernel.debian_kernel import is_version, sort_key
from agelab.results.conditions import EFFORT, KERNEL, SEEDS, apart, grouped
from agelab.results.measure import ALL_STEPS, MEAN, Measure, own_steps
from agelab.results.result import RunKernel
from agelab.results.run_directory import RunDirectory

VARIES = KERNEL | SEEDS | EFFORT | {"variant", "layout"}
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
            groups = (entry.group for row in self.entries.values() for entry in row if entry)
            steps = own_steps(place for group in groups for place in group.series)
            shown[-1:-1] = [Measure(step, MEAN, ALL_STEPS.metric) for step in steps]
        return shown

    def label(self, row: Row) -> str:
        """The head of a row."""
        return next(entry.group.cell.short_label for entry in self.entries[row] if entry)

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
    if len(groups := grouped(runs, VARIES)) > 1:
        raise InputError(
            f"these runs do not belong into one table: {apart(groups, VARIES, question=())[1]}",
            hint=side_by_side(groups[0][0], groups[1][0]),
        )
    if unknown := [run.name for run in runs if run.plan.kernel is None]:
        raise InputError(f"{unknown[0]} does not say its kernel in a way that is known here")
    found = group_cells(runs, lambda run, cell: (cell.variant, cell.layout, run.plan.kernel))
    kernels = tuple(
        sorted(dict.fromkeys(run.plan.kernel for run in runs if run.plan.kernel), key=version_key)
    )
    entries: dict[Row, tuple[GridCell | None, ...]] = {
        (variant, layout): tuple(
            GridCell(found[variant, layout, kernel]) if (variant, layout, kernel) in found else None
            for kernel in kernels
        )
        for variant, layout, _ in found
    }
    return Sweep(kernel_names(kernels), entries, noise_of_runs(runs, widest=True), kernels)


def version_key(kernel: RunKernel) -> tuple[int, ...]:
    """Return what kernels are sorted by: the version, or for an image, whose version is its banner, the release."""
    return sort_key(kernel.version if is_version(kernel.version) else kernel.release)
