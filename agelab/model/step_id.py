"""Names of steps in samples, and names of a disk's forks, in parts."""

import re
from dataclasses import dataclass
from functools import cache

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
        found = re.fullmatch(r"(.+)-(0|[1-9][0-9]*)", text, re.ASCII | re.DOTALL)
        return cls(found[1], int(found[2])) if found else cls(text)

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}-{self.number}"
