"""Our runs as columns beside a study. Runs that belong together share one: layouts come in runs of their own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from agelab.analysis.cells import RunResult, SeedGroup, group_cells
from agelab.analysis.comparability import same_data
from agelab.analysis.host_noise import HostNoise, noise_of_runs
from agelab.model.machine import MachineLabel
from agelab.model.result import Cell, RunPlan
from agelab.model.seeds import Seeds, seeds_text
from agelab.scenario import selection

SHARED = ("kernel", "qemu", "image", "harness", "vcpus", "model")
"""Provenance that the runs of one column have in common."""

Key = tuple[str, str, str]
"""Scenario, variant, layout."""


@dataclass(frozen=True)
class RunColumn:
    """A column: cells of one scale, clock, set of defaults and kernel."""

    runs: tuple[RunResult, ...]

    @cached_property
    def groups(self) -> Mapping[Key, SeedGroup]:
        """The cells of all run seeds by scenario, variant and layout."""
        found = group_cells(self.runs, lambda run, cell: (run.plan.scenario, cell.variant, cell.layout))
        return {key: replace(group, host=self._noise[key[0]]) for key, group in found.items()}

    @cached_property
    def _noise(self) -> Mapping[str, HostNoise]:
        """Scenario to the noise of the hosts of its runs."""
        runs: dict[str, list[RunResult]] = {}
        for run in self.runs:
            runs.setdefault(run.plan.scenario, []).append(run)
        return {scenario: noise_of_runs(found, widest=True) for scenario, found in runs.items()}

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
        found: dict[tuple[str, str], list[Seeds]] = {}
        for group in self.groups.values():
            for one in group.results:
                if not one.ok:
                    found.setdefault((group.name, one.ended), []).append(one.seeds)
        return [f"{name}, {seeds_text(seeds)}: {why}" for (name, why), seeds in found.items()]

    def takes(self, run: RunResult) -> bool:
        """Return whether the run belongs here: it differs in nothing but variants, layouts and seeds."""
        end = MachineLabel.parse(run.plan.cells[0].machine).band_end
        alike = end == self.machine.band_end and self._is_set_up_as(run.plan)
        return alike and all(self._fits(run.plan.scenario, cell) for cell in run.plan.cells)

    def differs_in_band(self, other: "RunColumn") -> bool:
        """Return whether nothing but variants, layouts, seeds and the end of the processor's band differs."""
        ours, theirs = self._machines_and_drives(), other._machines_and_drives()
        same = all(ours[key] == theirs[key] for key in ours.keys() & theirs.keys())
        return same and all(self._is_set_up_as(run.plan) for run in other.runs)

    def _machines_and_drives(self) -> dict[Key, tuple[str, tuple[str, ...]]]:
        """Return the machine, without the end of its band, and the drives of each scenario, variant and layout."""
        return {
            key: (MachineLabel.parse(group.cell.machine).name, group.cell.drives)
            for key, group in self.groups.items()
        }

    def _is_set_up_as(self, plan: RunPlan) -> bool:
        """Return whether a run has our scale, clock, choices and steps."""
        ours = self.plan
        same = (run for run in self.runs if run.plan.scenario == plan.scenario)
        steps = {one.provenance.get("scenario") for one in (plan, *(run.plan for run in same))}
        alike = (ours.scale, ours.clock, _choices(ours)) == (plan.scale, plan.clock, _choices(plan))
        return alike and len(steps) == 1 and all(same_data(run.plan, plan) for run in self.runs)

    def _fits(self, scenario: str, cell: Cell) -> bool:
        """Return whether this cell is not there yet, and its variant has the same machine and drives."""
        for (other, variant, layout), group in self.groups.items():
            if (other, variant) == (scenario, cell.variant):
                one, two = set(group.cell.drives), set(cell.drives)
                if group.cell.machine != cell.machine or not (one <= two or two <= one):
                    return False
                if layout == cell.layout and cell.seeds in group.counted:
                    return False
        return True

    def _cells(self) -> list[Cell]:
        return [cell for run in self.runs for cell in run.plan.cells]


def _choices(plan: RunPlan) -> tuple[object, ...]:
    first = plan.cells[0]
    return (
        first.defaults,
        first.kernel,
        first.accelerator,
        MachineLabel.parse(first.machine).changes,
        *(plan.provenance.get(name) for name in SHARED),
    )


def run_columns(runs: Iterable[RunResult]) -> list[RunColumn]:
    """Sort the runs into columns, in their order."""
    found: list[RunColumn] = []
    for run in runs:
        for number, column in enumerate(found):
            if column.takes(run):
                found[number] = RunColumn((*column.runs, run))
                break
        else:
            found.append(RunColumn((run,)))
    return found
