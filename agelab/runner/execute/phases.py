"""The phases of a cell: its boots before they run, one after the other on the same disks, and what came of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from agelab.base import readers
from agelab.base.errors import AgelabError
from agelab.data.corpus import Corpus
from agelab.evaluate import step_output
from agelab.evaluate.boot_events import BootEvents
from agelab.evaluate.cell_status import CellStatus, judge_boot
from agelab.machine.drive import used
from agelab.machine.vm.guest import MemoryDisk
from agelab.results.result import CellEnded, Ending, Sample, Status, StepFailed
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import disk_maps
from agelab.runner.execute.disk_maps import PointsBoot
from agelab.runner.execute.disks import Content, DiskFiles, Forks
from agelab.runner.execute.guests import GuestLauncher
from agelab.runner.execute.host_timing import CellTimer
from agelab.runner.execute.power_cut import RecordedDrive
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.disk_plans import MountedAs
from agelab.runner.plan.guest_plan import DATA_DISK, FIRST_BOOT, Boot, BootStart, guest_plan
from agelab.runner.plan.passes import is_keeper, output_bytes, outputs, with_keepers
from agelab.runner.plan.phases import Phase, phases
from agelab.scenario.step import AGED, CONTROL, MAP, ForkName, StepId
from agelab.store import stored_disk
from agelab.store.artefacts import file_hash
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
    blocks: bool = False
    """Record what its drives are sent, in a pass of its own."""
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
            return tuple(disk_maps.fork_names(self.points))
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
            copied = disk_maps.fork_names(self.points)
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
        return (*disks, *self.output_disk(phase), *self.records(phase))

    @cached_property
    def contents(self) -> dict[int, Content]:
        """What new disks have in them, by their places: the maps of drives that were used."""
        store, progress = self.launcher.guests.store, self.launcher.guests.progress
        used_drives = self.spec.disk.used(self.spec.run_seed)
        return {place: Content(used.obtain(one, store, progress), one.at) for place, one in used_drives.items()}

    def output_disk(self, phase: Phase) -> tuple[MemoryDisk, ...]:
        """Return the disk that takes what a phase's steps print; none where nothing is read of it."""
        size = output_bytes(phase)
        path = self.directory / f"{phase.file_prefix}output"
        return (MemoryDisk(path, size, written=True),) if size else ()

    def records(self, phase: Phase) -> tuple[MemoryDisk, ...]:
        """Return the disks that take the records of drives, in a phase in which the power is cut."""
        drives = self.spec.disk.recorded if phase.cuts() else ()
        return tuple(
            MemoryDisk(self.directory / f"{phase.file_prefix}record-{number}", room, written=True)
            for number, (room, _) in enumerate(drives)
        )

    def recorded(self, phase: Phase, start: BootStart) -> list[RecordedDrive]:
        """Return the drives that are recorded in a boot: those of one in which the power may be cut."""
        if not phase.cuts(start.first_step):
            return []
        disks = self.disks(phase)
        return [
            RecordedDrive(
                record.path,
                [(disks[place], part) for place, part in partitions.items() if disks[place].written],
            )
            for record, (_, partitions) in zip(self.records(phase), self.spec.disk.recorded, strict=True)
        ]

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
        return disk_maps.copying_controls(self.spec, self.corpus, self.forks, points)

    def testing(self, fork_names: Sequence[str]) -> Iterator[PointsBoot]:
        """Return a boot for each drive on which forks of the history are tested."""
        return disk_maps.testing(self.spec, self.corpus, self.forks, fork_names)

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
            names = disk_maps.fork_names(self.points)
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
        shared = cell_inputs.collect(
            self.spec,
            launcher.guests.image,
            launcher.guests.emulator,
            self.corpus,
            module,
            launcher.tools,
            self.goals.companion,
        )
        if library := launcher.guests.schedule:
            shared["schedule"] = {"library": file_hash(library), "drawn": self.spec.schedule_words}
        return shared

    def _first_boot(self, phase: Phase) -> dict[str, Any]:
        return self._shape(self.of_phase(phase, FIRST_BOOT))

    def _shape(self, boot: Boot) -> dict[str, Any]:
        places = {f"fork-{name}": self.forks.directory_of(name) for name in self.used_forks}
        if self.goals.companion:
            places["beside"] = self.goals.companion.artefact.directory
        return self.launcher.inputs(boot, places)


