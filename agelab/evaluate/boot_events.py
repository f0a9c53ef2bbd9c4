"""The events that a guest sends during one boot."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import ValidationError

from agelab.evaluate import event_code
from agelab.results.result import (
    EVENT,
    CellEnded,
    Event,
    HarnessReady,
    Mounted,
    PowerIsCut,
    RebootRequested,
    Sample,
    SampleSent,
    StepBegun,
    StepDone,
    StepFailed,
)
from agelab.scenario.step import StepId

QUOTED = 200
"""Characters of an event that are quoted in a reason."""


@dataclass
class BootEvents:
    """The events of one boot so far."""

    secret: bytes = field(default_factory=lambda: os.urandom(event_code.SECRET_BYTES))
    """Known to the host and the boot's harness alone; it takes the guest as many instructions as any other."""
    ended: CellEnded | None = None
    reboot: RebootRequested | None = None
    cut: PowerIsCut | None = None
    mounted: Mounted | None = None
    begun: StepBegun | None = None
    """The step that is under way."""
    failures: list[StepFailed] = field(default_factory=list)
    lines: int = 0
    """Number of the harness's last line."""
    lost: bool = False
    """True if one before it is missing."""
    foreign: str = ""
    """The first event that is not the harness's, or not in its place: a reason why the cell failed."""
    on_event: Callable[[Event], None] = lambda _: None
    """Hears each event of the harness as it comes."""

    @property
    def last_word(self) -> CellEnded | RebootRequested | PowerIsCut | None:
        """The event after which the harness says no more."""
        return self.ended or self.reboot or self.cut

    @property
    def step_under_way(self) -> str:
        """The step that is under way, in words."""
        return f"step {self.begun.step}, repetition {self.begun.repetition}" if self.begun else ""

    def hear(self, line: str, phase: str, record: Callable[[Sample], None], on_step: Callable[[str], None]) -> None:
        """Take in one line of a boot of that phase.

        A line that is no event (a kernel message broke into it, a crash cut it short) changes nothing. An event that is
        not the harness's next one is noted, and not taken.
        """
        number, text = event_code.decode(line, self.secret)
        is_next = number > self.lines
        if is_next:
            self.lost = self.lost or number > self.lines + 1
            self.lines = number
        try:
            event = EVENT.validate_json(text)
        except ValidationError:
            return
        if not is_next:
            step = f"{self.step_under_way}: " if self.begun else ""
            why = f"{step}an event came that the harness did not write, or not at this place: {text[:QUOTED]}"
            self.foreign = self.foreign or why
            return
        self.on_event(event)

        def in_phase(step: str) -> str:
            return str(StepId.parse(step).inside(phase))

        match event:
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
