"""The profile of a cell: its phases once more, in guests of their own, with a profiler beside each step.

Nothing that this pass measures is a result, so neither key nor digest of the cell knows of it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from agelab.base import atomic
from agelab.base.hashing import key_of
from agelab.evaluate.cell_status import CellStatus
from agelab.evaluate.stacks.folded import FoldedStep, fold
from agelab.evaluate.stacks.log import UnreadableLog
from agelab.results import profile
from agelab.results.profile import CellProfile, StepProfile
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import extra_pass
from agelab.runner.execute.cell_boots import CellGoals
from agelab.runner.execute.cell_progress import CellProgress, PassProgress
from agelab.runner.execute.extra_pass import FoundDisk, PassBoots
from agelab.runner.execute.guest_launcher import GuestLauncher
from agelab.runner.execute.host_timing import CellTimer
from agelab.runner.execute.phase_runner import BootRunner
from agelab.runner.plan import profiling
from agelab.runner.plan.phases import Phase
from agelab.scenario.step import StepId
from agelab.store.artefacts import file_hash


@dataclass(frozen=True)
class Profiler:
    """What a profile takes beside the cell."""

    program: Path
    """The guest's profiler."""
    on_step: Callable[[str], None]
    """Hears of each step of the pass as it ends: ``profile/copy 7``."""


DISK = FoundDisk("samples", profiling.DISK_VARIABLE, lambda phase: profiling.DISK_BYTES)


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
    def boots(self) -> PassBoots:
        nanoseconds = profiling.interval(self.launcher.spec.machine)
        tools = {profiling.PROGRAM: self.profiler.program}
        changed = partial(profiling.profiled, nanoseconds=nanoseconds)
        return extra_pass.boots(self.launcher, self.goals, self.directory, tools, DISK, changed)

    @cached_property
    def progress(self) -> CellProgress:
        return PassProgress(self.run_directory, self.number, self.boots.spec)

    def run(self, inputs_key: str) -> CellProfile:
        """Run the phases of the cell, fold what was sampled, and write it down."""
        timer = replace(self.timer, directory=self.directory, boots=[]) if self.timer else None
        runner = BootRunner(self.boots, self.progress, self._tell, timer)
        extra_pass.run(runner, self.boots, self._fold)
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
