"""Profile of a machine: processor, memory and drives."""

from math import log2
from typing import Self

from pydantic import Field, model_validator

from agelab.model.base import Figure, Frozen, Note, Origin, Sourced, Whole


class MachineDrive(Frozen):
    """A drive of a machine."""

    drive: str = Field(description="a file of scenarios/drives/, without its ending")
    origin: Origin
    note: Note = ""
    queue_depth: Whole | None = Field(
        default=None, description="queue depth of the controller, if less than the drive's"
    )


class Swap(Sourced):
    """Swap space of a machine."""

    mib: float = Field(gt=0, allow_inf_nan=False, description="at paper scale, MiB")
    drive: int = Field(ge=0, description="index in the machine's drives, from 0")


class Machine(Frozen):
    """A file of scenarios/machines/.

    In the virtual clock every instruction takes ``2 ** shift`` nanoseconds: the counter knows no caches, no pipelines
    and no clock frequency (QEMU manual, "icount"). So ``shift`` is the power of two nearest to a processor's mean,
    ``1000 / (clock_mhz * instructions_per_cycle)`` nanoseconds.
    """

    name: str = Field(description="the file's name, without its ending")
    summary: str = Field(description="the machine in one line")
    shift: int = Field(ge=0, le=10, description="an instruction takes 2**shift nanoseconds of guest time")
    clock_mhz: Figure = Field(description="the processor's clock, MHz")
    instructions_per_cycle: Figure = Field(description="mean for kernel code of a filesystem")
    cpu_model: str = Field(description="libvirt's name of the processor model")
    cpu_without: tuple[str, ...] = Field(default=(), description="features removed from the model")
    kernel_arguments: tuple[str, ...] = Field(
        default=(), description="additional kernel arguments of its guests"
    )
    memory_mib: Figure = Field(description="memory of the study's machine; a cell may need less")
    swap: Swap | None = Field(
        default=None, description="omitted if the study had no swap or does not mention it"
    )
    drives: tuple[MachineDrive, ...] = Field(
        default=(), description="in the order in which scenarios count them"
    )

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
