"""A scenario file: one study as data."""

from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, PlainValidator, Tag, model_validator

from agelab.model.base import CorpusKind, Defaults, Frozen, Layout, Origin, Pattern
from agelab.model.machine import Figure
from agelab.model.metrics import METRICS

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
IMPLICIT = ("boot", "mkfs", "mount", "map")
"""Steps that every cell has without its scenario saying so."""
PREPARING = "prepare"
"""What the names of the phases and steps begin with that prepare an experiment."""
CONTROL_COPY = "copy"
"""The step in which the control gets its tree; no test is called so."""
Caches = Literal["keep", "drop", "remount", "reboot"]


def taken(experiment: str) -> bool:
    """Whether what goes before an experiment has that name already, or one like it."""
    return experiment in IMPLICIT or experiment.startswith(PREPARING)


class Citation(Frozen):
    """The study behind the scenario."""

    title: str
    author: str
    year: int
    language: str
    measured_on: str


class Variant(Frozen):
    """A filesystem with the options that make it another variant."""

    name: Name
    filesystem: Name
    mkfs_options: tuple[str, ...] = ()
    period_mkfs_options: tuple[str, ...] = Field(
        default=(),
        description="beside them, with the period defaults alone: what the study's mkfs did unasked",
    )
    today_mkfs_options: tuple[str, ...] = Field(
        default=(),
        description="beside them, with today's alone: what today's mkfs makes as large on every disk, scaled",
    )
    mount_options: tuple[str, ...] = ()
    script: str = Field(
        default="",
        description="what makes it and may mount it, in place of mkfs and mount: a program of the guest's",
    )
    layouts: tuple[Layout, ...] = Field(
        default=("single",),
        min_length=1,
        description="those that the study has it in; --layout asks for another",
    )
    machine: Name | None = Field(default=None, description="in place of the scenario's")
    available_mib: Figure | None = Field(default=None, description="in place of the scenario's memory")
    drive: int | None = Field(default=None, ge=0, description="in place of the partitions' one")

    def made_with(self, defaults: Defaults) -> tuple[str, ...]:
        """The options of its mkfs with that set of defaults."""
        return self.mkfs_options + (
            self.period_mkfs_options if defaults == "period" else self.today_mkfs_options
        )


class Scale(Frozen):
    """How much smaller than the study; every size in the scenario is divided by ``shrink``, every ratio kept.

    ``history`` divides the repetitions of cycles, and what they fill (the disk and the sizes that steps are given):
    the disk is written over as often as before, with fewer and relatively larger copies.
    """

    shrink: int = Field(ge=1)
    history: int = Field(default=1, ge=1)
    note: str = ""


class CorpusUse(Frozen):
    """The source data of a scenario."""

    kind: CorpusKind
    mib: Figure = Field(description="size at paper scale, MiB")
    held_in_ram: bool = False


class MemoryUse(Frozen):
    """The memory that the first step finds, and how much of it may be dirty."""

    available_mib: Figure = Field(description="MemAvailable at the first step, at paper scale, MiB")
    dirty_percent: Figure = Field(description="vm.dirty_ratio")
    dirty_background_percent: Figure = Field(description="vm.dirty_background_ratio")


def _place_on_drive(raw: object) -> object:
    if raw in ("outer", "inner") or (type(raw) is int and raw >= 0):
        return raw
    raise ValueError("Input should be 'outer', 'inner' or a whole number of MiB from the drive's start")


class PartitionUse(Frozen):
    """Where a partition under test lies. The place is the drive's, which no scale shrinks."""

    drive: int = Field(default=0, ge=0, description="which of the machine's drives, from 0")
    at: Annotated[Literal["outer", "inner"] | int, PlainValidator(_place_on_drive)] = Field(
        description="the drive's first sectors, its last ones, or the MiB from its start"
    )
    origin: Origin
    note: str = ""


class DiskUse(Frozen):
    """The disk under test: the first partition, or the first two of them in RAID-0.

    Where only one partition is listed, RAID-0 takes a second drive of the same kind at the same place.
    """

    mib: Figure = Field(description="size at paper scale, MiB; in RAID-0 the partitions share it equally")
    filled_mib: Figure | None = Field(
        default=None,
        description="what lies on it at most, MiB at paper scale, where that is less: room for it is needed",
    )
    partitions: tuple[PartitionUse, ...] = Field(min_length=1, max_length=2)
    drives: tuple[Annotated[str, Field(pattern=r"^model:")], ...] = Field(
        default=(), description="drives in place of the machine's: model:<name> or model:none"
    )
    chunk_kib: int | None = Field(default=None, ge=4, description="RAID-0's chunk, where the study names one")


