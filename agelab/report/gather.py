"""Runs sorted into what belongs together, and in it into what is compared: everything of a cell but its run seed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from agelab.analysis.comparability import data
from agelab.analysis.host_noise import HostNoise, noise_of_runs
from agelab.analysis.sweep import Sweep
from agelab.model.result import RunPlan
from agelab.published.run_columns import LoadedRun, StudyCell
from agelab.results.run_directory import RunDirectory
from agelab.results.status import status_of
from agelab.stats.order_statistics import exact
from agelab.stats.series import Place, Series, by_step, series

AXES = ("variant", "layout", "kernel", "defaults", "machine", "drives")
"""What tells one subject from another, in the order in which a name says it."""


@dataclass(frozen=True)
class LocatedRun:
    """A run, and where it lies."""

    run: LoadedRun
    path: Path

    @property
    def plan(self) -> RunPlan:
        return self.run.plan


@dataclass(frozen=True)
class ReportedCell:
    """One cell, and where it lies."""

    run: str
    number: int
    directory: Path
    ran: StudyCell

    @property
    def seed(self) -> int:
        return self.ran.cell.seed

    @property
    def status(self) -> str:
        """In one word."""
        return status_of(self.ran.end, self.directory, self.ran.going_on)


@dataclass(frozen=True)
class Subject:
    """What is compared: cells that differ in nothing but their run seed."""

    name: str
    variant: str
    layout: str
    entries: tuple[ReportedCell, ...]
    """Each run seed's cell; of several of one seed those that do not count, too."""
    chance: HostNoise = field(default_factory=HostNoise)
    """What the hosts show by chance."""

    @cached_property
    def counted(self) -> Mapping[int, ReportedCell]:
        """Run seed to the cell that counts: the first that is ok."""
        found: dict[int, ReportedCell] = {}
        for entry in self.entries:
            if entry.ran.ok:
                found.setdefault(entry.seed, entry)
        return found

    @cached_property
    def series(self) -> Mapping[Place, Series]:
        """What was measured, over the run seeds."""
        return series((seed, entry.ran.samples) for seed, entry in sorted(self.counted.items()))

    @cached_property
    def steps(self) -> Mapping[tuple[str, str], Series]:
        """Step and metric to the one number that each run seed has of them: of repetitions the mean."""
        return {(one.step, one.metric): one for one in by_step(self.series).values()}

    def step(self, step: str, metric: str) -> Series | None:
        """One of them."""
        return self.steps.get((step, metric))

    def total(self, steps: Sequence[str], metric: str) -> Series | None:
        """The sum of a metric over all repetitions of these steps; a cell that lacks one has none.

        None where no cell has any of it.
        """
        values: list[tuple[int, Fraction]] = []
        missing: list[tuple[int, str]] = []
        unit = None
        for seed, entry in sorted(self.counted.items()):
            found = [entry.ran.by_place.get((step, metric), {}) for step in steps]
            rows = [one for repetitions in found for one in repetitions.values()]
            unit = rows[0].unit if rows else unit
            gap = next((one for one in rows if one.value is None), None)
            if all(found) and gap is None:
                values.append((seed, sum((exact(one.value or 0) for one in rows), Fraction())))
            else:
                missing.append((seed, (gap and gap.not_measured) or "not among this seed's samples"))
        if unit is None:
            return None
        return Series(", ".join(steps), 1, metric, unit, tuple(values), tuple(missing))


@dataclass(frozen=True)
class RunSet:
    """Runs of one scenario, scale and clock on the same data: their subjects can stand in one table."""

    runs: tuple[LocatedRun, ...]

    @property
    def plan(self) -> RunPlan:
        """The first run's: what belongs to the group is the same in all."""
        return self.runs[0].plan

    @cached_property
    def chance(self) -> HostNoise:
        """What the hosts of these runs show by chance: of the mean of all tests, too, and of sums of steps."""
        if self.plan.clock != "wall":
            return HostNoise()
        return noise_of_runs([(RunDirectory(one.path), one.plan) for one in self.runs], widest=True)

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """In the order of the plans, each with a name of its own."""
        found: dict[tuple[str, ...], list[ReportedCell]] = {}
        kernels = _kernels(loaded.plan for loaded in self.runs)
        for loaded in self.runs:
            for number, cell in enumerate(loaded.plan.cells):
                ran = StudyCell(
                    cell, loaded.run.ends[number], loaded.run.samples.get(number, ()), loaded.run.going_on
                )
                key = (
                    cell.variant, cell.layout, kernels.get(str(loaded.plan.kernel), cell.kernel),
                    cell.defaults, cell.machine, " + ".join(cell.drives),
                )  # fmt: skip
                entry = ReportedCell(loaded.plan.run, number, loaded.path / "cells" / str(number), ran)
                found.setdefault(key, []).append(entry)
        names = _names(list(found))
        return tuple(
            Subject(name, key[0], key[1], tuple(entries), self.chance)
            for name, (key, entries) in zip(names, found.items(), strict=True)
        )

    @property
    def entries(self) -> list[tuple[Subject, ReportedCell]]:
        """Every cell with what it is one of."""
        return [(subject, entry) for subject in self.subjects for entry in subject.entries]

    @cached_property
    def places(self) -> list[Place]:
        """All that was measured, in the order in which the first subject that has it measured it."""
        return list(dict.fromkeys(place for subject in self.subjects for place in subject.series))

    @property
    def seeds(self) -> list[int]:
        return sorted({entry.seed for _, entry in self.entries})


def load(run: RunDirectory) -> LocatedRun:
    """A run from its directory, as far as it is. Raises InputError for one that is damaged."""
    going_on = run.is_running()
    plan, ends, samples = run.read_all()
    return LocatedRun(LoadedRun(run, plan, ends, samples, going_on), run.path)


def together(runs: Iterable[LocatedRun]) -> list[RunSet]:
    """The runs as groups, in their order."""
    found: list[RunSet] = []
    for loaded in runs:
        for number, group in enumerate(found):
            if _alike(group, loaded):
                found[number] = replace(group, runs=(*group.runs, loaded))
                break
        else:
            found.append(RunSet((loaded,)))
    return found


def _alike(group: RunSet, loaded: LocatedRun) -> bool:
    """Whether a run's cells can stand in one table with the group's."""
    ours, theirs = group.plan, loaded.plan
    same = all(
        getattr(ours, name) == getattr(theirs, name) for name in ("scenario", "scale", "clock", "emulated")
    )
    ours_has = {word for one in group.runs for word in data(one.plan)}
    # A run of fewer histories has fewer data.
    return same and (not ours_has or not data(theirs) or bool(ours_has & data(theirs)))


def _kernels(plans: Iterable[RunPlan]) -> dict[str, str]:
    """Each kernel's own name, shorter than all that is known of it."""
    kernels = tuple(dict.fromkeys(plan.kernel for plan in plans if plan.kernel))
    return dict(zip(map(str, kernels), Sweep(kernels, {}).names, strict=True))


def _names(keys: Sequence[tuple[str, ...]]) -> list[str]:
    """The variant, and as much more as tells each from the others."""
    names = [key[0] for key in keys]
    for axis in range(1, len(AXES)):
        for name in dict.fromkeys(names):
            alike = [at for at, one in enumerate(names) if one == name]
            if len({keys[at][axis] for at in alike}) > 1:
                for at in alike:
                    names[at] = f"{name} {keys[at][axis]}"
    return names
