"""The model of results: cells as their runs left them, runs, groups of cells of other seeds, runs of one question."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from agelab.analysis.calibration import HostNoise, host_floors
from agelab.results.cell_samples import CellSamples, Place
from agelab.results.conditions import CHOSEN, EFFORT, KERNEL, SEEDS, Conditions, apart, files_of, grouped, not_timed
from agelab.results.measure import ALL_STEPS, MEAN, Measure, own_steps
from agelab.results.result import Cell, End, RunKernel, RunPlan, Sample, Status
from agelab.results.rows import status_of
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import Metric
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Number, Series, StepMeans, exact_sum, series

GroupKey = TypeVar("GroupKey")


@dataclass(frozen=True)
class CellResult:
    """One cell as its run left it."""

    run: str
    number: int
    directory: Path
    """Where its files lie; the members' folder for a cell in a capsule."""
    cell: Cell
    end: End | None
    samples: Sequence[Sample]
    read_inputs: Callable[[], Mapping[str, Any]] = field(repr=False, compare=False)
    """Reads its inputs, which only few readers need. Raises InputError for damage."""
    virtual: bool = True
    """True if its time is the guest's own, so that equal inputs must give equal samples."""
    running: bool = False
    """True while its run is going on."""
    not_timed: str = ""
    """Why its samples count in no statistic, whatever it ended with."""

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """Everything that its key is the hash of; empty for a cell that has not begun."""
        return self.read_inputs()

    @property
    def seed(self) -> int:
        return self.cell.seed

    @property
    def seeds(self) -> Seeds:
        """Its corpus seed and its run seed."""
        return self.cell.seeds

    @property
    def status(self) -> str:
        """Its state in one word, also while it runs or waits."""
        return status_of(self.end, self.directory, self.running)

    @property
    def end_status(self) -> str:
        """The status that it ended with; interrupted while it has no end record."""
        return self.end.status if self.end else Status.INTERRUPTED

    @property
    def finished(self) -> bool:
        """True if it came to an end of its own: only then do its samples follow from its inputs."""
        return self.end is not None and self.end.status is not Status.INTERRUPTED

    @property
    def ok(self) -> bool:
        """True if its samples count in a statistic."""
        return self.end is not None and self.end.status is Status.OK and not self.not_timed

    @property
    def reason(self) -> str:
        """The reason why its samples do not count, in one line; its status where none was recorded."""
        if self.end is None:
            return "not ended" if self.inputs else "not begun"
        return self.end.why or self.not_timed or self.end.status.value

    @property
    def ended(self) -> str:
        """Its ending with the reason, or that it has not ended."""
        if self.running and not self.finished:
            return "the run is still going on"
        return f"{self.end.status}: {self.reason}" if self.end and self.end.reason else self.reason

    def repetitions(self, step: str, metric: str) -> Mapping[int, Sample | Number]:
        """Return the value of each repetition of a step; the sample itself where that has none."""
        rows = CellSamples.of(self.samples)
        found = rows.kinds.by_step.get((step, metric), {})
        values = ((number, rows.values[at], rows.kinds.samples[at]) for number, at in found.items())
        return {number: sample if value is None else value for number, value, sample in values}


@dataclass(frozen=True)
class RunResult:
    """One run with its cells, read as far as it is."""

    directory: RunDirectory
    plan: RunPlan
    running: bool
    cells: tuple[CellResult, ...]

    @property
    def name(self) -> str:
        return self.directory.name

    @cached_property
    def conditions(self) -> tuple[Conditions, ...]:
        """What shapes each kind of its cells; of a run without cells what it says of itself.

        Raises InputError for damage.
        """
        kinds: dict[Cell | None, CellResult] = {}
        for cell in self.cells:
            kind = cell.cell.model_copy(update={"seed": 1, "corpus_seed": 1})
            if kind not in kinds or (cell.inputs and not kinds[kind].inputs):
                kinds[kind] = cell
        return tuple(map(self.conditions_of, kinds.values())) or (self.conditions_of(None),)

    def conditions_of(self, cell: CellResult | None) -> Conditions:
        """Return what shapes one of its cells. Raises InputError for damage."""
        files = files_of(cell.inputs, cell.end.evaluated_by if cell.end else None) if cell else {}
        return Conditions.of(self.plan, cell.cell if cell else None, self.directory.guest(), files)


