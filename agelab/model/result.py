"""Results as they are kept and shown: schema 1 of ``agelab show --json``."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from agelab.model.base import Defaults, Frozen, Label, Text, Told

SCHEMA = 1
LARGEST = 1 << 64
"""No value is farther from zero: anything that counts or times fits, and nothing that is no number (NaN)."""
Count = Annotated[int, Field(ge=0, le=LARGEST)]
"""What a guest counts."""


class Status(StrEnum):
    """How a cell ended."""

    OK = "ok"
    FAILED = "failed"
    PANICKED = "panicked"
    HUNG = "hung"
    UNSUPPORTED = "unsupported"
    INTERRUPTED = "interrupted"


class Sample(Frozen):
    """One measured value, or the reason why there is none."""

    step: Label
    metric: Label
    value: Annotated[float | int, Field(ge=-LARGEST, le=LARGEST)] | None
    unit: Label
    repetition: Count = 1
    not_measured: Text | None = None


class Stuck(Frozen):
    """A task that did not go on when its step's time was over."""

    pid: Count
    name: Label
    state: Label = Field(description="as proc(5) has it: D is blocked in the kernel")
    waits_in: Label = Field(description="the kernel's function, where it tells")
    stack: tuple[Label, ...] = Field(description="the calls that led there, the innermost first")


class Cell(Frozen):
    """What a cell is: everything that tells it from the others of its run."""

    variant: Label
    filesystem: Label
    layout: Label
    kernel: Label
    machine: Label
    drives: tuple[Label, ...]
    defaults: Defaults
    seed: Count
    accelerator: Label = Field(
        default="tcg", description="what ran the guest: kvm, or tcg (QEMU's emulation)"
    )


class End(Frozen):
    """The end record of a cell: the cell is finished when this is there."""

    status: Status
    reason: Text | None = None
    stuck: tuple[Stuck, ...] = Field(default=(), description="of a hung cell, the tasks that did not go on")
    inputs_key: Label | None = None
    digest: Label | None = None
    disk: Label | None = Field(
        default=None, description="key of the stored disk that it kept or started from"
    )
    maps: dict[str, str] = Field(default={}, description="what the map boot brought back: name -> sha256")
    measured: str | None = Field(
        default=None, description="what the digest is the hash of, in any clock: damage is noticed by it"
    )
    host_seconds: float = Field(ge=0, le=LARGEST)


class RunKernel(Frozen):
    """The kernel that a run's cells boot."""

    spec: Label = Field(description="as it was asked for: debian:6.1")
    release: Label = Field(description="what uname -r says: 6.1.0-50-amd64")
    version: Label = Field(description="of the package or the source: 6.1.192-2")

    def __str__(self) -> str:
        return f"{self.spec} = {self.release} ({self.version})"


class RunPlan(Frozen):
    """What a run set out to do, written before its first cell."""

    run: Label
    scenario: Label
    scale: Label
    clock: Label
    cells: tuple[Cell, ...]
    kernel: RunKernel | None = Field(default=None, description="None where the run does not say it")
    provenance: Told
    histories: dict[Label, Told] = Field(
        default={}, description="what each history is, and how far it is what was asked for"
    )
    unstated: tuple[Label, ...] = Field(
        default=(), description="what the study leaves open, or what of it is not reproduced"
    )
    command: dict[str, Any] = Field(
        default={},
        description="what was asked for, to be asked again by agelab resume: directory, name, words, more",
    )

    @property
    def repeatable(self) -> bool:
        """Whether its command has all that it takes to ask for the same again."""
        kinds = {"directory": str, "name": str, "words": dict, "more": dict}
        return all(isinstance(self.command.get(name), kind) for name, kind in kinds.items())

    @property
    def emulated(self) -> bool:
        """Whether its times are an emulated processor's, in real time: no machine's."""
        return self.clock == "wall" and any(cell.accelerator != "kvm" for cell in self.cells)
