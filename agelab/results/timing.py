"""The host's time that a cell took, as cells/<n>/timing.json keeps it: no digest and no key depends on it."""

from typing import Annotated

from pydantic import Field

from agelab.base.types import Frozen, Label
from agelab.results.result import MAX_MAGNITUDE, Count

Seconds = Annotated[float, Field(ge=0, le=MAX_MAGNITUDE)]


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


class CellTiming(Frozen):
    """One cell."""

    prepared: Seconds = Field(
        description="what its run took before the first cell began, the same for all its cells"
    )
    boots: tuple[BootTime, ...] = Field(description="all boots in their order")
    seconds: Seconds = Field(description="all of the cell")

    @property
    def beside_boots(self) -> float:
        """Seconds of the host's own side between boots: inputs, forks, maps, pictures."""
        return max(0.0, self.seconds - sum(boot.seconds for boot in self.boots))
