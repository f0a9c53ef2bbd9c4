"""The boots of one phase, one after the other on the same disks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from agelab.evaluate import step_output
from agelab.evaluate.boot_events import BootEvents
from agelab.evaluate.cell_status import CellStatus, judge_boot
from agelab.results.result import CellEnded, Ending, Status, StepFailed
from agelab.runner.execute.cell_boots import CellBoots
from agelab.runner.execute.cell_progress import CellProgress, PhaseAborted
from agelab.runner.execute.host_timing import CellTimer
from agelab.runner.plan.boot import Boot, BootStart
from agelab.runner.plan.kept_output import is_keeper, outputs
from agelab.runner.plan.phases import Phase
from agelab.scenario.step import AGED

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
            self.progress.judge(
                CellStatus(Status.FAILED, f"{self.phase.name}: what it starts from was not prepared")
            )
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
            for disk in self.boots.disks(self.phase):
                if not disk.written:
                    continue
                cleanup.callback(files.remove, disk.path)
                if disk in under_test and self.phase.fork_of:
                    members = self.boots.forks.files(self.phase.fork_of)
                    files.copy(members[under_test.index(disk)], disk.path)
                else:
                    files.create(disk.path, disk.size)
            yield

    def _run_boot(self, start: BootStart) -> BootStart | None:
        """Run one boot, and say where the next one starts; None after the last."""
        self.progress.require_drives()
        boot = self.boots.of_phase(self.phase, start)
        events = BootEvents(failures=self.failures)
        ending = self.runner.run(boot, events)
        next_step = _next_step(start, ending, events)
        self._judge(boot, ending, events, next_step)
        mounted = (events.mounted.type, events.mounted.options) if events.mounted else start.mounted
        if not events.cut:  # a fork is of an unmounted disk
            self._fork(next_step, mounted)
        if next_step is None:
            return None
        survived = events.cut.survived if events.cut else None
        return BootStart(start.number + 1, next_step, mounted, survived)

    def _judge(self, boot: Boot, ending: Ending, events: BootEvents, next_step: int | None) -> None:
        """Judge one boot. Raises PhaseAborted where no other may follow.

        Failed steps are reported at the end of the phase, but those that prepare an experiment at once: nothing starts
        from what they leave.
        """
        is_last = next_step is None
        ended = events.ended if is_last else REBOOTS
        unprepared = bool(self.failures) and bool(self.boots.spec.scenario.experiments)
        reported = self.failures if is_last or unprepared else []
        status = self.runner.status(boot, ending, events, ended, reported)
        if not is_last and status.ok:
            return
        self.progress.judge_last_boot(status, self.phase.in_samples)
        if not is_last or unprepared or not (ended and ended.status == "ok"):
            raise PhaseAborted

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


def _next_step(start: BootStart, ending: Ending, events: BootEvents) -> int | None:
    """Return the first step of the next boot; None where the guest did not get that far, or forged the event."""
    goes_on = events.reboot or events.cut
    if goes_on is None or events.ended or ending is not Ending.STOPPED or goes_on.next <= start.first_step:
        return None
    return goes_on.next
