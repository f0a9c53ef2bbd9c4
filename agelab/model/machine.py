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


MIN_DILATION, MAX_DILATION = 0.125, 8.0
"""Bounds of a dilation: a tick of 4 ms of the guest's clock is 0.5 to 32 ms of the machine then."""


class Machine(Frozen):
    """A file of scenarios/machines/.

    In the virtual clock every instruction takes ``2 ** shift`` nanoseconds of the guest's clock: the counter knows no
    caches, no pipelines and no clock frequency (QEMU manual, "icount"). On the machine it takes ``instruction_ns``, a
    processor's mean; ``dilation`` is the ratio (harness/dilation.py).
    """

    name: str = Field(description="the file's name, without its ending")
    summary: str = Field(description="the machine in one line")
    shift: int = Field(
        ge=0, le=10, description="an instruction takes 2**shift nanoseconds of the guest's clock"
    )
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

    @property
    def instruction_ns(self) -> float:
        """Mean nanoseconds of an instruction."""
        return float(1000 / (self.clock_mhz.value * self.instructions_per_cycle.value))

    @property
    def dilation(self) -> float:
        """Seconds of the machine for one second of the guest's clock, in millionths."""
        return round(self.instruction_ns / (1 << self.shift), 6)

    @model_validator(mode="after")
    def _timers_survive_the_dilation(self) -> Self:
        if self.clock_mhz.value <= 0 or self.instructions_per_cycle.value <= 0:
            raise ValueError("clock_mhz and instructions_per_cycle must be more than 0")
        if not MIN_DILATION <= self.dilation <= MAX_DILATION:
            nearest = max(0, round(log2(self.instruction_ns)))
            raise ValueError(
                f"shift is {self.shift}: an instruction takes {self.instruction_ns:.3g} ns, so a second of the guest's "
                f"clock would stand for {self.dilation:g} s. Its timers survive {MIN_DILATION:g} to {MAX_DILATION:g}; "
                f"the nearest shift is {nearest}"
            )
        return self

    @model_validator(mode="after")
    def _swap_is_on_a_drive(self) -> Self:
        if self.swap and self.swap.drive >= len(self.drives):
            raise ValueError(f"swap.drive is {self.swap.drive}: there are {len(self.drives)} drives, from 0")
        return self
