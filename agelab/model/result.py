"""Results as they are kept and shown: schema 1 of ``agelab show --json``."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from agelab.model.base import Defaults, Frozen, JsonDetails, Label, Text
from agelab.model.step_id import StepId

SCHEMA = 1
MAX_MAGNITUDE = 1 << 64
"""No value is farther from zero: anything that counts or times fits, and nothing that is no number (NaN)."""
Count = Annotated[int, Field(ge=0, le=MAX_MAGNITUDE)]
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

    step: Label = Field(description="of the scenario, with its phase before it: aged/read")
    metric: Label = Field(description="a name of agelab.model.metrics")
    value: Annotated[float | int, Field(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)] | None = Field(
        description="in the metric's unit; null where nothing was measured"
    )
    unit: Label = Field(description="the metric's")
    repetition: Count = Field(default=1, description="of the step, from 1")
    not_measured: Text | None = Field(default=None, description="the reason where there is no value")

    @property
    def step_id(self) -> StepId:
        """The step's name in parts."""
        return StepId.parse(self.step)


class StuckTask(Frozen):
    """A task that did not go on when its step's time was over."""

    pid: Count = Field(description="its number in the guest")
    name: Label = Field(description="of its program")
    state: Label = Field(description="as proc(5) has it: D is blocked in the kernel")
    waits_in: Label = Field(description="the kernel's function, where it tells")
    stack: tuple[Label, ...] = Field(description="the calls that led there, the innermost first")


class Cell(Frozen):
    """What a cell is: everything that tells it from the others of its run."""

    variant: Label = Field(description="of the scenario")
    filesystem: Label = Field(description="a file of scenarios/filesystems")
    layout: Label = Field(description="single or raid0")
    kernel: Label = Field(description="what uname -r says")
    machine: Label = Field(description="a file of scenarios/machines")
    drives: tuple[Label, ...] = Field(description="under test, as specs: model:seagate-st3120026as")
    defaults: Defaults = Field(description="of mkfs and mount: the studies' or today's")
    seed: Count = Field(description="the run seed")
    accelerator: Label = Field(
        default="tcg", description="what ran the guest: kvm, or tcg (QEMU's emulation)"
    )

    @property
    def label(self) -> str:
        """Its variant and layout, in words: ``ext4, raid0``."""
        return f"{self.variant}, {self.layout}"

    @property
    def short_label(self) -> str:
        """The same, without the layout where it is the usual one."""
        return self.variant if self.layout == "single" else self.label


class End(Frozen):
    """The end record of a cell: the cell is finished when this is there."""

    status: Status = Field(description="how it ended")
    reason: Text | None = Field(default=None, description="why it is not ok")
    stuck: tuple[StuckTask, ...] = Field(
        default=(), description="of a hung cell, the tasks that did not go on"
    )
    inputs_key: Label | None = Field(default=None, description="the hash of all that shapes the digits")
    digest: Label | None = Field(default=None, description="the hash of all samples; none in the wall clock")
    disk: Label | None = Field(
        default=None, description="key of the stored disk that it kept or started from"
    )
    maps: dict[str, str] = Field(default={}, description="what the map boot brought back: name -> sha256")
    measured: str | None = Field(
        default=None, description="what the digest is the hash of, in any clock: damage is noticed by it"
    )
    host_seconds: float = Field(ge=0, le=MAX_MAGNITUDE, description="what it took on the host")


class RunKernel(Frozen):
    """The kernel that a run's cells boot."""

    spec: Label = Field(description="as it was asked for: debian:6.1")
    release: Label = Field(description="what uname -r says: 6.1.0-50-amd64")
    version: Label = Field(description="of the package or the source: 6.1.192-2")

    def __str__(self) -> str:
        return f"{self.spec} = {self.release} ({self.version})"


class RunPlan(Frozen):
    """What a run set out to do, written before its first cell."""

    run: Label = Field(description="its name: moment and scenario")
    scenario: Label = Field(description="what was run")
    scale: Label = Field(description="quick, paper, or what a control file's data are")
    clock: Label = Field(description="virtual or wall")
    cells: tuple[Cell, ...] = Field(description="every one that it set out to run")
    kernel: RunKernel | None = Field(default=None, description="None where the run does not say it")
    provenance: JsonDetails = Field(description="what made it: image, harness, QEMU, corpus, drives, host")
    histories: dict[Label, JsonDetails] = Field(
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
    def jobs(self) -> object:
        """Cells at a time, as its command says; None where it does not."""
        words = self.command.get("words")
        return words.get("jobs") if isinstance(words, dict) else None

    @property
    def emulated(self) -> bool:
        """Whether its times are an emulated processor's, in real time: no machine's."""
        return self.clock == "wall" and any(cell.accelerator != "kvm" for cell in self.cells)


class CellRecord(Cell, End):
    """A cell of a result: what it is, how it ended, what was measured."""

    measured: str | None = Field(default=None, exclude=True)
    host_seconds: float = Field(default=0, exclude=True)
    samples: tuple[Sample, ...] = Field(description="in the order in which they came")


class ResultDocument(RunPlan):
    """What ``agelab show --json`` prints of a run."""

    version: Literal[1] = Field(alias="schema", description="of this format")
    cells: tuple[CellRecord, ...] = Field(
        description="every one, also those that have not ended (interrupted)"
    )
    command: dict[str, Any] = Field(default={}, exclude=True)