class BesideUse(Frozen):
    """One more filesystem, made and filled before: what a study copied from, or to.

    The steps find it at $BESIDE. What they write to it is gone with their boot.
    """

    filesystem: Name
    mib: Figure = Field(description="size at paper scale, MiB")
    partition: PartitionUse
    holds: Literal["corpus"] = Field(description="what was copied to it; the steps have it at $SOURCE")
    origin: Origin = Field(description="of the filesystem's kind")
    note: str = ""


class Action(Frozen):
    """One step: a shell command in the mount point, and what to do around it."""

    name: Name
    run: str = Field(min_length=1, description="given to sh -ec")
    caches: Caches = "keep"
    sync: bool = False
    pause: float = Field(default=0, ge=0, le=2_000_000, description="seconds before it")
    repeat: int = Field(default=1, ge=1)
    expect: tuple[int, ...] = Field(
        default=(0,), min_length=1, description="exit statuses that are no failure"
    )
    refuses: tuple[Pattern, ...] = Field(
        default=(),
        description="whole lines of error output (LC_ALL=C), beside the filesystem's own, that are a result: counted",
    )
    deadline: float = Field(
        default=1800, gt=0, le=2_000_000, description="guest seconds after which it counts as hung"
    )
    moves: Literal["corpus"] | None = Field(default=None, description="what it moves, for its throughput")
    records: str | None = Field(
        default=None, description="the metric whose value is the whole number that the step prints"
    )
    origin: Origin
    note: str = ""


class Cycle(Frozen):
    """Steps that are repeated together, in turn."""

    repeat: int = Field(ge=1)
    cycle: tuple[Action, ...] = Field(min_length=1)


def _kind_of_step(raw: object) -> str:
    """Which of the two an entry is; the mark keeps the answer out of the places that errors name."""
    return "~cycle" if isinstance(raw, Cycle) or (isinstance(raw, dict) and "cycle" in raw) else "~step"


Step = Annotated[
    Annotated[Action, Tag("~step")] | Annotated[Cycle, Tag("~cycle")], Discriminator(_kind_of_step)
]


class Experiment(Frozen):
    """A test by itself: a fresh filesystem, what prepares it, a reboot that empties the caches, and the test.

    What is prepared in the same way is prepared once and forked.
    """

    name: Name
    prepare: str = Field(
        default="", description="given to sh -ec in the mount point; nothing: an empty filesystem"
    )
    perform: str = Field(min_length=1, description="given to sh -ec in the mount point")
    traced: bool = Field(default=True, description="whether it is performed again under strace")
    moves: Literal["corpus"] | None = Field(default=None, description="what it moves, for its throughput")
    deadline: float = Field(default=7200, gt=0, le=2_000_000, description="guest seconds")
    origin: Origin
    note: str = ""


class Trace(Frozen):
    """One more pass of the experiments, under strace."""

    name: Name = Field(description="what its steps' names begin with")
    options: tuple[str, ...] = Field(min_length=1, description="beside -f and -o; -c among them")


class Control(Frozen):
    """The unaged control: the tree that the steps left, copied to a new disk of the same kind."""

    run: str = Field(
        min_length=1, description="given to sh -ec in the new disk's mount point; the tree is in $AGED"
    )
    deadline: float = Field(default=1800, gt=0, le=2_000_000, description="guest seconds")


class Curve(Frozen):
    """Points of the history at which the disk can be mapped: after these repetitions of a step."""

    step: Name
    after: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1)


class Ratio(Frozen):
    """One metric of a step's last repetition over that of its first."""

    step: Name
    metric: str
    name: str


