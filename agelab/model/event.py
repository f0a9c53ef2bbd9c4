"""What the guest says: one JSON object a line. The other end is harness/events.py."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agelab.model.base import Frozen
from agelab.model.result import Sample


class Ready(Frozen):
    """The harness runs; ``uptime`` is guest seconds since boot."""

    event: Literal["ready"]
    boot: int
    uptime: float
    release: str
    watchdog: bool


class Measured(Sample):
    """One sample."""

    event: Literal["sample"]

    def sample(self, prefix: str = "") -> Sample:
        """The sample without its envelope, its step named with what the guest does not know of: the phase."""
        fields = self.model_dump(exclude={"event"})
        return Sample.model_validate({**fields, "step": prefix + self.step})


class StepDone(Frozen):
    """A repetition of a step has ended, and its samples have been sent."""

    event: Literal["step"]
    step: str
    repetition: int


class StepFailed(Frozen):
    """A step's command ended with a status that the scenario does not expect."""

    event: Literal["failed"]
    step: str
    repetition: int
    status: int
    said: str


class Mounted(Frozen):
    """How the disk under test is mounted when the boot ends, where the host does not know."""

    event: Literal["mounted"]
    type: str
    options: str


class Said(Frozen):
    """How many lines the guest has written before this one: the last but one of a boot."""

    event: Literal["said"]
    lines: int


class Reboot(Frozen):
    """The boot ends here so that the next one begins with that step."""

    event: Literal["reboot"]
    next: int


class Ended(Frozen):
    """The cell's last word."""

    event: Literal["end"]
    status: Literal["ok", "failed", "hung"]
    reason: str | None


Event = Annotated[
    Ready | Measured | StepDone | StepFailed | Mounted | Said | Reboot | Ended, Field(discriminator="event")
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
