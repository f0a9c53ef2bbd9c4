"""The stack profile of a cell, as cells/<n>/profile/profile.json keeps it: no digest of a cell depends on it."""

from typing import Annotated

from pydantic import Field

from agelab.base.types import Frozen, Label, Text
from agelab.results.result import Count, Status

PLACE = "profile"
"""Its directory in that of the cell."""
FILE = "profile.json"


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


class CellProfile(Frozen):
    """The profile of one cell: a pass of its own, with a profiler beside each step."""

    status: Status = Field(description="how the pass ended")
    reason: Text | None = Field(description="why it is not ok; else null")
    key: str = Field(description="hash of the cell's inputs and the profiler: the same key, the same stacks")
    instructions: Count = Field(description="instructions of the guest between two samples")
    nanoseconds: Count = Field(description="the same in nanoseconds of the machine's time")
    steps: tuple[StepProfile, ...] = Field(description="all profiled steps in their order")
    processor_seconds: float | None = Field(default=None, description="processor seconds of its guests' QEMU")
