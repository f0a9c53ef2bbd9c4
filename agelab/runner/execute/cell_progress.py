"""The progress of a cell: its samples, and the first thing that went wrong."""

from dataclasses import dataclass, field

from agelab.evaluate.cell_status import CellStatus
from agelab.results.result import Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.plan.boot import MountedAs
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.kept_output import is_keeper
from agelab.scenario.step import StepId
from agelab.store.stored_disk import StoredDisk

MEMORY_TOLERANCE = 256 * 1024
"""Bytes by which the memory that the first step finds may always differ from the plan's."""
LARGE_TOLERANCE = 2048
"""It may differ by this part of the plan's, too: a large guest keeps a MiB of free pages aside, and counts them seconds
after the ballast is taken (Linux mm/vmstat.c, refresh_cpu_vm_stats)."""

FAILED_AFTER = "failed_after"
"""The metric by which the harness tells that a drive has failed."""


class PhaseAborted(Exception):
    """A phase did not come to its end: nothing can follow it."""


def memory_is_off(available: float, wanted: int) -> bool:
    """Tell whether the memory that a first step found (bytes) is not the plan's."""
    return abs(available - wanted) > max(MEMORY_TOLERANCE, wanted // LARGE_TOLERANCE)


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
        self.run.append(self.number, sample)
        self.samples.append(sample)

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
        if failure is None or not status.ok or any(one.metric == FAILED_AFTER for one in self.samples):
            return status
        why = f"{failure}: the repetition ended before the drive was to fail"
        return CellStatus(Status.FAILED, why)

    def _checked_memory(self, status: CellStatus, phase: str) -> CellStatus:
        boot = str(StepId("boot").inside(phase))
        wanted = self.spec.available_bytes
        for sample in self.samples:
            found = (sample.step, sample.metric) == (boot, "memory_available")
            if found and memory_is_off(sample.value or 0, wanted) and status.ok:
                why = f"{boot} {sample.repetition}: {sample.value} bytes were available, not {wanted}"
                return CellStatus(Status.FAILED, why)
        return status


@dataclass
class PassProgress(CellProgress):
    """The progress of a pass of its own, whose samples are no results."""

    def record(self, sample: Sample) -> None:
        self.samples.append(sample)
