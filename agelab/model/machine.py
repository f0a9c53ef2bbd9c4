"""A machine: what a guest's processor and memory stand for."""

from pydantic import Field

from agelab.model.base import Frozen, Origin


class Figure(Frozen):
    """A number with where it comes from."""

    value: float = Field(ge=0, allow_inf_nan=False)
    origin: Origin
    note: str = ""


class Machine(Frozen):
    """One file of scenarios/machines/.

    In the virtual clock an instruction takes ``2 ** shift`` nanoseconds whatever it does: the counter knows
    no caches, no pipelines and no clock frequency (QEMU manual, "icount").
    """

    name: str
    summary: str
    shift: int = Field(ge=0, le=10, description="an instruction takes 2**shift nanoseconds of guest time")
    cpu_model: str = Field(description="libvirt's name of the processor model")
    cpu_without: tuple[str, ...] = Field(description="features taken out of the model")
    kernel_arguments: tuple[str, ...] = ()
    memory_mib: Figure = Field(description="what the study's machine had; a cell may need less")
