"""Passes beside a cell: its phases once more in guests of their own, profiled or with the drives' requests recorded.

Nothing that they measure is a result, so neither key nor digest of the cell knows of them.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from agelab.base import atomic
from agelab.base.hashing import key_of
from agelab.base.places import HARNESS
from agelab.evaluate.cell_status import CellStatus
from agelab.evaluate.stacks.folded import FoldedStep, fold
from agelab.evaluate.stacks.log import UnreadableLog
from agelab.machine.block_trace import requests as block_trace
from agelab.machine.block_trace.requests import BlockRequest, UnreadableEvents
from agelab.machine.vm.guest import MemoryDisk
from agelab.results.records import BLOCKS, PROFILE, CellProfile, RequestRecord, StepProfile, StepRecord
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.guests import GuestLauncher
from agelab.runner.execute.host_timing import CellTimer
from agelab.runner.execute.phases import (
    BootRunner,
    CellBoots,
    CellGoals,
    CellProgress,
    PassProgress,
    PhaseAborted,
    PhaseRunner,
)
from agelab.runner.plan import passes
from agelab.runner.plan.guest_plan import DATA_DISK, Boot, BootStart
from agelab.runner.plan.passes import HEADER_BYTES, RECORD_BYTES
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.steps import StepPlan
from agelab.scenario.step import StepId
from agelab.store.artefacts import file_hash


def run_phases(runner: BootRunner, carry_out: Callable[[PhaseRunner], None]) -> None:
    """Carry out the phases of a cell once more, as far as they go."""
    boots = runner.boots
    first = boots.phases[0]
    with suppress(PhaseAborted), ExitStack() as cleanup:
        for phase in boots.phases:
            if phase is first and boots.goals.start_from:
                continue
            goes_on = phase is not first or boots.spec.scenario.experiments
            with suppress(PhaseAborted) if goes_on else nullcontext():
                carry_out(PhaseRunner(runner, phase, cleanup))


@dataclass(frozen=True)
class PassBoots(CellBoots):
    """Plans the boots of a pass: the cell's own, with other steps and one more disk."""

    cell_pass: "CellPass"

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(map(self.cell_pass.changed, super().phases))

    def of_phase(self, phase: Phase, start: BootStart) -> Boot:
        boot = super().of_phase(phase, start)
        number = DATA_DISK + len(boot.disks)
        environment = boot.plan["environment"] | {self.cell_pass.variable: str(number)}
        disks = (*boot.disks, self.pass_disk(phase))
        return replace(boot, plan={**boot.plan, "environment": environment}, disks=disks)

    def pass_disk(self, phase: Phase) -> MemoryDisk:
        """Return the disk to which the guests of a phase write what the pass is about."""
        path = self.directory / f"{phase.file_prefix}{self.cell_pass.file}"
        return MemoryDisk(path, self.cell_pass.disk_bytes(phase), written=True)


@dataclass(frozen=True)
class CellPass(ABC):
    """A pass beside one cell."""

    run_directory: RunDirectory
    number: int
    launcher: GuestLauncher
    """The cell's own."""
    goals: CellGoals
    on_step: Callable[[str], None]

    place: ClassVar[str]
    """Its directory in that of the cell."""
    file: ClassVar[str]
    """The end of the name of a phase's disk for what the pass is about."""
    variable: ClassVar[str]
    """The environment variable with its number in the guest."""
    set_aside: ClassVar[int] = 0
    """Bytes of memory that it takes beside the steps."""

    @property
    @abstractmethod
    def tools(self) -> Mapping[str, Path]:
        """The guest's programs for it."""

    @abstractmethod
    def disk_bytes(self, phase: Phase) -> int:
        """Return the size of that disk."""

    @abstractmethod
    def changed(self, phase: Phase) -> Phase:
        """Return a phase of the cell as the pass has it."""

    @abstractmethod
    def read(self, disk: Path, phase: Phase) -> None:
        """Read what the guests of a phase have written to the disk, however far it came."""

    def tell(self, step: str) -> None:
        self.on_step(step)

    @cached_property
    def directory(self) -> Path:
        path = self.launcher.directory / self.place
        path.mkdir(exist_ok=True)
        return path

    @cached_property
    def boots(self) -> PassBoots:
        spec = self.launcher.spec
        scenario = spec.scenario.model_copy(update={"measures": (), "traces": ()})
        launcher = replace(
            self.launcher,
            directory=self.directory,
            spec=replace(spec, scenario=scenario, set_aside=spec.set_aside + self.set_aside),
            tools={**self.launcher.tools, **self.tools},
        )
        return PassBoots(launcher, replace(self.goals, keep_as=None), self)

    @cached_property
    def progress(self) -> CellProgress:
        return PassProgress(self.run_directory, self.number, self.boots.spec)

    def run_phases(self, timer: CellTimer | None = None) -> None:
        """Run the phases of the cell, and read the disk of each in the end."""
        run_phases(BootRunner(self.boots, self.progress, self.tell, timer), self._run_phase)

    def _run_phase(self, runner: PhaseRunner) -> None:
        disk, files = self.boots.pass_disk(runner.phase), self.boots.disk_files
        files.create(disk)
        try:
            try:
                runner.run()
            finally:
                self.read(disk.path, runner.phase)
        finally:
            files.remove(disk.path)


@dataclass(frozen=True)
class Profiler:
    """What a profile takes beside the cell."""

    program: Path
    """The guest's profiler."""
    on_step: Callable[[str], None]
    """Hears of each step of the pass as it ends: ``profile/copy 7``."""


