"""The profile of a cell: its phases once more, in guests of their own, with a profiler beside each step.

Nothing that this pass measures is a result, so neither key nor digest of the cell knows of it.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from agelab import atomic
from agelab.model import profile
from agelab.model.profile import CellProfile, StepProfile
from agelab.model.result import Status
from agelab.model.step_id import StepId
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.cell_boots import CellBoots, CellGoals
from agelab.runner.execute.cell_progress import CellProgress, PassProgress, PhaseAborted
from agelab.runner.execute.cell_status import CellStatus
from agelab.runner.execute.guest_launcher import GuestLauncher
from agelab.runner.execute.host_timing import CellTimer
from agelab.runner.execute.phase_runner import BootRunner, PhaseRunner
from agelab.runner.plan import profiling
from agelab.runner.plan.boot import Boot, BootStart
from agelab.runner.plan.guest_plan import DATA_DISK
from agelab.runner.plan.phases import Phase
from agelab.stacks.folding import FoldedStep, fold
from agelab.stacks.log import UnreadableLog
from agelab.store import file_hash, key_of
from agelab.vm.guest import MemoryDisk


@dataclass(frozen=True)
class Profiler:
    """What a profile takes beside the cell."""

    program: Path
    """The guest's profiler."""
    on_step: Callable[[str], None]
    """Hears of each step of the pass as it ends: ``profile/copy 7``."""


@dataclass(frozen=True)
class ProfiledBoots(CellBoots):
    """Plans the boots of a profile: the cell's own, with one more disk for the samples."""

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        nanoseconds = profiling.interval(self.spec.machine)
        return tuple(profiling.profiled(phase, nanoseconds) for phase in super().phases)

    def of_phase(self, phase: Phase, start: BootStart) -> Boot:
        boot = super().of_phase(phase, start)
        number = DATA_DISK + len(boot.disks)
        environment = boot.plan["environment"] | {profiling.DISK_VARIABLE: str(number)}
        return replace(
            boot,
            plan={**boot.plan, "environment": environment},
            disks=(*boot.disks, self.samples_disk(phase)),
        )

    def samples_disk(self, phase: Phase) -> MemoryDisk:
        return MemoryDisk(self.directory / f"{phase.file_prefix}samples", profiling.DISK_BYTES, written=True)


@dataclass(frozen=True)
class ProfilePass:
    """Takes the profile of one cell."""

    run_directory: RunDirectory
    number: int
    launcher: GuestLauncher
    """The cell's own."""
    goals: CellGoals
    profiler: Profiler
    timer: CellTimer | None = None
    steps: list[StepProfile] = field(default_factory=list)

    @cached_property
    def directory(self) -> Path:
        """The profile's directory, in that of the cell."""
        path = self.launcher.directory / profile.PLACE
        path.mkdir()
        return path

    @cached_property
    def boots(self) -> ProfiledBoots:
        """What is measured at the end of a cell is left out: maps, points of a history, passes under strace."""
        spec = self.launcher.spec
        scenario = spec.scenario.model_copy(update={"measures": (), "traces": ()})
        launcher = replace(
            self.launcher,
            directory=self.directory,
            spec=replace(spec, scenario=scenario),
            tools={**self.launcher.tools, profiling.PROGRAM: self.profiler.program},
        )
        return ProfiledBoots(launcher, replace(self.goals, keep_as=None))

    @cached_property
    def progress(self) -> CellProgress:
        return PassProgress(self.run_directory, self.number, self.boots.spec)

    def run(self, inputs_key: str) -> CellProfile:
        """Run the phases of the cell, fold what was sampled, and write it down."""
        timer = replace(self.timer, directory=self.directory, boots=[]) if self.timer else None
        runner = BootRunner(self.boots, self.progress, self._tell, timer)
        first = self.boots.phases[0]
        with suppress(PhaseAborted), ExitStack() as cleanup:
            for phase in self.boots.phases:
                if phase is first and self.goals.start_from:
                    continue
                goes_on = phase is not first or self.boots.spec.scenario.experiments
                with suppress(PhaseAborted) if goes_on else nullcontext(), self._sampled(phase):
                    PhaseRunner(runner, phase, cleanup).run()
        return self._written(inputs_key, timer)

    def _tell(self, step: str) -> None:
        if " " in step:  # else a guest is ready
            self.profiler.on_step(f"{profile.PLACE}/{step}")

    def _written(self, inputs_key: str, timer: CellTimer | None) -> CellProfile:
        status, machine = self.progress.status, self.boots.spec.machine
        guest_nanoseconds = profiling.interval(machine)
        key = {"cell": inputs_key, "program": file_hash(self.profiler.program), "interval": guest_nanoseconds}
        found = CellProfile(
            status=status.status,
            reason=status.reason,
            key=f"sha256:{key_of(key)}",
            instructions=profiling.INSTRUCTIONS,
            nanoseconds=round(guest_nanoseconds * self.boots.spec.dilation),
            steps=tuple(self.steps),
            processor_seconds=round(sum(boot.processor for boot in timer.boots), 3) if timer else None,
        )
        self.run_directory.write_profile(self.number, found)
        return found

    @contextmanager
    def _sampled(self, phase: Phase) -> Iterator[None]:
        """Make the disk for the samples of a phase; fold them in the end, however far it came."""
        disk, files = self.boots.samples_disk(phase), self.boots.disk_files
        files.create(disk.path, disk.size)
        try:
            try:
                yield
            finally:
                self._fold(disk.path, phase)
        finally:
            files.remove(disk.path)

    def _fold(self, disk: Path, phase: Phase) -> None:
        planned = {(step.name, step.repetition) for step in phase.steps if profiling.is_profiled(step)}
        try:
            with disk.open("rb") as file:
                for step in fold(file):
                    name = step.section.step, step.section.repetition
                    if name not in planned:
                        raise UnreadableLog(f"the phase has no step {name[0][:60]!r}, repetition {name[1]}")
                    planned.remove(name)
                    self.steps.append(self._kept(step, phase))
        except UnreadableLog as error:
            self.progress.judge(
                CellStatus(Status.FAILED, f"{phase.name}: what was sampled cannot be read: {error}")
            )

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
