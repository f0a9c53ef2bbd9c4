"""Steps of a scenario, and their names in results."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from agelab.base.types import Frozen, Name, Note, Origin, Pattern, is_empty

IMPLICIT = ("boot", "mkfs", "mount", "map")
"""Steps of every cell that its scenario does not list."""
RECOVERING = ("repair", "recovery", "repair-after", "recovery-repaired")
"""Steps after a power cut until the filesystem is mounted again, as far as they are needed."""
CHECKING = "fsck"
REBUILDING = "rebuild"
"""The step that follows them."""
PREPARING = "prepare"
"""The name of the step that prepares an experiment, and the prefix of such phases' names."""
CONTROL_COPY = "copy"
"""The step in which the control gets its tree."""
Caches = Literal["keep", "drop", "remount", "reboot"]


def is_reserved(experiment: str) -> bool:
    """Return True if steps before an experiment have that name, or one like it."""
    return experiment in IMPLICIT or experiment.startswith(PREPARING)


def _as_tuple(raw: object) -> object:
    return (raw,) if isinstance(raw, str) else raw


def _as_window(raw: object) -> object:
    return (raw, raw) if isinstance(raw, int | float) else raw


class Action(Frozen):
    """One step: a shell command in the mount point, and what to do around it."""

    name: Name = Field(description="the name in its samples")
    run: str = Field(default="", description="given to sh -ec in the mount point")
    program: Name | None = Field(
        default=None, description="in place of run: a file of scenarios/programs, without its ending"
    )
    job: str = Field(default="", description="the program's job file, beside the scenario's file")
    arguments: str = Field(default="", description="words for the program, as for a shell")
    environment: dict[
        Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")],
        Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=1000)],
    ] = Field(
        default={},
        exclude_if=is_empty,
        description="variables of its command; a matrix adds those of a combination",
    )
    keep: bool = Field(
        default=False,
        exclude_if=is_empty,
        description="whether the first MiB of what it prints is kept beside its results, as a program's is",
    )
    caches: Caches = Field(default="keep", description="what is done with the guest's page cache before it")
    sync: bool = Field(default=False, description="whether dirty pages are written after it, timed by themselves")
    pause: float = Field(default=0, ge=0, le=2_000_000, description="seconds before it")
    repeat: Annotated[int, Field(ge=1)] | Literal["parts"] = Field(
        default=1, description="parts: once for each part of the history, number $REPETITION in $SOURCE"
    )
    expect: tuple[int, ...] = Field(default=(0,), min_length=1, description="exit statuses that are not failures")
    refuses: tuple[Pattern, ...] = Field(
        default=(),
        description="lines of error output (LC_ALL=C) that are counted, not failures, besides the filesystem's own",
    )
    deadline: float = Field(default=1800, gt=0, le=2_000_000, description="guest seconds after which it counts as hung")
    moves: Literal["corpus"] | None = Field(default=None, description="the data that it moves, for its throughput")
    records: Annotated[tuple[str, ...], BeforeValidator(_as_tuple, json_schema_input_type=str | tuple[str, ...])] = (
        Field(
            default=(),
            description="metrics whose values are the whole numbers that the step prints; of metrics that the scenario "
            "defines, decimal numbers",
        )
    )
    cut_after: Annotated[
        tuple[float, float] | None,
        BeforeValidator(_as_window, json_schema_input_type=float | tuple[float, float] | None),
    ] = Field(
        default=None,
        description="guest seconds after which the power is cut, or a window in which the run seed decides",
    )
    origin: Origin = "estimated"
    note: Note = ""

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        if self.program is None and not self.run:
            raise ValueError("run is missing: a command for the shell, or a program")
        if self.program is None and (self.job or self.arguments):
            raise ValueError("job and arguments are for a program")
        if self.program and self.records:
            raise ValueError("records: agelab reads a program's output by the program's name")
        return self

    @model_validator(mode="after")
    def _is_cut_before_its_deadline(self) -> Self:
        if self.cut_after and not 0 < self.cut_after[0] <= self.cut_after[1] < self.deadline:
            first, last = self.cut_after
            raise ValueError(
                f"cut_after: {first:g} to {last:g} s is not between 0 and the deadline, {self.deadline:g} s"
            )
        return self


class Cycle(Frozen):
    """Steps that are repeated together, one after the other."""

    repeat: int = Field(ge=1, description="times that all of them are done; $REPETITION counts them")
    cycle: tuple[Action, ...] = Field(min_length=1, description="the steps, in their order")


def _step_tag(raw: object) -> str:
    """Return the tag of an entry's kind; the tilde keeps it out of the places that errors name."""
    return "~cycle" if isinstance(raw, Cycle) or (isinstance(raw, dict) and "cycle" in raw) else "~step"


Step = Annotated[Annotated[Action, Tag("~step")] | Annotated[Cycle, Tag("~cycle")], Discriminator(_step_tag)]


