"""The boots of one cell before they run: their plans, their disks, and the inputs that follow from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agelab.base import readers
from agelab.data.corpus import Corpus
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.execute import disk_maps, history_points
from agelab.runner.execute.disk_files import DiskFiles
from agelab.runner.execute.forks import Forks
from agelab.runner.execute.guest_launcher import GuestLauncher
from agelab.runner.execute.history_points import PointsBoot
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.boot import FIRST_BOOT, Boot, BootStart
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import DATA_DISK, guest_plan
from agelab.runner.plan.kept_output import disk_bytes, with_keepers
from agelab.runner.plan.phases import Phase, phases
from agelab.scenario.step import AGED, CONTROL, MAP, ForkName
from agelab.store import stored_disk
from agelab.store.stored_disk import StoredDisk


@dataclass(frozen=True)
class CellGoals:
    """The goals of a cell beyond its scenario."""

    start_from: StoredDisk | None = None
    """Start from a fork of this disk instead of making one."""
    companion: StoredDisk | None = None
    """The filesystem beside the disk under test."""
    keep_as: stored_disk.DiskRecipe | None = None
    """Keep the disk that is made, with this recipe."""
    measure: bool = True
    """Go on after the disk is made."""
    curve: bool = False
    """Map the disk at the points of the scenario's curve, too."""
    readable_by: int = readers.EVERYBODY
    """Who may read a disk that is kept (agelab.base.fileio)."""
    disks_in_memory: bool = False
    """The disks lie in the host's memory while the cell runs."""
    host_bytes: int = 0
    """Memory that the cell takes of a host."""


