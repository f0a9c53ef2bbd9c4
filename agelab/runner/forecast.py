"""What a run would take, by what such cells took in earlier runs of this store."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.results.result import Cell
from agelab.runner.cell_times import Took, asked_conditions, cells_under
from agelab.runner.plan.cell_spec import cell_of
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve


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
