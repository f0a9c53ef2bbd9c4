"""Events from the guest, one JSON object per line. harness/events.py writes them."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agelab.model.base import Frozen, Label, Text
from agelab.model.result import Count, Sample, StuckTask

MAX_STUCK_TASKS = 64
"""Maximum number of stuck tasks that a guest may report."""


class HarnessReady(Frozen):
    """The harness has started; ``uptime`` is guest seconds since boot."""

    event: Literal["ready"]
    boot: Count
    uptime: float
    release: Label
    watchdog: bool


class SampleSent(Sample):
    """A sample."""

    event: Literal["sample"]

    def sample(self, step: str) -> Sample:
        """Return the sample under a step name with its phase, which the guest does not know."""
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
    """Type and options of the mount at the end of the boot, where the host does not know them."""

    event: Literal["mounted"]
    type: Label
    options: Label


class PowerIsCut(Frozen):
    """The power is cut during this step; the next boot begins with the step after it."""

    event: Literal["cut"]
    step: Label
    repetition: int
    uptime: float
    next: int
    survived: str
    """Content of the directory that survives the cut, as left by the steps."""


class FilesystemChecked(Frozen):
    """Output of a filesystem check or repair, or of a failed mount, after a power cut."""

    event: Literal["checked"]
    step: str
    status: int
    said: str


class RebootRequested(Frozen):
    """The boot ends here; the next one begins with this step."""

    event: Literal["reboot"]
    next: Count


class CellEnded(Frozen):
    """The cell has ended; the last event."""

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
    | RebootRequested
    | CellEnded,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
