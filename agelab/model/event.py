"""What the guest says: one JSON object a line. The other end is harness/events.py."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agelab.model.base import Frozen, Label, Text
from agelab.model.result import Count, Sample, StuckTask

MAX_STUCK_TASKS = 64
"""Tasks that a guest may tell of."""


class HarnessReady(Frozen):
    """The harness runs; ``uptime`` is guest seconds since boot."""

    event: Literal["ready"]
    boot: Count
    uptime: float
    release: Label
    watchdog: bool


class SampleSent(Sample):
    """One sample."""

    event: Literal["sample"]

    def sample(self, step: str) -> Sample:
        """The sample without its envelope, of a step of that name: the guest does not know of phases."""
        fields = self.model_dump(exclude={"event"})
        return Sample.model_validate({**fields, "step": step})


class StepBegun(Frozen):
    """A repetition of a step, or mkfs or mount, begins."""

    event: Literal["begin"]
    step: Label
    repetition: Count


class StepDone(Frozen):
    """A repetition of a step has ended, and its samples have been sent."""

    event: Literal["step"]
    step: Label
    repetition: Count


class StepFailed(Frozen):
    """A step's command ended with a status that the scenario does not expect."""

    event: Literal["failed"]
    step: Label
    repetition: Count
    status: Count
    said: Text


class Mounted(Frozen):
    """How the disk under test is mounted when the boot ends, where the host does not know."""

    event: Literal["mounted"]
    type: Label
    options: Label


class PowerIsCut(Frozen):
    """The power is cut in the middle of that step; the next boot begins with the step after it."""

    event: Literal["cut"]
    step: Label
    repetition: int
    uptime: float
    next: int
    survived: str
    """What the steps have left in their safe place."""


class FilesystemChecked(Frozen):
    """What a filesystem's check or repair, or a mount that failed, has said after a power cut."""

    event: Literal["checked"]
    step: str
    status: int
    said: str


class LinesWritten(Frozen):
    """How many lines the guest has written before this one: the last but one of a boot."""

    event: Literal["said"]
    lines: int


class RebootRequested(Frozen):
    """The boot ends here so that the next one begins with that step."""

    event: Literal["reboot"]
    next: Count


class CellEnded(Frozen):
    """The cell's last word."""

    event: Literal["end"]
    status: Literal["ok", "failed", "hung"]
    reason: Text | None
    stuck: tuple[StuckTask, ...] = Field(default=(), max_length=MAX_STUCK_TASKS)


Event = Annotated[
    HarnessReady
    | SampleSent
    | StepBegun
    | StepDone
    | StepFailed
    | Mounted
    | PowerIsCut
    | FilesystemChecked
    | LinesWritten
    | RebootRequested
    | CellEnded,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
