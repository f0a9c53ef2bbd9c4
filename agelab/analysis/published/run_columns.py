"""Our runs as columns beside a study. Runs that belong together share one: layouts come in runs of their own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import RunResult, SeedGroup, group_cells, noise_of_runs
from agelab.base.gathered import gathered
from agelab.results.conditions import CHOSEN, EFFORT, QUESTION, SEEDS, apart, between, grouped
from agelab.results.result import Cell, RunPlan
from agelab.scenario import selection
from agelab.scenario.machine import MachineLabel
from agelab.scenario.seeds import CellName, Seeds, seeds_text
from agelab.stats.series import Series

VARIES = SEEDS | EFFORT | {"scenario", "variant", "layout"}
"""Conditions in which the runs of one column differ."""
SHOWN = QUESTION | CHOSEN | {"kernel"}
"""Those that a column says of itself."""

Key = tuple[str, str, str]
"""Scenario, variant, layout."""


@dataclass(frozen=True)
class RunColumn:
    """A column: cells of one scale, clock, set of defaults and kernel."""

    runs: tuple[RunResult, ...]
    apart: str = ""
    """What keeps its runs from an earlier column, beside what a column says of itself; empty where nothing does."""
    values: dict[tuple[str, ...], Series] = field(default_factory=dict, compare=False, repr=False)
    """The values that were asked for, which many claims do of the same (``OurValues``)."""

    @cached_property
    def groups(self) -> Mapping[Key, SeedGroup]:
        """The cells of all run seeds by scenario, variant and layout."""
        groups = group_cells(self.runs, lambda run, cell: (run.plan.scenario, cell.cell.variant, cell.cell.layout))
        return {key: replace(group, host=self._noise[key[0]]) for key, group in groups.items()}

    @cached_property
    def _noise(self) -> Mapping[str, HostNoise]:
        """Scenario to the noise of the hosts of its runs."""
        runs = gathered((run.plan.scenario, run) for run in self.runs)
        return {scenario: noise_of_runs(of_scenario, widest=True) for scenario, of_scenario in runs.items()}

    @property
    def noise_known(self) -> bool:
        """True if A/A of the hosts in the wall clock stands under its claims."""
        return self.plan.clock == "wall" and not self.labels

    @property
    def labels(self) -> list[str]:
        """Labels for its claims: hosts whose noise is not known."""
        return list(dict.fromkeys(line for host in self._noise.values() for line in host.unknown))

    @property
    def plan(self) -> RunPlan:
        """The first run's plan: scale, clock and kernel are the same in all."""
        return self.runs[0].plan

    @property
    def first(self) -> Cell:
        return self.plan.cells[0]

    @property
    def machine(self) -> MachineLabel:
        """The first cell's machine: the end of the band and what was changed of it are the same in all."""
        return MachineLabel.parse(self.first.machine)

    @property
    def names(self) -> list[str]:
        return [run.plan.run for run in self.runs]

    @cached_property
    def shrink(self) -> int | None:
        """The divisor of every size of the study at its scale; None for a scale that the scenario does not have."""
        scales = selection.select(self.plan.scenario).scenario.scales
        return scales[self.plan.scale].shrink if self.plan.scale in scales else None

    @property
    def emulated(self) -> bool:
        """True if its times are an emulated processor's."""
        return any(run.plan.emulated for run in self.runs)

    @property
    def machines(self) -> list[str]:
        return list(dict.fromkeys(cell.machine for cell in self._cells()))

    @property
    def drives(self) -> list[str]:
        return list(dict.fromkeys(drive for cell in self._cells() for drive in cell.drives))

    @property
    def seeds(self) -> list[Seeds]:
        return sorted({cell.seeds for cell in self._cells()})

    @property
    def left_out(self) -> list[str]:
        """The cells that are not ok, each with its reason; those that end alike together."""
        endings = gathered(
            ((group.name, cell.ended), cell.seeds)
            for group in self.groups.values()
            for cell in group.results
            if not cell.ok
        )
        return [f"{name}, {seeds_text(seeds)}: {why}" for (name, why), seeds in endings.items()]

    def differs_in_band(self, other: "RunColumn") -> bool:
        """Return whether nothing but variants, layouts, seeds and the end of the processor's band differs."""
        varies = VARIES | {"band"}
        return not any(between(own.conditions, run.conditions, varies) for own in self.runs for run in other.runs)

    def _cells(self) -> list[Cell]:
        return [cell for run in self.runs for cell in run.plan.cells]


def _measured(run: RunResult) -> set[tuple[str, CellName]]:
    """Return the cells whose samples count, by scenario and name."""
    return {(run.plan.scenario, cell.cell.name) for cell in run.cells if cell.ok}


def run_columns(runs: Iterable[RunResult]) -> list[RunColumn]:
    """Sort the runs into columns, in their order: a column has each cell once."""

    def beside(known: RunResult, run: RunResult) -> bool:
        return _measured(known).isdisjoint((run.plan.scenario, cell.name) for cell in run.plan.cells)

    groups = grouped(runs, VARIES, beside)
    why = apart(groups, VARIES | SHOWN, question=())
    return [RunColumn(tuple(group), why.get(at, "")) for at, group in enumerate(groups)]