class Scenario(Frozen):
    """One file of scenarios/."""

    name: Name
    summary: str
    citation: Citation
    machine: Name
    defaults: Defaults
    corpus: CorpusUse
    memory: MemoryUse
    disk: DiskUse
    beside: BesideUse | None = None
    counts: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], Figure] = Field(
        default={}, description="numbers at paper scale; the steps have theirs in the environment"
    )
    sizes: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], Figure] = Field(
        default={},
        description="MiB at paper scale; the steps have them in the environment, in bytes at theirs",
    )
    scales: dict[Literal["quick", "paper"], Scale]
    variants: tuple[Variant, ...] = Field(min_length=1)
    makes: Literal["prepared", "aged"] = Field(
        default="prepared",
        description="what the steps leave on the disk: a tree, or one that has been used for long",
    )
    steps: tuple[Step, ...] = Field(default=(), description="what makes the disk")
    experiments: tuple[Experiment, ...] = Field(default=(), description="in place of steps and tests")
    traces: tuple[Trace, ...] = Field(default=(), description="passes of the experiments under strace")
    tests: tuple[Action, ...] = Field(
        default=(), description="what is measured of it, on a fork and in a new boot; and of the control"
    )
    control: Control | None = None
    measures: tuple[Literal["extents", "free_space"], ...] = Field(
        default=(), description="what is found out about where things lie on it, on a fork of its own"
    )
    curve: Curve | None = None
    ratios: tuple[Ratio, ...] = ()
    unstated: tuple[str, ...] = Field(default=(), description="what the study leaves unsaid")

    @model_validator(mode="after")
    def _names_hold_together(self) -> Self:
        problems = [f"{what} {name!r} is there twice" for what, name in self._twice()]
        if bool(self.steps) == bool(self.experiments):
            problems.append("either steps or experiments")
        if self.experiments and (self.tests or self.control or self.measures or self.curve):
            problems.append("experiments leave no room for tests, control, measures and curve")
        problems += [
            f"an experiment cannot be called {experiment.name!r}: what goes before it is"
            for experiment in self.experiments
            if taken(experiment.name)
        ]
        steps = {action.name for action in self.actions()}
        problems += [f"ratio {r.name!r}: no step {r.step!r}" for r in self.ratios if r.step not in steps]
        names = steps | {test.name for test in self.tests}
        problems += [
            f"a step cannot be called {name!r}: every cell has one" for name in IMPLICIT if name in names
        ]
        if self.control and not (self.tests or self.measures):
            problems.append("a control without tests and measures shows nothing")
        if self.control and any(test.name == CONTROL_COPY for test in self.tests):
            problems.append(f"a test cannot be called {CONTROL_COPY!r}: the control's copying is")
        problems += [
            f"step {action.name!r}: no metric {action.records!r}"
            for action in (*self.actions(), *self.tests)
            if action.records is not None and action.records not in METRICS
        ]
        problems += self._off_the_curve()
        for ratio in self.ratios:
            for metric in (ratio.metric, ratio.name):
                problems += [] if metric in METRICS else [f"ratio {ratio.name!r}: no metric {metric!r}"]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _twice(self) -> list[tuple[str, str]]:
        names = [("variant", variant.name) for variant in self.variants]
        names += [("experiment", experiment.name) for experiment in self.experiments]
        names += [("trace", trace.name) for trace in self.traces]
        names += [("step", action.name) for action in self.actions()]
        names += [("test", test.name) for test in self.tests]
        return [which for which, count in Counter(names).items() if count > 1]

    def _off_the_curve(self) -> list[str]:
        """What the curve asks for that the steps do not have."""
        if self.curve is None:
            return []
        turns = {
            action.name: action.repeat * (step.repeat if isinstance(step, Cycle) else 1)
            for step in self.steps
            for action in (step.cycle if isinstance(step, Cycle) else (step,))
        }
        most = turns.get(self.curve.step, 0)
        wrong = [turn for turn in self.curve.after if turn > most]
        return [f"curve: step {self.curve.step!r} has {most} repetitions, not {max(wrong)}"] if wrong else []

    def at(self, scale: str) -> Self:
        """The scenario with the history of that scale; its sizes are still the study's, to be shrunk."""
        shorter = self.scales[scale].history if scale in self.scales else 1
        if shorter == 1:
            return self
        cycles = [
            step.model_copy(update={"repeat": max(1, step.repeat // shorter)})
            if isinstance(step, Cycle)
            else step
            for step in self.steps
        ]

        def less(figure: Figure) -> Figure:
            return figure.model_copy(update={"value": figure.value / shorter})

        curve = self.curve and self.curve.model_copy(
            update={"after": tuple(dict.fromkeys(max(1, turn // shorter) for turn in self.curve.after))}
        )
        return self.model_copy(
            update={
                "steps": tuple(cycles),
                "disk": self.disk.model_copy(update={"mib": less(self.disk.mib)}),
                "sizes": {name: less(figure) for name, figure in self.sizes.items()},
                "curve": curve,
            }
        )

    def actions(self) -> list[Action]:
        """Every step once, in the order of the file."""
        found: list[Action] = []
        for step in self.steps:
            found += step.cycle if isinstance(step, Cycle) else (step,)
        return found