def load(run: RunDirectory) -> RunResult:
    """Read a run and its cells. Raises InputError for one that is damaged."""
    running = run.is_running()
    plan, ends, samples = run.read_all()
    cells = tuple(
        CellResult(
            run.name, number, run.path / "cells" / str(number), cell, ends[number], samples.get(number, ()),
            partial(run.inputs, number), plan.clock == "virtual", running, not_timed(plan),
        )
        for number, cell in enumerate(plan.cells)
    )  # fmt: skip
    return RunResult(run, plan, running, cells)


def noise_of_runs(runs: Iterable[RunResult], *, widest: bool = False) -> HostNoise:
    """Look up the noise of runs of one scenario. Raises InputError for a damaged record."""
    real = [run for run in runs if run.plan.clock == "wall"]
    return HostNoise(tuple(host_floors(run.directory.home, run.plan) for run in real), widest)


@dataclass(frozen=True)
class SeedGroup:
    """Cells that differ in nothing but their seeds: the run seed, and the corpus seed."""

    name: str
    """A name that tells it from the other groups beside it."""
    run: RunResult
    """The run of its cells; of several runs the first."""
    results: tuple[CellResult, ...]
    """All of its cells; several may have the same seeds."""
    host: HostNoise = field(default_factory=HostNoise)
    """The noise of the hosts of all runs beside it."""

    @property
    def cell(self) -> Cell:
        """One of its cells, for all fields but the seeds."""
        return self.results[0].cell

    @property
    def variant(self) -> str:
        return self.cell.variant

    @property
    def layout(self) -> str:
        return self.cell.layout

    @cached_property
    def cells(self) -> Mapping[Seeds, CellResult]:
        """Seeds to their cell: the first that is ok, or else the first."""
        cells: dict[Seeds, CellResult] = {}
        for cell in self.results:
            if cell.seeds not in cells or (cell.ok and not cells[cell.seeds].ok):
                cells[cell.seeds] = cell
        return cells

    @cached_property
    def counted(self) -> Mapping[Seeds, CellResult]:
        """Seeds to their cell, for those whose samples count, corpus by corpus."""
        return {seeds: cell for seeds, cell in sorted(self.cells.items()) if cell.ok}

    @property
    def why_left_out(self) -> str:
        """The reasons of cells that are not ok."""
        return "; ".join(dict.fromkeys(cell.ended for cell in self.results if not cell.ok))

    @property
    def unsupported(self) -> bool:
        """True if the kernel does not support what any of its cells needs, and nothing else is amiss."""
        statuses = {cell.end.status if cell.end else None for cell in self.results if not cell.ok}
        return statuses == {Status.UNSUPPORTED}

    @property
    def begun(self) -> bool:
        """True if any cell has begun: before that there are no inputs to compare."""
        return any(cell.end or cell.inputs for cell in self.results)

    @cached_property
    def series(self) -> Mapping[Place, Series]:
        """Everything measured, over the seeds."""
        measured = series(((seeds, cell.samples) for seeds, cell in self.counted.items()), self.own_metrics)
        if not self.unhonoured:
            return measured
        return {place: replace(row, caveat=self.unhonoured) for place, row in measured.items()}

    @property
    def unhonoured(self) -> str:
        """The option that its cells ran without, and why; empty for none."""
        return self.run.plan.unhonoured.get(self.variant, "")

    def marked(self, name: str) -> str:
        """Return a name for it with what its cells ran without: ``ext4-discard (without discard)``."""
        return f"{name} (without {self.unhonoured.partition(':')[0]})" if self.unhonoured else name

    @cached_property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The metrics that its scenario or a program of it defines."""
        return {name: defined.metric for name, defined in self.run.plan.metrics.items()}

    @cached_property
    def steps(self) -> Mapping[tuple[str, str], Series]:
        """Step and metric to one number for each cell: the mean over repetitions."""
        return StepMeans(self.series.values())

    def measured(self, measure: Measure) -> Series | None:
        """Return a measure over the seeds, or None where no cell has it."""
        if measure == ALL_STEPS:
            return self._all_steps
        if measure.repetition == MEAN:
            return self.steps.get((measure.step, measure.metric))
        return self.series.get(measure)

    @cached_property
    def _all_steps(self) -> Series | None:
        """The sum of the scenario's own steps; a cell that lacks one of them has no sum."""
        steps = own_steps(self.series)
        values: list[tuple[Seeds, Fraction]] = []
        missing: list[tuple[Seeds, str]] = []
        for seeds, cell in self.counted.items():
            of_steps = [cell.repetitions(step, ALL_STEPS.metric) for step in steps]
            rows = [row for repetitions in of_steps for row in repetitions.values()]
            gap = next((row for row in rows if isinstance(row, Sample)), None)
            if all(of_steps) and gap is None:
                values.append((seeds, exact_sum([row for row in rows if not isinstance(row, Sample)])))
            else:
                missing.append((seeds, (gap and gap.not_measured) or "not among this seed's samples"))
        whole = Series(*ALL_STEPS, "s", tuple(values), tuple(missing), caveat=self.unhonoured)
        return whole if steps else None


