"""Profile of a machine: processor, memory and drives."""

from math import log2
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from agelab.base.types import Figure, Frozen, Note, Origin, Sourced, Whole
from agelab.scenario.block_layer import BlockLayer


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


class BytePrice(Sourced):
    """Cycles for which the processor waits for memory with each byte of the page cache that it copies.

    harness/drive/price.c charges them.
    """

    read: float = Field(ge=0, le=100, allow_inf_nan=False, description="copied out of the page cache, by read")
    written: float = Field(ge=0, le=100, allow_inf_nan=False, description="copied into the page cache, by write")


BandEnd = Literal["low", "high"]
"""An end of the band of what an instruction costs: low is the cheap end, high the dear one."""


class MachineLabel(NamedTuple):
    """A machine as a cell names it, in its parts: ``pentium4-2800:low+scheduler=bfq``."""

    name: str
    """The name of its file."""
    band_end: str
    """The end of its band; empty in the middle."""
    changes: tuple[str, ...]
    """What the run changed of it."""

    @classmethod
    def parse(cls, label: str) -> "MachineLabel":
        machine, *changes = label.split("+")
        name, _, end = machine.partition(":")
        return cls(name, end, tuple(changes))


class Band(Sourced):
    """Range in which a figure lies."""

    low: float = Field(gt=0, allow_inf_nan=False, description="lower end, in the unit of the figure")
    high: float = Field(gt=0, allow_inf_nan=False, description="upper end")


class BandedFigure(Figure):
    """A number with its origin, and how far off it may be. The band shapes no digit, so no key has it."""

    band: Band | None = Field(
        default=None,
        exclude=True,
        description="range in which it lies, for --machine-band; none is known if omitted",
    )


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
    shift: int = Field(ge=0, le=10, description="an instruction takes 2**shift nanoseconds of the guest's clock")
    clock_mhz: Figure = Field(description="the processor's clock, MHz")
    instructions_per_cycle: BandedFigure = Field(description="mean for kernel code of a filesystem")
    cpu_model: str = Field(description="libvirt's name of the processor model")
    cpu_without: tuple[str, ...] = Field(default=(), description="features removed from the model")
    byte_price: BytePrice | None = Field(
        default=None, description="what a copied byte costs beyond its instructions; nothing if omitted"
    )
    kernel_arguments: tuple[str, ...] = Field(default=(), description="additional kernel arguments of its guests")
    memory_mib: Figure = Field(description="memory of the study's machine; a cell may need less")
    swap: Swap | None = Field(default=None, description="omitted if the study had no swap or does not mention it")
    drives: tuple[MachineDrive, ...] = Field(default=(), description="in the order in which scenarios count them")

    block: BlockLayer = Field(default=BlockLayer(), description="the block layer before its modelled drives")

    @property
    def instruction_ns(self) -> float:
        """Mean nanoseconds of an instruction."""
        return float(1000 / (self.clock_mhz.value * self.instructions_per_cycle.value))

    @property
    def band_ns(self) -> tuple[float, float] | None:
        """Nanoseconds of an instruction at the cheap and at the dear end of the band; None without one."""
        band = self.instructions_per_cycle.band
        if band is None:
            return None
        return 1000 / (self.clock_mhz.value * band.high), 1000 / (self.clock_mhz.value * band.low)

    @property
    def dilation(self) -> float:
        """Seconds of the machine for one second of the guest's clock, in millionths."""
        return round(self.instruction_ns / (1 << self.shift), 6)

    @property
    def copy_prices(self) -> dict[str, int] | None:
        """What 1024 copied bytes cost beyond their instructions, as instructions; read and written. None: nothing."""
        price = self.byte_price
        if price is None:
            return None
        instructions = 1024 * self.instructions_per_cycle.value
        return {"read": round(price.read * instructions), "written": round(price.written * instructions)}

    @property
    def plain_name(self) -> str:
        """The name of its file, also at an end of its band."""
        return self.name.partition(":")[0]

    def at_band(self, end: BandEnd) -> Self:
        """Return the machine at an end of the band of what an instruction costs, which its name then says.

        Low is the cheap end: most instructions in a cycle. Raises ValueError where the file has no band.
        """
        band = self.instructions_per_cycle.band
        if band is None:
            raise ValueError(f"machine {self.name} has no band of instructions_per_cycle")
        value = band.high if end == "low" else band.low
        figure = BandedFigure(value=value, origin=band.origin, source=band.source, note=band.note)
        return self.model_copy(update={"name": f"{self.name}:{end}", "instructions_per_cycle": figure})

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
    def _band_is_about_the_figure(self) -> Self:
        figure, ends = self.instructions_per_cycle, self.band_ns
        if figure.band is None or ends is None:
            return self
        problems = []
        if not figure.band.low <= figure.value <= figure.band.high:
            problems.append(f"{figure.value:g} is not in its band, {figure.band.low:g} to {figure.band.high:g}")
        for end, ns in zip(("high", "low"), ends, strict=True):
            if not MIN_DILATION <= ns / (1 << self.shift) <= MAX_DILATION:
                problems.append(
                    f"at band.{end} an instruction takes {ns:.3g} ns: no timer survives that with shift {self.shift}"
                )
        if problems:
            raise ValueError("instructions_per_cycle: " + "; ".join(problems))
        return self

    @model_validator(mode="after")
    def _swap_is_on_a_drive(self) -> Self:
        if self.swap and self.swap.drive >= len(self.drives):
            raise ValueError(f"swap.drive is {self.swap.drive}: there are {len(self.drives)} drives, from 0")
        return self
