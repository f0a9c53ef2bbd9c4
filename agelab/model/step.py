"""Steps of a scenario, and what else is done with its disks: tests, experiments, control, curve."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from agelab.model.base import Frozen, Name, Note, Origin, Pattern

IMPLICIT = ("boot", "mkfs", "mount", "map")
"""Steps that every cell has without its scenario saying so."""
RECOVERING = ("repair", "recovery", "repair-after", "recovery-repaired")
"""Steps that a cell has after a power cut, as far as it needs them, until its filesystem is mounted."""
CHECKING = "fsck"
"""The step after them."""
PREPARING = "prepare"
"""What the names of the phases and steps begin with that prepare an experiment."""
CONTROL_COPY = "copy"
"""The step in which the control gets its tree; no test is called so."""
Caches = Literal["keep", "drop", "remount", "reboot"]


def taken(experiment: str) -> bool:
    """Whether what goes before an experiment has that name already, or one like it."""
    return experiment in IMPLICIT or experiment.startswith(PREPARING)


def _several(raw: object) -> object:
    return (raw,) if isinstance(raw, str) else raw


def _window(raw: object) -> object:
    return (raw, raw) if isinstance(raw, int | float) else raw


class Action(Frozen):
    """One step: a shell command in the mount point, and what to do around it."""

    name: Name = Field(description="what its samples are called by")
    run: str = Field(min_length=1, description="given to sh -ec in the mount point")
    caches: Caches = Field(default="keep", description="what becomes of the guest's page cache before it")
    sync: bool = Field(
        default=False, description="whether what is dirty is written after it, timed by itself"
    )
    pause: float = Field(default=0, ge=0, le=2_000_000, description="seconds before it")
    repeat: Annotated[int, Field(ge=1)] | Literal["parts"] = Field(
        default=1, description="parts: once for each part of the history, which is $REPETITION of $SOURCE"
    )
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
    records: Annotated[
        tuple[str, ...], BeforeValidator(_several, json_schema_input_type=str | tuple[str, ...])
    ] = Field(default=(), description="the metrics whose values are the whole numbers that the step prints")
    cut_after: Annotated[
        tuple[float, float] | None,
        BeforeValidator(_window, json_schema_input_type=float | tuple[float, float] | None),
    ] = Field(
        default=None,
        description="guest seconds after which the power is cut, or from and to: the run seed says when",
    )
    origin: Origin
    note: Note = ""

    @model_validator(mode="after")
    def _is_cut_before_its_deadline(self) -> Self:
        if self.cut_after and not 0 < self.cut_after[0] <= self.cut_after[1] < self.deadline:
            first, last = self.cut_after
            raise ValueError(
                f"cut_after: {first:g} to {last:g} s is no moment between 0 and the deadline, {self.deadline:g} s"
            )
        return self


class Cycle(Frozen):
    """Steps that are repeated together, in turn."""

    repeat: int = Field(ge=1, description="how often all of them are done; which time it is is $REPETITION")
    cycle: tuple[Action, ...] = Field(min_length=1, description="the steps, one after the other")


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

    name: Name = Field(description="what its samples are called by")
    prepare: str = Field(
        default="", description="given to sh -ec in the mount point; nothing: an empty filesystem"
    )
    perform: str = Field(min_length=1, description="given to sh -ec in the mount point")
    traced: bool = Field(default=True, description="whether it is performed again under strace")
    moves: Literal["corpus"] | None = Field(default=None, description="what it moves, for its throughput")
    deadline: float = Field(default=7200, gt=0, le=2_000_000, description="guest seconds")
    origin: Origin
    note: Note = ""


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
    """Points of the history at which the disk can be mapped: after these repetitions of a step.

    With ``tested_on`` it is mapped and tested there, always, and so is a control of its own at each point: on each of
    these drives, one after the other, whatever drive the history was carried out on.
    """

    step: Name = Field(description="after whose repetitions they come")
    after: tuple[Annotated[int, Field(ge=1)], ...] | Literal["each"] = Field(
        description="after which repetitions"
    )
    tested_on: dict[Name, Annotated[str, Field(pattern=r"^model:")]] = Field(
        default={}, description="drives, by the names that their steps begin with"
    )

    def has(self, step: str, repetition: int) -> bool:
        """Whether a point comes after that."""
        return step == self.step and (self.after == "each" or repetition in self.after)


class Ratio(Frozen):
    """One metric of a step's last repetition over that of its first."""

    step: Name = Field(description="that is repeated")
    metric: str = Field(description="of which the ratio is")
    name: str = Field(description="the metric that the ratio is: throughput_ratio")