MEMORY_TOLERANCE = 256 * 1024
"""Bytes by which the memory that the first step finds may always differ from the plan's."""
LARGE_TOLERANCE = 2048
"""It may differ by this part of the plan's, too: a large guest keeps a MiB of free pages aside, and counts them seconds
after the ballast is taken (Linux mm/vmstat.c, refresh_cpu_vm_stats)."""

FAILED_AFTER = "failed_after"
"""The metric by which the harness tells that a drive has failed."""


class PhaseAborted(Exception):
    """A phase did not come to its end: nothing can follow it."""


def memory_is_off(available: float, planned: int) -> bool:
    """Return True if the memory that a first step found (bytes) is not the plan's."""
    return abs(available - planned) > max(MEMORY_TOLERANCE, planned // LARGE_TOLERANCE)


@dataclass
class CellProgress:
    """The progress of a cell."""

    run: RunDirectory
    number: int
    """The cell's number in its run."""
    spec: CellSpec
    samples: list[Sample] = field(default_factory=list)
    status: CellStatus = field(default_factory=lambda: CellStatus(Status.OK))
    disk: StoredDisk | None = None
    """The stored disk that the cell starts from or has kept."""
    maps: dict[str, str] = field(default_factory=dict)
    """File to sha256 of all that the map boot brought back."""
    pictures: dict[str, str] = field(default_factory=dict)
    """File to sha256 of what was drawn of the maps."""
    mounts: dict[str, MountedAs] = field(default_factory=dict)
    """The last mount of each fork, where a script decided it."""

    def record(self, sample: Sample) -> None:
        """Add a sample, on the host's disk as well; what keeping another step's output takes is none."""
        if is_keeper(sample.step):
            return
        self.write(sample)
        self.samples.append(sample)

    def write(self, sample: Sample) -> None:
        self.run.append(self.number, sample)

    def forked(self, name: str) -> None:
        """Take note that a fork is there, whole."""

    def judge(self, status: CellStatus) -> None:
        """Take in how a boot ended: the first trouble is what the cell reports."""
        if self.status.ok:
            self.status = status

    def judge_last_boot(self, status: CellStatus, phase: str) -> None:
        """Take in how the last boot of a phase ended.

        A real drive that changed goes before: any other failure may be its consequence. Memory that was not the plan's
        is a failure by itself, as is a drive that was to fail and did not.
        """
        self.judge(self.changed_drive() or self._checked_failure(self._checked_memory(status, phase)))

    def require_drives(self) -> None:
        """Raise PhaseAborted where a real drive has changed since the run claimed it."""
        if changed := self.changed_drive():
            self.judge(changed)
            raise PhaseAborted

    def changed_drive(self) -> CellStatus | None:
        """Return the status of a cell whose real drive has changed since the run claimed it."""
        for drive in self.spec.disk.drives:
            if drive.claim and (why := drive.claim.problem()):
                return CellStatus(Status.FAILED, f"the drive changed while the cell ran: {why}")
        return None

    def _checked_failure(self, status: CellStatus) -> CellStatus:
        failure = self.spec.failure
        if failure is None or not status.ok or any(sample.metric == FAILED_AFTER for sample in self.samples):
            return status
        why = f"{failure}: the repetition ended before the drive was to fail"
        return CellStatus(Status.FAILED, why)

    def _checked_memory(self, status: CellStatus, phase: str) -> CellStatus:
        boot = str(StepId("boot").inside(phase))
        planned = self.spec.available_bytes
        for sample in self.samples:
            is_memory = (sample.step, sample.metric) == (boot, "memory_available")
            if is_memory and memory_is_off(sample.value or 0, planned) and status.ok:
                why = f"{boot} {sample.repetition}: {sample.value} bytes were available, not {planned}"
                return CellStatus(Status.FAILED, why)
        return status


@dataclass
class PassProgress(CellProgress):
    """The progress of a pass of its own, whose samples are no results."""

    def record(self, sample: Sample) -> None:
        self.samples.append(sample)


REBOOTS = CellEnded(event="end", status="ok", reason=None)
"""Stands for the last word of a boot that another one follows."""


@dataclass(frozen=True)
class BootRunner:
    """Runs boots of a cell and judges how they ended."""

    boots: CellBoots
    progress: CellProgress
    on_step: Callable[[str], None]
    """Hears the name and repetition of each step as it ends."""
    timer: CellTimer | None = None
    """Takes the host's time, where it is asked for."""

    def run(self, boot: Boot, events: BootEvents) -> Ending:
        launch = partial(self.boots.launcher.run, boot, events, self.progress.record, self._tell)
        return self.timer.run(boot, events, launch) if self.timer else launch()

    def _tell(self, step: str) -> None:
        """Tell of a step that has ended, but for those that only keep another's output."""
        if not is_keeper(step.partition(" ")[0]):
            self.on_step(step)

    def run_alone(self, boot: Boot) -> CellStatus:
        """Run a boot that no other follows."""
        events = BootEvents()
        ending = self.run(boot, events)
        return self.status(boot, ending, events, events.ended, events.failures)

    def status(
        self,
        boot: Boot,
        ending: Ending,
        events: BootEvents,
        ended: CellEnded | None,
        failures: Sequence[StepFailed],
    ) -> CellStatus:
        """Judge a boot by what the harness, the console and the domain tell."""
        console = self.boots.launcher.console(boot)
        return judge_boot(
            ending,
            ended,
            failures,
            console,
            gone=boot.plan["gone"],
            during=events.step_under_way,
            foreign=events.foreign,
        )


@dataclass(frozen=True)
class PhaseRunner:
    """Runs one phase."""

    runner: BootRunner
    phase: Phase
    cell_cleanup: ExitStack
    """Removes the phase's forks when the cell ends."""
    failures: list[StepFailed] = field(default_factory=list)
    """The failed steps of all its boots."""

    @property
    def progress(self) -> CellProgress:
        return self.runner.progress

    @property
    def boots(self) -> CellBoots:
        return self.runner.boots

    def run(self) -> None:
        """Boot until the harness has ended the phase. Raises PhaseAborted where it does not come to its end."""
        fork = self.phase.fork_of
        if fork and fork != AGED and not self.boots.forks.exists(fork):
            self.progress.judge(CellStatus(Status.FAILED, f"{self.phase.name}: what it starts from was not prepared"))
            raise PhaseAborted
        with self._disks():
            start: BootStart | None = BootStart(mounted=self.progress.mounts.get(fork or ""))
            try:
                while start:
                    start = self._run_boot(start)
            finally:
                self._read_outputs()

    def _read_outputs(self) -> None:
        """Add the samples that the steps of the phase have printed, as far as it came."""
        spec = self.boots.spec
        for disk in self.boots.output_disk(self.phase):
            kept = outputs(self.phase, spec.workload.programs)
            for sample in step_output.samples(
                disk.path, kept, spec.workload.metrics, spec.dilation, self.progress.samples
            ):
                self.progress.record(sample)

    @contextmanager
    def _disks(self) -> Iterator[None]:
        """Make the phase's disks, empty or as copies of its fork, and remove them in the end."""
        under_test, files = self.boots.disks_under_test(self.phase), self.boots.disk_files
        with ExitStack() as cleanup:
            for place, disk in enumerate(self.boots.disks(self.phase)):
                if not disk.written:
                    continue
                cleanup.callback(files.remove, disk.path)
                if disk in under_test and self.phase.fork_of:
                    members = self.boots.forks.files(self.phase.fork_of)
                    files.copy(members[under_test.index(disk)], disk.path)
                else:
                    files.create(disk, self.boots.contents.get(place))
            yield

    def _run_boot(self, start: BootStart) -> BootStart | None:
        """Run one boot, and say where the next one starts; None after the last."""
        self.progress.require_drives()
        boot = self.boots.of_phase(self.phase, start)
        events = BootEvents(failures=self.failures)
        recorded, files = self.boots.recorded(self.phase, start), self.boots.disk_files
        with ExitStack() as cleanup:
            for drive in recorded:
                drive.keep(files, cleanup)
            ending = self.runner.run(boot, events)
            next_step = _next_step(start, ending, events)
            self._judge(boot, ending, events, next_step)
            if events.cut:
                self._cut(recorded, events.cut.at)
        mounted = (events.mounted.type, events.mounted.options) if events.mounted else start.mounted
        if not events.cut:  # a fork is of an unmounted disk
            self._fork(next_step, mounted)
        if next_step is None:
            return None
        survived = events.cut.survived if events.cut else None
        return BootStart(start.number + 1, next_step, mounted, survived)

    def _cut(self, recorded: Sequence[RecordedDrive], at: int) -> None:
        """Leave on the disks what a power cut at that time of the drives leaves. Raises PhaseAborted."""
        try:
            for drive in recorded:
                drive.cut(at, self.boots.disk_files)
        except AgelabError as error:
            self.progress.judge(CellStatus(Status.FAILED, f"{error}; {error.hint}"))
            raise PhaseAborted from error

    def _judge(self, boot: Boot, ending: Ending, events: BootEvents, next_step: int | None) -> None:
        """Judge one boot. Raises PhaseAborted where no other may follow.

        Failed steps are reported at the end of the phase, but those that prepare an experiment at once: nothing starts
        from what they leave.
        """
        is_last = next_step is None
        ended = events.ended if is_last else REBOOTS
        unprepared = bool(self.failures) and bool(self.boots.spec.scenario.experiments)
        reported = self.failures if is_last or unprepared else []
        status = self.runner.status(boot, ending, events, ended, self._with_last_words(reported))
        if not is_last and status.ok:
            return
        self.progress.judge_last_boot(status, self.phase.in_samples)
        if not is_last or unprepared or not (ended and ended.status == "ok"):
            raise PhaseAborted

    def _with_last_words(self, failures: Sequence[StepFailed]) -> Sequence[StepFailed]:
        """Return failed steps with what their outputs say of the reason."""
        kept = list(outputs(self.phase, self.boots.spec.workload.programs))
        for disk in self.boots.output_disk(self.phase):
            failures = [
                failure.model_copy(
                    update={
                        "said": step_output.last_words(disk.path, kept, failure.step, failure.repetition, failure.said)
                    }
                )
                for failure in failures
            ]
        return failures

    def _fork(self, next_step: int | None, mounted: tuple[str, str] | None) -> None:
        """Take the fork that the phase wants before that step, if there is one."""
        name = self.phase.forks.get(len(self.phase.steps) if next_step is None else next_step)
        if not name:
            return
        if mounted:
            self.progress.mounts[name] = mounted
        if name in self.boots.used_forks:
            files = [disk.path for disk in self.boots.disks_under_test(self.phase)]
            self.boots.forks.take(name, files, self.cell_cleanup, is_last=next_step is None)
            self.progress.forked(name)


def _next_step(start: BootStart, ending: Ending, events: BootEvents) -> int | None:
    """Return the first step of the next boot; None where the guest did not get that far, or forged the event."""
    goes_on = events.reboot or events.cut
    if goes_on is None or events.ended or ending is not Ending.STOPPED or goes_on.next <= start.first_step:
        return None
    return goes_on.next
