"""A pass of its own in which it is recorded what the modelled drives of a cell are sent.

Its guests are others than those that measure, so neither key nor digest of the cell knows of it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from agelab.base import atomic
from agelab.base.places import HARNESS
from agelab.evaluate.cell_status import CellStatus
from agelab.machine.drive import block_trace
from agelab.machine.drive.block_trace import BlockRequest, UnreadableEvents
from agelab.results import block_record
from agelab.results.block_record import RequestRecord, StepRecord
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import extra_pass
from agelab.runner.execute.cell_boots import CellGoals
from agelab.runner.execute.cell_progress import CellProgress, PassProgress
from agelab.runner.execute.extra_pass import FoundDisk, PassBoots
from agelab.runner.execute.guest_launcher import GuestLauncher
from agelab.runner.execute.phase_runner import BootRunner
from agelab.runner.plan import block_recording
from agelab.runner.plan.block_recording import HEADER_BYTES, PLACE_BYTES
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.step_plan import StepPlan
from agelab.scenario.step import StepId

DISK = FoundDisk("records", block_recording.DISK_VARIABLE, block_recording.disk_bytes)
TOOLS = {block_recording.PROGRAM: HARNESS / "output" / block_recording.PROGRAM}


@dataclass(frozen=True)
class BlockPass:
    """Records the requests of one cell."""

    run_directory: RunDirectory
    number: int
    launcher: GuestLauncher
    """The cell's own."""
    goals: CellGoals
    on_step: Callable[[str], None]
    steps: list[StepRecord] = field(default_factory=list)

    @cached_property
    def boots(self) -> PassBoots:
        directory = self.launcher.directory / block_record.PLACE
        directory.mkdir(exist_ok=True)
        what = (self.launcher, self.goals, directory, TOOLS, DISK, block_recording.recorded)
        return extra_pass.boots(*what, block_recording.MEMORY)

    @cached_property
    def progress(self) -> CellProgress:
        return PassProgress(self.run_directory, self.number, self.boots.spec)

    def run(self) -> RequestRecord:
        """Run the phases of the cell, and write down what their drives were sent."""
        extra_pass.run(BootRunner(self.boots, self.progress, self.on_step), self.boots, self._read)
        status = self.progress.status
        found = RequestRecord(status=status.status, reason=status.reason, steps=tuple(self.steps))
        self.run_directory.write_blocks(self.number, found)
        return found

    def _read(self, disk: Path, phase: Phase) -> None:
        """Write the records of the steps that have ended, as far as the phase came."""
        ended = {(one.step, one.repetition) for one in self.progress.samples if one.metric == "elapsed"}
        with disk.open("rb") as file:
            for place, step in enumerate(filter(block_recording.is_recorded, phase.steps)):
                step_id = str(StepId.parse(step.name).inside(phase.in_samples))
                if (step_id, step.repetition) not in ended:
                    continue
                try:
                    header, requests = _record(file, place, self.boots.spec.dilation)
                except UnreadableEvents as error:
                    why = f"{step_id} {step.repetition}: what was recorded cannot be read: {error}"
                    self.progress.judge(CellStatus(Status.FAILED, why))
                    continue
                self._write(header, requests, phase, step, step_id)

    def _write(
        self,
        header: dict[str, Any],
        requests: list[BlockRequest],
        phase: Phase,
        step: StepPlan,
        step_id: str,
    ) -> None:
        name = f"{phase.file_prefix}{step.name}-{step.repetition}"
        devices = {drive: number.replace(":", ",") for number, drive in header["drives"].items()}
        for ending, lines in (
            ("iolog", block_trace.iolog(requests)),
            ("blkparse", block_trace.blkparse(requests, devices)),
        ):
            text = "".join(f"{line}\n" for line in lines)
            atomic.write(self.boots.directory / f"{name}.{ending}", text.encode())
        sent = sum(not one.done for one in requests)
        self.steps.append(
            StepRecord(
                step=step_id, repetition=step.repetition, file=name, requests=sent, lost=header["lost"]
            )
        )


def _record(file: BinaryIO, place: int, dilation: float) -> tuple[dict[str, Any], list[BlockRequest]]:
    """Return the header and the requests of a place, which a guest wrote. Raises UnreadableEvents."""
    file.seek(place * PLACE_BYTES)
    try:
        header = json.loads(file.read(HEADER_BYTES).rstrip(b"\0"))
        size, lost, drives = header["bytes"], header["lost"], header["drives"]
        named = all(isinstance(one, str) and one.isascii() and one.isalnum() for one in drives.values())
        if not (0 <= size <= PLACE_BYTES - HEADER_BYTES and lost >= 0 and named):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UnreadableEvents("its header is none") from None
    text = file.read(size).decode(errors="replace")
    return {"lost": lost, "drives": drives}, block_trace.read_events(_lines(text), drives, dilation)


def _lines(text: str) -> Iterator[str]:
    yield from text.removesuffix("\n").split("\n") if text else ()
