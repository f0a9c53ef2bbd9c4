"""The events that a guest sends during one boot."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import ValidationError

from agelab.model.event import (
    EVENT,
    CellEnded,
    HarnessReady,
    LinesWritten,
    Mounted,
    PowerIsCut,
    RebootRequested,
    SampleSent,
    StepBegun,
    StepDone,
    StepFailed,
)
from agelab.model.result import Sample
from agelab.model.step_id import StepId


@dataclass
class BootEvents:
    """The events of one boot so far."""

    ended: CellEnded | None = None
    reboot: RebootRequested | None = None
    cut: PowerIsCut | None = None
    mounted: Mounted | None = None
    begun: StepBegun | None = None
    """The step that is under way."""
    failures: list[StepFailed] = field(default_factory=list)
    lines: int = 0
    """Number of events."""
    lost: bool = False
    """True if the guest has written more of them."""

    @property
    def last_word(self) -> CellEnded | RebootRequested | PowerIsCut | None:
        """The event after which the harness says no more."""
        return self.ended or self.reboot or self.cut

    @property
    def step_under_way(self) -> str:
        """The step that is under way, in words."""
        return f"step {self.begun.step}, repetition {self.begun.repetition}" if self.begun else ""

    def hear(
        self, line: str, phase: str, record: Callable[[Sample], None], on_step: Callable[[str], None]
    ) -> None:
        """Take in one line of a boot of that phase.

        A line that is no event (a kernel message broke into it, a crash cut it short) changes nothing.
        """
        try:
            event = EVENT.validate_json(line)
        except ValidationError:
            return

        def in_phase(step: str) -> str:
            return str(StepId.parse(step).inside(phase))

        self.lines += 1
        match event:
            case LinesWritten():
                self.lost = self.lines <= event.lines
            case SampleSent():
                record(event.sample(in_phase(event.step)))
            case StepBegun():
                self.begun = event.model_copy(update={"step": in_phase(event.step)})
            case StepDone():
                self.begun = None
                on_step(f"{in_phase(event.step)} {event.repetition}")
            case StepFailed():
                self.failures.append(event.model_copy(update={"step": in_phase(event.step)}))
            case Mounted():
                self.mounted = event
            case PowerIsCut():
                self.cut = event
                on_step(f"{in_phase(event.step)} {event.repetition}: power cut")
            case RebootRequested():
                self.reboot = event
            case CellEnded():
                self.ended = event
            case HarnessReady():
                on_step("ready")