def group_cells(
    runs: Iterable[RunResult], key: Callable[[RunResult, CellResult], GroupKey | None]
) -> dict[GroupKey, SeedGroup]:
    """Group the cells of runs by their keys, in their order; a cell whose key is None is in no group.

    Each group has its first cell's label for a name.
    """
    groups: dict[GroupKey, tuple[RunResult, list[CellResult]]] = {}
    for run in runs:
        for cell in run.cells:
            at = key(run, cell)
            if at is not None:
                groups.setdefault(at, (run, []))[1].append(cell)
    named = {at: SeedGroup(cells[0].cell.label, run, tuple(cells)) for at, (run, cells) in groups.items()}
    return {at: replace(group, name=group.marked(group.name)) for at, group in named.items()}


def seed_groups(run: RunResult) -> list[SeedGroup]:
    """Group the cells of one run by everything but their seeds."""
    alike = {"seed": 1, "corpus_seed": 1}
    return [*group_cells([run], lambda _, cell: cell.cell.model_copy(update=alike)).values()]


def pair_groups(
    ours: Iterable[SeedGroup], theirs: Iterable[SeedGroup], *, any_variant: bool
) -> list[tuple[SeedGroup, SeedGroup]]:
    """Pair the groups of equal variant and layout, then those of equal variant alone.

    ``any_variant``: the user has named a variant on each side, so that they need not be equal.
    """
    ours = list(ours)
    rest, matched = list(theirs), dict[int, SeedGroup]()
    for same_layout in (True, False):
        for at, group in enumerate(ours):
            fitting = (
                other
                for other in rest
                if (any_variant or group.variant == other.variant) and (group.layout == other.layout or not same_layout)
            )
            if at not in matched and (other := next(fitting, None)):
                rest.remove(other)
                matched[at] = other
    return [(ours[at], other) for at, other in sorted(matched.items())]


VARIES = KERNEL | SEEDS | CHOSEN | EFFORT
"""Conditions in which runs in one table differ; each group has a name by them."""
REF = 8
"""Characters of a git ref in a kernel's name."""
_REF = re.compile(r"tree:[^,]*@([^,@]+)(,.*)?")


