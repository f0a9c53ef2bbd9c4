"""Names of steps in samples, and names of a disk's forks, in parts."""

import re
from dataclasses import dataclass
from functools import cache

AGED, CONTROL, CURVE = "aged", "control", "curve"
"""The kinds of disks that are tested and mapped: with a history, without one, and on the way through it."""
DISKS = (AGED, CONTROL, CURVE)
PREPARED = "prepared"
"""What experiments start from."""
MAP = "map"
"""The step in which a disk is mapped. A point of the history is its repetition."""
AGED_MAP, CONTROL_MAP = f"{AGED}/{MAP}", f"{CONTROL}/{MAP}"


@dataclass(frozen=True)
class StepId:
    """A step as samples name it: ``copy``, ``aged/read``, ``then/control/scan``, ``strace/read1/open``."""

    name: str
    """Of the step or test; in a trace's samples, of the system call."""
    within: tuple[str, ...] = ()
    """The names before it, outermost first: a drive or a pass under strace, then a phase, disk or experiment."""

    @classmethod
    @cache
    def parse(cls, text: str) -> "StepId":
        *within, name = text.split("/")
        return cls(name, tuple(within))

    def __str__(self) -> str:
        return "/".join((*self.within, self.name))

    @property
    def group(self) -> str:
        """All that comes before the name: the phase of a ``mount``, the step of a system call."""
        return "/".join(self.within)

    @property
    def disk(self) -> str:
        """The kind of disk it ran on, or nothing where the name does not say one."""
        return self.within[-1] if self.within and self.within[-1] in DISKS else ""

    @property
    def label(self) -> str:
        """What comes before the disk: the drive on which points of a history are tested."""
        return "/".join(self.within[:-1] if self.disk else self.within)

    @property
    def on_aged_disk(self) -> bool:
        return self.disk == AGED

    @property
    def on_control(self) -> bool:
        return self.disk == CONTROL

    @property
    def is_map(self) -> bool:
        """Whether it maps a disk."""
        return self.name == MAP and bool(self.within)

    def on(self, disk: str) -> "StepId":
        """The same test on that kind of disk."""
        return StepId(self.name, (*self.within, disk))

    def beside(self, name: str) -> "StepId":
        """The step of that name in the same phase."""
        return StepId(name, self.within)

    def inside(self, phase: str) -> "StepId":
        """The step as a phase's, unless its name begins with the phase's already."""
        outer = tuple(phase.split("/")) if phase else ()
        if (*self.within, self.name)[: len(outer)] == outer:
            return self
        return StepId(self.name, (*outer, *self.within))


@dataclass(frozen=True)
class ForkName:
    """The name of a fork: ``aged``, ``prepared-1``, and at the points of a history ``curve-12``, ``control-3``."""

    kind: str
    number: int | None = None
    """Of the point, or of what is prepared."""

    @classmethod
    def parse(cls, text: str) -> "ForkName":
        found = re.fullmatch(r"(.+)-(0|[1-9][0-9]*)", text, re.ASCII | re.DOTALL)
        return cls(found[1], int(found[2])) if found else cls(text)

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}-{self.number}"
