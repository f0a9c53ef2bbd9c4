"""Records beside a cell, of which no digest and no key knows: the host's time, block requests, the stack profile."""

from typing import Annotated, ClassVar

from pydantic import Field

from agelab.base.types import Frozen, Label, Text
from agelab.results.result import MAX_MAGNITUDE, Count, Status

BLOCKS, PROFILE = "blocks", "profile"
"""Directories in that of a cell: requests and stacks, beside what says which they are."""
Seconds = Annotated[float, Field(ge=0, le=MAX_MAGNITUDE)]


class RecordBeside(Frozen):
    """A record that lies in a cell's directory."""

    file: ClassVar[str]


class StepRecord(Frozen):
    """The requests of one repetition of a step."""

    step: str
    repetition: int
    file: str = Field(description="name of its files, without their endings .iolog and .blkparse")
    requests: int = Field(description="number of requests that the drives were sent")
    lost: int = Field(description="number of events for which the guest had no room")


class RequestRecord(RecordBeside):
    """What was recorded of the requests of a cell's drives."""

    file = f"{BLOCKS}/blocks.json"

    status: Status = Field(description="how the pass ended; what it measured is no result")
    reason: str | None = None
    steps: tuple[StepRecord, ...]


class StepProfile(Frozen):
    """One repetition of a step."""

    step: Label = Field(description="name of the step as in samples: copy, aged/read")
    repetition: Count = Field(description="repetition of the step, from 1")
    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*\.folded$", max_length=250)] = Field(
        description="its folded stacks, beside this file"
    )
    sha256: str = Field(description="hash of that file")
    samples: Count = Field(description="samples of all stacks in it")
    idle: Count = Field(description="samples at which the processor waited; they are not in the file")
    profiler: Count = Field(description="samples of the profiler itself; they are not in the file")
    lost: Count = Field(description="samples for which there was no room")


class CellProfile(RecordBeside):
    """The profile of one cell: a pass of its own, with a profiler beside each step."""

    file = f"{PROFILE}/profile.json"

    status: Status = Field(description="how the pass ended")
    reason: Text | None = Field(description="why it is not ok; else null")
    key: str = Field(description="hash of the cell's inputs and the profiler: the same key, the same stacks")
    instructions: Count = Field(description="instructions of the guest between two samples")
    nanoseconds: Count = Field(description="the same in nanoseconds of the machine's time")
    steps: tuple[StepProfile, ...] = Field(description="all profiled steps in their order")
    processor_seconds: float | None = Field(default=None, description="processor seconds of its guests' QEMU")


class StepTime(Frozen):
    """One repetition of a step."""

    step: Label = Field(description="name of the step, without its phase")
    repetition: Count = Field(description="repetition of the step, from 1")
    seconds: Seconds = Field(description="from its begin to its end, as they reached the host")


class BootTime(Frozen):
    """One boot: host seconds of what it was made of, one after the other."""

    phase: Label = Field(description="phase of the boot: making, aged, control, map")
    number: Count = Field(description="number of the boot in its phase, from 0")
    launch: Seconds = Field(description="until QEMU runs: its command, its initramfs, libvirt")
    ready: Seconds = Field(description="from there until the harness is ready, by a boot or a restore")
    steps: tuple[StepTime, ...] = Field(description="all steps in their order")
    between: Seconds = Field(description="before, between and after the steps: mounts, caches, maps")
    end: Seconds = Field(description="from the harness' last word until the host learned of the guest's end")
    processor: Seconds = Field(description="processor seconds of QEMU")

    @property
    def in_steps(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def seconds(self) -> float:
        """All of the boot."""
        return self.launch + self.ready + self.in_steps + self.between + self.end

    @property
    def waiting(self) -> float:
        """Seconds in which QEMU ran and used no processor: it waited for one, for the host's disks or for libvirt."""
        return max(0.0, self.seconds - self.launch - self.processor)


class CellTiming(RecordBeside):
    """The host's time that one cell took."""

    file = "timing.json"

    prepared: Seconds = Field(description="what its run took before the first cell began, the same for all its cells")
    boots: tuple[BootTime, ...] = Field(description="all boots in their order")
    seconds: Seconds = Field(description="all of the cell")

    @property
    def beside_boots(self) -> float:
        """Seconds of the host's own side between boots: inputs, forks, maps, pictures."""
        return max(0.0, self.seconds - sum(boot.seconds for boot in self.boots))