@dataclass(frozen=True)
class CellBoots:
    """Plans the boots of one cell."""

    launcher: GuestLauncher
    goals: CellGoals

    @property
    def spec(self) -> CellSpec:
        return self.launcher.spec

    @property
    def corpus(self) -> Corpus:
        return self.launcher.corpus

    @property
    def directory(self) -> Path:
        return self.launcher.directory

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases, the making of the disk first."""
        spec = self.spec
        every = phases(
            spec.scenario,
            self.corpus,
            curve=self.goals.curve,
            real=spec.disk.real,
            crash=spec.power_cut,
            failure=spec.failure,
        )
        return tuple(map(with_keepers, every if self.goals.measure else every[:1]))

    @cached_property
    def points(self) -> tuple[int, ...]:
        """The points of the history at which forks are tested and mapped."""
        if not (self.spec.scenario.tests_at_points and self.goals.measure):
            return ()
        names = self.phases[0].forks.values()
        return tuple(number for name in names if (number := ForkName.parse(name).number) is not None)

    @cached_property
    def disk_files(self) -> DiskFiles:
        return DiskFiles(self.goals.disks_in_memory)

    # ---- forks ----

    @cached_property
    def forks(self) -> Forks:
        return Forks(self.directory, self.spec, self.goals.start_from, self.disk_files)

    @cached_property
    def mapped_forks(self) -> tuple[str, ...]:
        """The forks that the map boot looks at; of a real disk, the disk itself."""
        if not (self.goals.measure and self.spec.scenario.measures):
            return ()
        if self.spec.disk.real:
            return (AGED,)
        if self.spec.scenario.tests_at_points:
            return tuple(history_points.fork_names(self.points))
        on_the_way = () if self.goals.start_from else tuple(self.phases[0].forks.values())[:-1]
        control = any(phase.name == CONTROL for phase in self.phases)
        return (*on_the_way, AGED, *([CONTROL] if control else []))

    @cached_property
    def used_forks(self) -> tuple[str, ...]:
        """The forks that are mapped, kept, copied from or started from: no other is taken."""
        if self.spec.disk.real:
            return ()
        started_from = [phase.fork_of for phase in self.phases if phase.fork_of]
        if self.spec.scenario.tests_at_points:
            copied = history_points.fork_names(self.points)
            copied += [self.final_fork] if self.goals.keep_as else []
        else:
            copied = [AGED] if self.goals.keep_as or any(phase.source for phase in self.phases) else []
        return tuple(dict.fromkeys([*self.mapped_forks, *copied, *started_from]))

    @property
    def final_fork(self) -> str:
        """The fork taken when the disk is made."""
        forks = self.phases[0].forks
        return forks[max(forks)]

    # ---- boots ----

    def disks(self, phase: Phase) -> tuple[MemoryDisk, ...]:
        """Return the memory-backed disks of a phase's partitions, in the order in which the plan numbers them."""
        disks = [
            MemoryDisk(self.directory / f"{phase.file_prefix}disk-{number}", size, written=True)
            for number, size in enumerate(self.spec.disk.memory_disks, start=DATA_DISK)
        ]
        if (place := self.spec.disk.companion_place) is not None and self.goals.companion:
            members = self.goals.companion.members
            disks[place] = MemoryDisk(members[0], self.spec.companion_bytes, written=False)
        return (*disks, *self.output_disk(phase))

    def output_disk(self, phase: Phase) -> tuple[MemoryDisk, ...]:
        """Return the disk that takes what a phase's steps print; none where nothing is read of it."""
        size = disk_bytes(phase)
        path = self.directory / f"{phase.file_prefix}output"
        return (MemoryDisk(path, size, written=True),) if size else ()

    def disks_under_test(self, phase: Phase) -> list[MemoryDisk]:
        """Return the disks of a phase that hold the disk under test, one for each member."""
        disks = self.disks(phase)
        return [disks[place] for place in self.spec.disk.member_places]

    def of_phase(self, phase: Phase, start: BootStart) -> Boot:
        source = self.forks.attached(AGED) if phase.source and start.number == 0 else ()
        return Boot(
            name=phase.file_prefix,
            number=start.number,
            day=phase.day,
            plan=guest_plan(self.spec, self.corpus, phase, start),
            memory_mib=self.spec.memory_mib(self.corpus),
            disks=(*self.disks(phase), *source),
            phase=phase.in_samples,
        )

    def copying_controls(self, points: Sequence[int]) -> PointsBoot:
        """Return the boot that copies the control of each point of the history."""
        return history_points.copying_controls(self.spec, self.corpus, self.forks, points)

    def testing(self, fork_names: Sequence[str]) -> Iterator[PointsBoot]:
        """Return a boot for each drive on which forks of the history are tested."""
        return history_points.testing(self.spec, self.corpus, self.forks, fork_names)

    def mapping(self, fork_names: Sequence[str]) -> Boot:
        return disk_maps.mapping_boot(self.spec, self.forks, fork_names, self.directory / "results")

    # ---- inputs ----

    @cached_property
    def disk_inputs(self) -> Mapping[str, Any]:
        """All that shapes the disk that is made, or the inputs of the disk that the cell starts from."""
        if self.goals.start_from:
            return self.goals.start_from.inputs
        return {**self._environment, **self._first_boot(self.phases[0])}

    def inputs(self) -> dict[str, Any]:
        """Return all that shapes the digits of the cell, as inputs.json has it."""
        shaped = {phase.name: self._first_boot(phase) for phase in self.phases[1:]}
        if self.points:
            names = history_points.fork_names(self.points)
            for boot in (self.copying_controls(self.points), *self.testing(names)):
                shaped[boot.phase] = self._shape(boot)
        if self.mapped_forks:
            shaped[MAP] = self._shape(self.mapping(self.mapped_forks))
        return {
            "making": self.disk_inputs,
            "measuring": {**self._environment, "phases": shaped} if shaped else None,
            "ratios": [ratio.model_dump() for ratio in self.spec.scenario.ratios],
        }

    @cached_property
    def _environment(self) -> dict[str, Any]:
        """The inputs that all boots of the cell share."""
        launcher = self.launcher
        module = launcher.module if self.spec.has_modelled_drive else None
        return cell_inputs.collect(
            self.spec,
            launcher.image,
            launcher.emulator,
            self.corpus,
            module,
            launcher.tools,
            self.goals.companion,
        )

    def _first_boot(self, phase: Phase) -> dict[str, Any]:
        return self._shape(self.of_phase(phase, FIRST_BOOT))

    def _shape(self, boot: Boot) -> dict[str, Any]:
        places = {f"fork-{name}": self.forks.directory_of(name) for name in self.used_forks}
        if self.goals.companion:
            places["beside"] = self.goals.companion.artefact.directory
        return self.launcher.inputs(boot, places)
