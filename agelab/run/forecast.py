"""What a run would take and could find, by what earlier runs of this store took and measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.analysis.cells import RunResult, SeedGroup, load, main_measures
from agelab.analysis.spread import MetricSpread, measured_groups, spread
from agelab.base.errors import InputError, unknown
from agelab.results import run_lookup
from agelab.results.measure import ALL_STEPS, Measure
from agelab.results.result import Cell
from agelab.run.cell_times import Took, asked_conditions, cells_under
from agelab.run.prepare import input_data
from agelab.run.prepare.planned import cell_of, planned_cells
from agelab.run.request.option_fields import Design
from agelab.run.request.options import RunOptions
from agelab.run.request.resolve import resolve
from agelab.run.request.step_names import require_measure
from agelab.stats.power import smallest_difference

MORE_RUNS = (5, 10, 20)
"""Run seeds to look at beside those that are asked for."""


@dataclass(frozen=True)
class DesignSize:
    """How many seeds a run has."""

    runs: int
    corpora: int
    design: Design = "crossed"

    @property
    def cells(self) -> int:
        """The cells of each variant and layout."""
        return self.runs if self.design == "paired" else self.runs * self.corpora

    @property
    def difference(self) -> float | None:
        """The smallest difference that it finds, in standard deviations; None where it finds none."""
        per_block, blocks = (1, self.corpora) if self.design == "paired" else (self.runs, self.corpora)
        return smallest_difference(per_block, blocks)


@dataclass(frozen=True)
class Basis:
    """The earlier run from whose spread it is said what can be found."""

    run: RunResult
    groups: Sequence[SeedGroup]
    spreads: Mapping[Measure, MetricSpread | None]
    """For each measure that is asked about; None where the run has too few values of it."""
    without: Sequence[str]
    """Variants that are asked for and that it lacks."""


@dataclass(frozen=True)
class Forecast:
    """A run before it is made."""

    options: RunOptions
    scenario: str
    scale: str
    cells: Sequence[Cell]
    before: Took
    """Cells like these that have ended before."""
    basis: Basis | None
    sizes: Sequence[DesignSize]
    """The size asked for, and some larger ones."""

    @property
    def asked(self) -> DesignSize:
        return DesignSize(len(self.options.seeds), len(self.options.corpora), self.options.design)

    def cells_of(self, size: DesignSize) -> list[Cell]:
        """Return as many cells as a run of that size has, each like one of those asked for."""
        kinds = {(cell.variant, cell.layout): cell for cell in self.cells}
        return [cell for cell in kinds.values() for _ in range(size.cells)]


def forecast(options: RunOptions, runs: Path, measures: Sequence[Measure]) -> Forecast:
    """Say what a run would be. Without ``measures`` it is about what the scenario is about, and its time.

    Raises InputError for options that make no run, and for a measure that the earlier run does not have.
    """
    request = resolve(options)
    for measure in measures:
        require_measure(measure, request.selection)
    scenario, scale = request.selection.scenario.name, input_data.scale_name(request)
    cells = [cell_of(spec, request.kernel) for spec in planned_cells(options)]
    before: Took = ()
    for accelerator in ("kvm", "tcg"):  # in the wall clock a host has KVM, or has it not
        like = asked_conditions(scenario, scale, options, cells, accelerator)
        before = before or list(cells_under(like, runs))
    basis = _basis(runs, scenario, scale, options, cells, measures)
    asked = DesignSize(len(options.seeds), len(options.corpora), options.design)
    return Forecast(options, scenario, scale, cells, before, basis, _sizes(asked))


def _sizes(asked: DesignSize) -> list[DesignSize]:
    """Return the size asked for, more run seeds, and twice as many corpora."""
    runs = sorted({asked.runs, *(more for more in MORE_RUNS if more > asked.runs)})
    if asked.design == "paired":
        return [DesignSize(number, number, "paired") for number in runs]
    return [DesignSize(number, corpora) for corpora in (asked.corpora, 2 * asked.corpora) for number in runs]


def _basis(
    runs: Path,
    scenario: str,
    scale: str,
    options: RunOptions,
    cells: Sequence[Cell],
    measures: Sequence[Measure],
) -> Basis | None:
    """Return the newest run of the scenario, at the scale and in the clock, with seeds enough for a spread."""
    wanted = list(dict.fromkeys(cell.variant for cell in cells))
    for directory in reversed(run_lookup.all_runs(runs)):
        try:
            plan = directory.plan()
            if (plan.scenario, plan.scale, plan.clock) != (scenario, scale, options.guest_clock):
                continue
            run = load(directory)
        except InputError:  # a damaged one
            continue
        groups = [group for group in measured_groups(run) if group.variant in wanted]
        if not groups:
            continue
        asked = measures or dict.fromkeys([*main_measures(groups)[:1], ALL_STEPS])
        spreads = {measure: spread(groups, measure) for measure in asked}
        if measures and (strange := next((at for at in measures if spreads[at] is None), None)):
            there = dict.fromkeys(":".join(at) for group in groups for at in group.steps)
            raise unknown(f"metric of {run.name}", str(strange), [*there, str(ALL_STEPS)])
        known = {group.variant for group in groups}
        return Basis(run, groups, spreads, [name for name in wanted if name not in known])
    return None