@dataclass(frozen=True)
class RunSet:
    """Runs of one question that differ in kernel, variants, machine, drives and seeds alone."""

    runs: tuple[RunResult, ...]
    apart: str = ""
    """What keeps them from earlier runs of the same question; empty where there are none."""

    @property
    def plan(self) -> RunPlan:
        """The first run's plan: what belongs to the question is the same in all."""
        return self.runs[0].plan

    @cached_property
    def host(self) -> HostNoise:
        """The noise of their hosts; sums and means of several steps have the largest of any step."""
        return noise_of_runs(self.runs, widest=True)

    @cached_property
    def groups(self) -> tuple[SeedGroup, ...]:
        """The cells by everything but their seeds, in the order of the plans, each group with a name of its own."""
        kernels = tuple(dict.fromkeys(run.plan.kernel for run in self.runs if run.plan.kernel))
        names = dict(zip(kernels, kernel_names(kernels), strict=True))

        def key(run: RunResult, result: CellResult) -> tuple[str, ...]:
            cell = result.cell
            kernel = names[run.plan.kernel] if run.plan.kernel else cell.kernel
            drives = " + ".join(cell.drives)
            return (cell.variant, cell.layout, kernel, cell.defaults, cell.machine, drives)

        groups = group_cells(self.runs, key)
        return tuple(
            replace(group, name=group.marked(name), host=self.host)
            for name, group in zip(distinct_names([*groups]), groups.values(), strict=True)
        )

    @property
    def cells(self) -> list[tuple[SeedGroup, CellResult]]:
        return [(group, cell) for group in self.groups for cell in group.results]

    @cached_property
    def places(self) -> list[Place]:
        """All places measured, in the order in which the first group that has them measured them."""
        return list(dict.fromkeys(place for group in self.groups for place in group.series))

    @property
    def seeds(self) -> list[Seeds]:
        """The seeds of all cells, corpus by corpus."""
        return sorted({cell.seeds for run in self.runs for cell in run.cells})


def run_sets(runs: Iterable[RunResult]) -> list[RunSet]:
    """Put runs of the same question together, in their order."""
    groups = grouped(runs, VARIES)
    why = apart(groups, VARIES)
    return [RunSet(tuple(group), why.get(at, "")) for at, group in enumerate(groups)]


def kernel_names(kernels: Sequence[RunKernel]) -> list[str]:
    """Name each kernel by its release; several of one release by their git ref, too, or by a number."""
    names = [kernel.release.removesuffix("-amd64") for kernel in kernels]
    refs = [_REF.fullmatch(kernel.spec) for kernel in kernels]
    named = [
        f"{name}@{ref[1][:REF]}" if ref and names.count(name) > 1 else name
        for name, ref in zip(names, refs, strict=True)
    ]
    return [f"{name}#{named[:at].count(name) + 1}" if named.count(name) > 1 else name for at, name in enumerate(named)]


def distinct_names(keys: Sequence[tuple[str, ...]]) -> list[str]:
    """Name each by its first word, and by as many more as tell it from the others."""
    names = [key[0] for key in keys]
    for axis in range(1, max(map(len, keys), default=0)):
        for name in dict.fromkeys(names):
            alike = [at for at, named in enumerate(names) if named == name]
            if len({keys[at][axis] for at in alike}) > 1:
                for at in alike:
                    names[at] = f"{name} {keys[at][axis]}"
    return names


def main_measures(groups: Sequence[SeedGroup]) -> list[Measure]:
    """Return the slowdown of each test, how much was held at the last count, and the time of all steps, as there are.

    The first that has a value is what the scenario is about.
    """
    places = list(dict.fromkeys(place for group in groups for place in group.series))
    held = [place for place in places if place[2] == "content_bytes"]
    chosen = [*last_slowdowns(places), *held[-1:]]
    named = [Measure(step, number if number > 1 else MEAN, metric) for step, number, metric in chosen]
    return [*named, *([ALL_STEPS] if own_steps(places) else [])]


def last_slowdowns(places: Iterable[Place]) -> list[Place]:
    """Return each test's slowdown; for a test at several points of a history, at the last."""
    last: dict[str, Place] = {}
    for place in places:
        step, repetition, metric = place
        if metric == "slowdown" and repetition >= last.get(step, place)[1]:
            last[step] = place
    return list(last.values())
