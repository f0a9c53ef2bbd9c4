"""Take the host's time of a run's cells: --timing. Nothing of it reaches a guest, a key or a digest."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from agelab.base import orphans
from agelab.evaluate.boot_events import BootEvents
from agelab.machine.vm.processor_time import Program, ProgramWatch
from agelab.results.records import BootTime, CellTiming, StepTime
from agelab.results.result import Ending, Event, HarnessReady, PowerIsCut, StepBegun, StepDone
from agelab.runner.plan.guest_plan import Boot

MAKING = "making"
"""The phase of boots whose files have no prefix."""
Heard = tuple[float, Event]
"""An event, and when it was heard: host seconds, monotonic."""


@dataclass(frozen=True)
class CellTimer:
    """Takes the host's time of one cell."""

    directory: Path
    """The cell's directory, which is on the command line of its guests."""
    guests: ProgramWatch
    prepared: float
    boots: list[BootTime] = field(default_factory=list)

    def run(self, boot: Boot, events: BootEvents, launch: Callable[[], Ending]) -> Ending:
        """Carry out one boot by ``launch``, and take its time however it ends."""
        heard: list[Heard] = []
        events.on_event = lambda event: heard.append((time.monotonic(), event))
        began = time.monotonic()
        try:
            return launch()
        finally:
            guests = [
                program
                for program in self.guests.programs()
                if program.first_seen >= began and self._has(program, boot)
            ]
            self.boots.append(boot_time(boot, began, time.monotonic(), guests, heard))

    def _has(self, guest: Program, boot: Boot) -> bool:
        """Return whether it is the guest of a boot, beside which others of the cell may run."""
        return any(f"{self.directory}/{boot.name}events-" in word for word in guest.words)

    def timing(self, seconds: float) -> CellTiming:
        """Return the times of the cell, which has taken so many seconds."""
        return CellTiming(prepared=self.prepared, boots=tuple(self.boots), seconds=seconds)


class RunTimer:
    """Takes the host's time of all cells that run together, as a context: from their preparation to their end."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._prepared = 0.0
        self._guests = ProgramWatch(lambda program: program.is_guest and program.owner == orphans.tag())

    def __enter__(self) -> Self:
        self._guests.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._guests.__exit__()

    def begin_cells(self) -> None:
        """Take note that all is prepared."""
        self._prepared = round(time.monotonic() - self._began, 3)

    def of_cell(self, directory: Path) -> CellTimer:
        return CellTimer(directory, self._guests, self._prepared)


def boot_time(boot: Boot, began: float, ended: float, guests: Sequence[Program], heard: Sequence[Heard]) -> BootTime:
    """Split the time of a boot by what was heard when. A guest that was never ready has no other times."""
    up = min([guest.first_seen for guest in guests], default=began)
    ready = next((at for at, event in heard if isinstance(event, HarnessReady)), ended)
    last = heard[-1][0] if heard else ended
    steps = tuple(_steps(heard))
    between = last - ready - sum(step.seconds for step in steps)
    return BootTime(
        phase=boot.phase or MAKING,
        number=boot.number,
        launch=_rounded(up - began),
        ready=_rounded(ready - up),
        steps=steps,
        between=_rounded(between),
        end=_rounded(ended - last),
        processor=_rounded(sum(guest.used.own for guest in guests)),
    )


def _steps(heard: Sequence[Heard]) -> list[StepTime]:
    """List the steps that were heard to begin and to end; a power cut ends one, too."""
    steps, begun = [], None
    for at, event in heard:
        match event:
            case StepBegun():
                begun = at
            case StepDone() | PowerIsCut() if begun is not None:
                seconds = _rounded(at - begun)
                steps.append(StepTime(step=event.step, repetition=event.repetition, seconds=seconds))
                begun = None
    return steps


def _rounded(seconds: float) -> float:
    """Round to milliseconds; what lies within the rounding of clocks below zero is nothing."""
    return max(0.0, round(seconds, 3))
