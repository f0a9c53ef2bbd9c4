"""The stack profiles of runs: a step's samples, over its repetitions and over cells that differ in their seeds."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agelab.analysis.cells import CellResult
from agelab.base import fileio
from agelab.base.errors import InputError, unknown
from agelab.evaluate.stacks.folded import Folded
from agelab.results import checksummed
from agelab.results.records import PROFILE, CellProfile, StepProfile

TAKEN_BY = "PROFILE=1 make scenario, or agelab run --profile, takes one; a cell that is known is not run again for it"


@dataclass(frozen=True)
class StepStacks:
    """The stacks of one step."""

    name: str
    """The run and what was chosen of it."""
    step: str
    repetitions: int
    cells: int
    stacks: Folded
    idle: int
    lost: int
    instructions: int
    nanoseconds: int
    """Of the machine's time between two samples."""

    @property
    def seconds(self) -> float:
        """The processor's time in the step, in seconds of the machine."""
        return self.stacks.samples * self.nanoseconds / 1e9

    @property
    def idle_share(self) -> float:
        """The share of the samples at which the processor waited."""
        every = self.stacks.samples + self.idle
        return self.idle / every if every else 0.0

    def require_comparable(self, other: "StepStacks") -> None:
        """Refuse another one whose samples do not stand for the same time. Raises InputError."""
        if self.nanoseconds != other.nanoseconds:
            raise InputError(
                f"a sample of {self.name} is {self.nanoseconds} ns of its machine, one of {other.name} "
                f"{other.nanoseconds} ns: their numbers cannot be compared",
                hint="compare runs of one machine",
            )
        if (self.cells, self.repetitions) != (other.cells, other.repetitions):
            raise InputError(
                f"{self.name} has {self.cells} cells with {self.repetitions} repetitions of {self.step}, {other.name} "
                f"{other.cells} with {other.repetitions} of {other.step}: their samples are not of the same work"
            )


def of_cell(cell: CellResult) -> CellProfile | None:
    """Read the profile of a cell; None where none was taken. Raises InputError for damage."""
    return checksummed.read_if_there(cell.directory / CellProfile.file, CellProfile)


def step_names(profile: CellProfile) -> list[str]:
    """Name the steps of a profile, each once."""
    return list(dict.fromkeys(step.step for step in profile.steps))


def of_step(name: str, cells: Iterable[CellResult], step: str) -> StepStacks:
    """Return a step's stacks in the profiled ones of these cells. Raises InputError where there are none."""
    every = [(cell.directory, profile) for cell in cells if (profile := of_cell(cell))]
    if not every:
        raise InputError(f"{name} has no profile", hint=TAKEN_BY)
    parts = [(directory, part) for directory, profile in every for part in profile.steps if part.step == step]
    if not parts:
        steps = [profiled for _, profile in every for profiled in step_names(profile)]
        why = next((f": {profile.reason}" for _, profile in every if profile.reason), "")
        raise (
            unknown("profiled step", step, list(dict.fromkeys(steps)))
            if steps
            else InputError(f"the profile of {name} has no steps{why}")
        )
    first = every[0][1]
    return StepStacks(
        name,
        step,
        repetitions=len({part.repetition for _, part in parts}),
        cells=len({directory for directory, _ in parts}),
        stacks=Folded.sum(read(directory, part) for directory, part in parts),
        idle=sum(part.idle for _, part in parts),
        lost=sum(part.lost for _, part in parts),
        instructions=first.instructions,
        nanoseconds=first.nanoseconds,
    )


def read(cell: Path, step: StepProfile) -> Folded:
    """Read the stacks of one repetition in a cell's directory. Raises InputError for what was not written so."""
    path = cell / PROFILE / step.file
    with checksummed.readable(path):
        data = fileio.read_bytes(path, fileio.LINES)
        if hashlib.sha256(data).hexdigest() != step.sha256:
            raise ValueError("it is not what was written")
        return Folded.parse(data.decode())
