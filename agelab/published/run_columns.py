"""Runs of ours as columns: those that belong together are one, since layouts and variants come in runs of their own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from agelab.analysis.host_noise import HostNoise, noise_of_runs
from agelab.model.result import Cell, End, RunPlan, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.stats.order_statistics import exact

SHARED = ("kernel", "qemu", "image", "corpus_sha256", "harness", "vcpus", "model")
"""Provenance that the runs of one side have in common."""


@dataclass(frozen=True)
class LoadedRun:
    """A run as it lies on disk."""

    directory: RunDirectory
    plan: RunPlan
    ends: Sequence[End | None]
    samples: Mapping[int, Sequence[Sample]]
    going_on: bool = False


@dataclass(frozen=True)
class StudyCell:
    """One cell of a run."""

    cell: Cell
    end: End | None
    samples: Sequence[Sample]
    going_on: bool = False
    """Whether its run is."""

    @property
    def ok(self) -> bool:
        return self.end is not None and self.end.status is Status.OK

    @property
    def why(self) -> str:
        """How it ended, in words."""
        if self.going_on and (self.end is None or self.end.status is Status.INTERRUPTED):
            return "the run is still going on"
        if self.end is None:
            return "interrupted: it has no end record"
        return self.end.status + (f": {self.end.reason}" if self.end.reason else "")

    @cached_property
    def by_place(self) -> Mapping[tuple[str, str], Mapping[int, Sample]]:
        """Step and metric to the sample of each repetition."""
        found: dict[tuple[str, str], dict[int, Sample]] = {}
        for sample in self.samples:
            found.setdefault((sample.step, sample.metric), {})[sample.repetition] = sample
        return found

    def series(self, step: str, metric: str) -> list[Fraction] | str:
        """The values of all repetitions in their order, or why one is missing."""
        samples = self.by_place.get((step, metric))
        if not samples:
            return f"{self.cell.variant}, {self.cell.layout} has no {metric} of step {step}"
        for number, sample in sorted(samples.items()):
            if sample.value is None:
                return f"{step} {number} {metric}: {sample.not_measured or 'not measured'}"
        return [exact(sample.value or 0) for _, sample in sorted(samples.items())]


Key = tuple[str, str, str]
"""Scenario, variant, layout."""


@dataclass(frozen=True)
class RunColumn:
    """A column: cells of one scale, clock, set of defaults and kernel."""

    runs: tuple[LoadedRun, ...]

    @cached_property
    def cells(self) -> Mapping[Key, Sequence[StudyCell]]:
        """Scenario, variant and layout to the cells of all run seeds."""
        found: dict[Key, list[StudyCell]] = {}
        for run in self.runs:
            for number, cell in enumerate(run.plan.cells):
                ran = StudyCell(cell, run.ends[number], run.samples.get(number, ()), run.going_on)
                found.setdefault((run.plan.scenario, cell.variant, cell.layout), []).append(ran)
        return found

    @cached_property
    def hosts(self) -> Mapping[str, HostNoise]:
        """Scenario to the noise of the hosts of its runs."""
        runs: dict[str, list[tuple[RunDirectory, RunPlan]]] = {}
        for run in self.runs:
            runs.setdefault(run.plan.scenario, []).append((run.directory, run.plan))
        return {scenario: noise_of_runs(found, widest=True) for scenario, found in runs.items()}

    @property
    def noise_known(self) -> bool:
        """Whether A/A of the hosts in the wall clock stands under its claims."""
        return self.plan.clock == "wall" and not self.labels

    @property
    def labels(self) -> list[str]:
        """What must be said of the floors under its claims: whose noise is not known."""
        return list(dict.fromkeys(line for host in self.hosts.values() for line in host.unknown))

    @property
    def plan(self) -> RunPlan:
        """The first run's: scale, clock and kernel are the same in all."""
        return self.runs[0].plan

    @property
    def first(self) -> Cell:
        return self.plan.cells[0]

    @property
    def names(self) -> list[str]:
        return [run.plan.run for run in self.runs]

    @property
    def emulated(self) -> bool:
        """Whether its times are an emulated processor's."""
        return any(run.plan.emulated for run in self.runs)

    @property
    def machines(self) -> list[str]:
        return list(dict.fromkeys(cell.machine for cell in self._every()))

    @property
    def drives(self) -> list[str]:
        return list(dict.fromkeys(drive for cell in self._every() for drive in cell.drives))

    @property
    def seeds(self) -> list[int]:
        return sorted({cell.seed for cell in self._every()})

    @property
    def left_out(self) -> list[str]:
        """The cells that are not ok, each with its reason; those that end alike together."""
        found: dict[tuple[str, str], list[str]] = {}
        for (_, variant, layout), cells in self.cells.items():
            for ran in cells:
                if not ran.ok:
                    found.setdefault((f"{variant}, {layout}", ran.why), []).append(str(ran.cell.seed))
        return [
            f"{name}, seed{'s' if len(seeds) > 1 else ''} {','.join(seeds)}: {why}"
            for (name, why), seeds in found.items()
        ]

    def takes(self, run: LoadedRun) -> bool:
        """Whether the run's cells belong here: the same in all that is no variant, layout or run seed."""
        ours, theirs = self.plan, run.plan
        alike = (ours.scale, ours.clock, _choices(ours)) == (theirs.scale, theirs.clock, _choices(theirs))
        same = (run for run in self.runs if run.plan.scenario == theirs.scenario)
        steps = {plan.provenance.get("scenario") for plan in (theirs, *(run.plan for run in same))}
        return alike and len(steps) == 1 and all(self._fits(theirs.scenario, cell) for cell in theirs.cells)

    def _fits(self, scenario: str, cell: Cell) -> bool:
        """Whether no such cell is there, and the same variant has the same machine and drives."""
        for (other, variant, layout), cells in self.cells.items():
            if (other, variant) == (scenario, cell.variant):
                there = cells[0].cell
                one, two = set(there.drives), set(cell.drives)
                if there.machine != cell.machine or not (one <= two or two <= one):
                    return False
                if layout == cell.layout and any(ran.ok and ran.cell.seed == cell.seed for ran in cells):
                    return False
        return True

    def _every(self) -> list[Cell]:
        return [cell for run in self.runs for cell in run.plan.cells]


def _choices(plan: RunPlan) -> tuple[object, ...]:
    first = plan.cells[0]
    return (first.defaults, first.kernel, first.accelerator, *(plan.provenance.get(name) for name in SHARED))


def sides(runs: Iterable[LoadedRun]) -> list[RunColumn]:
    """The runs as columns, in their order."""
    found: list[RunColumn] = []
    for run in runs:
        for number, side in enumerate(found):
            if side.takes(run):
                found[number] = RunColumn((*side.runs, run))
                break
        else:
            found.append(RunColumn((run,)))
    return found