@dataclass(frozen=True)
class ProfilePass(CellPass):
    """Takes the profile of one cell."""

    program: Path
    """The guest's profiler."""
    timer: CellTimer | None = None
    steps: list[StepProfile] = field(default_factory=list)

    place = PROFILE
    file, variable = "samples", passes.SAMPLES_VARIABLE

    @property
    def tools(self) -> Mapping[str, Path]:
        return {passes.PROFILER: self.program}

    def disk_bytes(self, phase: Phase) -> int:
        return passes.SAMPLES_BYTES

    def changed(self, phase: Phase) -> Phase:
        return passes.profiled(phase, passes.interval(self.launcher.spec.machine))

    def tell(self, step: str) -> None:
        if " " in step:  # else a guest is ready
            self.on_step(f"{PROFILE}/{step}")

    def run(self, inputs_key: str) -> CellProfile:
        """Run the phases of the cell, fold what was sampled, and write it down."""
        timer = replace(self.timer, directory=self.directory, boots=[]) if self.timer else None
        self.run_phases(timer)
        status, guest_nanoseconds = self.progress.status, passes.interval(self.boots.spec.machine)
        key = {"cell": inputs_key, "program": file_hash(self.program), "interval": guest_nanoseconds}
        taken = CellProfile(
            status=status.status,
            reason=status.reason,
            key=f"sha256:{key_of(key)}",
            instructions=passes.INSTRUCTIONS,
            nanoseconds=round(guest_nanoseconds * self.boots.spec.dilation),
            steps=tuple(self.steps),
            processor_seconds=round(sum(boot.processor for boot in timer.boots), 3) if timer else None,
        )
        self.run_directory.write_beside(self.number, taken)
        return taken

    def read(self, disk: Path, phase: Phase) -> None:
        planned = {(step.name, step.repetition) for step in phase.steps if passes.is_watched(step)}
        try:
            with disk.open("rb") as file:
                for step in fold(file):
                    name = step.section.step, step.section.repetition
                    if name not in planned:
                        raise UnreadableLog(f"the phase has no step {name[0][:60]!r}, repetition {name[1]}")
                    planned.remove(name)
                    self.steps.append(self._kept(step, phase))
        except UnreadableLog as error:
            self.progress.judge(CellStatus(Status.FAILED, f"{phase.name}: what was sampled cannot be read: {error}"))

    def _kept(self, step: FoldedStep, phase: Phase) -> StepProfile:
        section = step.section
        name = str(StepId.parse(section.step).inside(phase.in_samples))
        # A step's own name has no dot: aged.read-1.folded is of no step of the making.
        file = f"{name.replace('/', '.')}-{section.repetition}.folded"
        data = step.stacks.text.encode()
        atomic.write(self.directory / file, data)
        return StepProfile(
            step=name,
            repetition=section.repetition,
            file=file,
            sha256=hashlib.sha256(data).hexdigest(),
            samples=step.stacks.samples,
            idle=step.idle,
            profiler=step.profiler,
            lost=step.lost,
        )


@dataclass(frozen=True)
class BlockPass(CellPass):
    """Records the requests of one cell."""

    steps: list[StepRecord] = field(default_factory=list)

    place = BLOCKS
    file, variable = "records", passes.RECORDS_VARIABLE
    set_aside = passes.EVENTS_MEMORY

    @property
    def tools(self) -> Mapping[str, Path]:
        return {passes.RECORDER: HARNESS / "output" / passes.RECORDER}

    def disk_bytes(self, phase: Phase) -> int:
        return passes.records_bytes(phase)

    def changed(self, phase: Phase) -> Phase:
        return passes.recorded(phase)

    def run(self) -> RequestRecord:
        """Run the phases of the cell, and write down what their drives were sent."""
        self.run_phases()
        status = self.progress.status
        record = RequestRecord(status=status.status, reason=status.reason, steps=tuple(self.steps))
        self.run_directory.write_beside(self.number, record)
        return record

    def read(self, disk: Path, phase: Phase) -> None:
        """Write the records of the steps that have ended, as far as the phase came."""
        ended = {(sample.step, sample.repetition) for sample in self.progress.samples if sample.metric == "elapsed"}
        with disk.open("rb") as file:
            for place, step in enumerate(filter(passes.is_watched, phase.steps)):
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
        self, header: dict[str, Any], requests: list[BlockRequest], phase: Phase, step: StepPlan, step_id: str
    ) -> None:
        name = f"{phase.file_prefix}{step.name}-{step.repetition}"
        devices = {drive: number.replace(":", ",") for number, drive in header["drives"].items()}
        for ending, lines in (
            ("iolog", block_trace.iolog(requests)),
            ("blkparse", block_trace.blkparse(requests, devices)),
        ):
            text = "".join(f"{line}\n" for line in lines)
            atomic.write(self.boots.directory / f"{name}.{ending}", text.encode())
        sent = sum(not request.done for request in requests)
        self.steps.append(
            StepRecord(step=step_id, repetition=step.repetition, file=name, requests=sent, lost=header["lost"])
        )


def _record(file: BinaryIO, place: int, dilation: float) -> tuple[dict[str, Any], list[BlockRequest]]:
    """Return the header and the requests of a place, which a guest wrote. Raises UnreadableEvents."""
    file.seek(place * RECORD_BYTES)
    try:
        header = json.loads(file.read(HEADER_BYTES).rstrip(b"\0"))
        size, lost, drives = header["bytes"], header["lost"], header["drives"]
        named = all(isinstance(number, str) and number.isascii() and number.isalnum() for number in drives.values())
        if not (0 <= size <= RECORD_BYTES - HEADER_BYTES and lost >= 0 and named):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UnreadableEvents("its header is none") from None
    text = file.read(size).decode(errors="replace")
    return {"lost": lost, "drives": drives}, block_trace.read_events(_lines(text), drives, dilation)


def _lines(text: str) -> Iterator[str]:
    yield from text.removesuffix("\n").split("\n") if text else ()