class Experiment(Frozen):
    """A test by itself: a fresh filesystem, a preparation, a reboot that empties the caches, and the test.

    Equal preparations are done once, and forked.
    """

    name: Name = Field(description="the name in its samples")
    prepare: str = Field(
        default="", description="given to sh -ec in the mount point; without it the filesystem is empty"
    )
    perform: str = Field(min_length=1, description="given to sh -ec in the mount point")
    traced: bool = Field(default=True, description="whether it is repeated under strace")
    moves: Literal["corpus"] | None = Field(default=None, description="the data that it moves, for its throughput")
    deadline: float = Field(default=7200, gt=0, le=2_000_000, description="guest seconds")
    origin: Origin = "estimated"
    note: Note = ""


class Trace(Frozen):
    """One more pass of the experiments, under strace."""

    name: Name = Field(description="the prefix of its steps' names")
    options: tuple[str, ...] = Field(min_length=1, description="besides -f and -o; one is -c")


class Control(Frozen):
    """The unaged control: the tree of the aged disk, copied to a new disk of the same kind."""

    run: str = Field(min_length=1, description="given to sh -ec in the new disk's mount point; the tree is in $AGED")
    deadline: float = Field(default=1800, gt=0, le=2_000_000, description="guest seconds")


class Curve(Frozen):
    """Points of the history at which the disk can be mapped: after these repetitions of a step.

    With ``tested_on`` the disk is always mapped and tested there, and so is a control for each point: on each of these
    drives in turn, whatever drive the history ran on.
    """

    step: Name = Field(description="the step whose repetitions they follow")
    after: tuple[Annotated[int, Field(ge=1)], ...] | Literal["each"] = Field(
        description="the repetitions that they follow"
    )
    tested_on: dict[Name, Annotated[str, Field(pattern=r"^model:")]] = Field(
        default={}, description="drives, by the prefix of their steps' names"
    )

    def has(self, step: str, repetition: int) -> bool:
        """Return True if a point follows that repetition."""
        return step == self.step and (self.after == "each" or repetition in self.after)


class Ratio(Frozen):
    """A metric of a step's last repetition divided by that of its first."""

    step: Name = Field(description="the step that is repeated")
    metric: str = Field(description="the metric that is divided")
    name: str = Field(description="the metric of the ratio: throughput_ratio")


AGED, CONTROL, CURVE = "aged", "control", "curve"
"""The kinds of disks that are tested and mapped: with a history, without one, and at points of it."""
DISKS = (AGED, CONTROL, CURVE)
PREPARED = "prepared"
"""Kind of disk that experiments start from."""
MAP = "map"
"""Step that maps a disk; a point of the history is its repetition."""
AGED_MAP, CONTROL_MAP = f"{AGED}/{MAP}", f"{CONTROL}/{MAP}"


@dataclass(frozen=True)
class StepId:
    """A step as samples name it: ``copy``, ``aged/read``, ``then/control/scan``, ``strace/read1/open``."""

    name: str
    """Name of the step or test; in a trace's samples, of the system call."""
    within: tuple[str, ...] = ()
    """Preceding names, outermost first: a drive or a pass under strace, then a phase, disk or experiment."""

    @classmethod
    @cache
    def parse(cls, text: str) -> "StepId":
        *within, name = text.split("/")
        return cls(name, tuple(within))

    def __str__(self) -> str:
        return "/".join((*self.within, self.name))

    @property
    def group(self) -> str:
        """Everything before the name: the phase of a ``mount``, the step of a system call."""
        return "/".join(self.within)

    @property
    def disk(self) -> str:
        """Kind of disk that it ran on, or empty if the name has none."""
        return self.within[-1] if self.within and self.within[-1] in DISKS else ""

    @property
    def label(self) -> str:
        """Part before the disk: the drive on which points of a history are tested."""
        return "/".join(self.within[:-1] if self.disk else self.within)

    @property
    def on_aged_disk(self) -> bool:
        return self.disk == AGED

    @property
    def is_map(self) -> bool:
        """True for a step that maps a disk."""
        return self.name == MAP and bool(self.within)

    def on(self, disk: str) -> "StepId":
        """Return the same test on that kind of disk."""
        return StepId(self.name, (*self.within, disk))

    def of_part(self, part: str) -> "StepId":
        """Return the part of a step that a program tells apart, as a job of fio: ``aged/mixed.randread``."""
        return StepId(f"{self.name}.{part}", self.within) if part else self

    @property
    def plain_name(self) -> str:
        """Name of the step in its scenario, without a part of it."""
        return self.name.partition(".")[0]

    def beside(self, name: str) -> "StepId":
        """Return the step of that name in the same phase."""
        return StepId(name, self.within)

    def inside(self, phase: str) -> "StepId":
        """Return the step within a phase, unless its name begins with the phase already."""
        outer = tuple(phase.split("/")) if phase else ()
        if (*self.within, self.name)[: len(outer)] == outer:
            return self
        return StepId(self.name, (*outer, *self.within))


@dataclass(frozen=True)
class ForkName:
    """Name of a fork: ``aged``, ``prepared-1``, and at points of a history ``curve-12``, ``control-3``."""

    kind: str
    number: int | None = None
    """Number of the point, or of the preparation."""

    @classmethod
    def parse(cls, text: str) -> "ForkName":
        parts = re.fullmatch(r"(.+)-(0|[1-9][0-9]*)", text, re.ASCII | re.DOTALL)
        return cls(parts[1], int(parts[2])) if parts else cls(text)

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}-{self.number}"
