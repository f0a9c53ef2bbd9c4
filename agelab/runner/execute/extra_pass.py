"""A pass of its own over the phases of a cell, whose guests write what they find to one more disk.

Its guests are others than those that measure, so neither key nor digest of the cell knows of it. What is measured at
the end of a cell is left out: maps, points of a history, passes under strace.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.execute.cell_boots import CellBoots, CellGoals
from agelab.runner.execute.cell_progress import PhaseAborted
from agelab.runner.execute.guest_launcher import GuestLauncher
from agelab.runner.execute.phase_runner import BootRunner, PhaseRunner
from agelab.runner.plan.boot import Boot, BootStart
from agelab.runner.plan.guest_plan import DATA_DISK
from agelab.runner.plan.phases import Phase


@dataclass(frozen=True)
class FoundDisk:
    """The disk to which the guests of a phase write what a pass is about."""

    file: str
    """The end of its file's name."""
    variable: str
    """The environment variable with its number in the guest."""
    size_of: Callable[[Phase], int]
    """Its bytes."""


@dataclass(frozen=True)
class PassBoots(CellBoots):
    """Plans the boots of a pass: the cell's own, with other steps and one more disk."""

    disk: FoundDisk
    changed: Callable[[Phase], Phase]
    """A phase of the cell to that of the pass."""

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(map(self.changed, super().phases))

    def of_phase(self, phase: Phase, start: BootStart) -> Boot:
        boot = super().of_phase(phase, start)
        number = DATA_DISK + len(boot.disks)
        environment = boot.plan["environment"] | {self.disk.variable: str(number)}
        disks = (*boot.disks, self.found_disk(phase))
        return replace(boot, plan={**boot.plan, "environment": environment}, disks=disks)

    def found_disk(self, phase: Phase) -> MemoryDisk:
        path = self.directory / f"{phase.file_prefix}{self.disk.file}"
        return MemoryDisk(path, self.disk.size_of(phase), written=True)


def boots(
    launcher: GuestLauncher,
    goals: CellGoals,
    directory: Path,
    tools: Mapping[str, Path],
    disk: FoundDisk,
    changed: Callable[[Phase], Phase],
    set_aside: int = 0,
) -> PassBoots:
    """Plan the boots of a pass in a directory of its own, of the cell's ``launcher`` and ``goals``.

    ``tools`` are the guest's programs for it, ``set_aside`` the bytes of memory that it takes beside the steps.
    """
    scenario = launcher.spec.scenario.model_copy(update={"measures": (), "traces": ()})
    own = replace(
        launcher,
        directory=directory,
        spec=replace(launcher.spec, scenario=scenario, set_aside=set_aside),
        tools={**launcher.tools, **tools},
    )
    return PassBoots(own, replace(goals, keep_as=None), disk, changed)


def run(runner: BootRunner, planned: PassBoots, read: Callable[[Path, Phase], None]) -> None:
    """Run the phases of a pass, and ``read`` the disk of each in the end, however far it came."""
    first = planned.phases[0]
    with suppress(PhaseAborted), ExitStack() as cleanup:
        for phase in planned.phases:
            if phase is first and planned.goals.start_from:
                continue
            goes_on = phase is not first or planned.spec.scenario.experiments
            with suppress(PhaseAborted) if goes_on else nullcontext():
                _run_phase(runner, planned, phase, cleanup, read)


def _run_phase(
    runner: BootRunner,
    planned: PassBoots,
    phase: Phase,
    cleanup: ExitStack,
    read: Callable[[Path, Phase], None],
) -> None:
    disk, files = planned.found_disk(phase), planned.disk_files
    files.create(disk.path, disk.size)
    try:
        try:
            PhaseRunner(runner, phase, cleanup).run()
        finally:
            read(disk.path, phase)
    finally:
        files.remove(disk.path)
