"""A machine: what a guest's processor, memory and drives stand for."""

from math import log2
from typing import Self

from pydantic import Field, model_validator

from agelab.model.base import Frozen, Note, Origin
from agelab.model.figure import Figure as Figure
from agelab.model.figure import Sourced, Whole


class MachineDrive(Frozen):
    """One of a machine's drives."""

    drive: str = Field(description="a file of scenarios/drives/, without its ending")
    origin: Origin
    note: Note = ""
    queue_depth: Whole | None = Field(
        default=None, description="what the controller lets it queue, where that is less than the drive could"
    )


class Swap(Sourced):
    """The swap space of a machine."""

    mib: float = Field(gt=0, allow_inf_nan=False, description="at paper scale, MiB")
    drive: int = Field(ge=0, description="which of the machine's drives it is on, from 0")


class Machine(Frozen):
    """One file of scenarios/machines/.

    In the virtual clock an instruction takes ``2 ** shift`` nanoseconds whatever it does: the counter knows
    no caches, no pipelines and no clock frequency (QEMU manual, "icount"). So ``shift`` is the power of two
    that comes nearest to a processor's mean, ``1000 / (clock_mhz * instructions_per_cycle)`` nanoseconds.
    """

    name: str = Field(description="the file's name, without its ending")
    summary: str = Field(description="what machine it is, in a line")
    shift: int = Field(ge=0, le=10, description="an instruction takes 2**shift nanoseconds of guest time")
    clock_mhz: Figure = Field(description="the processor's clock, MHz")
    instructions_per_cycle: Figure = Field(description="mean over what a kernel does for a filesystem")
    cpu_model: str = Field(description="libvirt's name of the processor model")
    cpu_without: tuple[str, ...] = Field(description="features taken out of the model")
    kernel_arguments: tuple[str, ...] = Field(default=(), description="more of them for its guests")
    memory_mib: Figure = Field(description="what the study's machine had; a cell may need less")
    swap: Swap | None = Field(
        default=None, description="left out where the study had it off or says nothing of it"
    )
    drives: tuple[MachineDrive, ...] = Field(default=(), description="in the order that scenarios count them")

    @model_validator(mode="after")
    def _shift_follows_from_the_clock(self) -> Self:
        instructions = self.clock_mhz.value * self.instructions_per_cycle.value
        if not instructions:
            raise ValueError("clock_mhz and instructions_per_cycle must be more than 0")
        nearest = max(0, round(log2(1000 / instructions)))
        if self.shift != nearest:
            raise ValueError(
                f"shift is {self.shift}: clock and instructions per cycle make {1000 / instructions:.2f} ns an "
                f"instruction, which is nearest to 2**{nearest}"
            )
        return self

    @model_validator(mode="after")
    def _swap_is_on_a_drive(self) -> Self:
        if self.swap and self.swap.drive >= len(self.drives):
            raise ValueError(f"swap.drive is {self.swap.drive}: there are {len(self.drives)} drives, from 0")
        return self
