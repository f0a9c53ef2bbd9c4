"""The question of a bisect, complete and written once, so that the bisect can be resumed."""

from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from math import ceil, log2
from typing import Any, Literal

from pydantic import Field

from agelab.base.types import Frozen
from agelab.results.measure import ALL_STEPS, Measure
from agelab.scenario.step import StepId


class Symptom(StrEnum):
    """Symptom of a bad kernel, in place of a metric."""

    PANIC = "panic"
    HANG = "hang"
    FAIL = "fail"
    BOOT = "boot"
    """The guest does not report within the host's timeout, or panics before anything is measured."""


class GitTree(Frozen):
    """A git tree of kernels and the two ends of the search."""

    path: str
    options: str = Field(
        "", description="options of every kernel built from it: ,base=...,config=...,patches=..."
    )
    good: str = Field(description="commit of the good end")
    bad: str

    def kernel_spec(self, commit: str) -> str:
        return f"tree:{self.path}@{commit}{self.options}"

    def commit_of(self, kernel: str) -> str:
        return kernel.removeprefix(f"tree:{self.path}@").partition(",")[0]


class BisectQuestion(Frozen):
    """The range of kernels to search and the criterion of good and bad."""

    format: Literal[1] = 1
    directory: str = Field(description="working directory of the command; paths are relative to it")
    name: str = Field(description="scenario, or scenario and variant")
    variant: str
    words: dict[str, Any] = Field(description="options of each step's run")
    clock: Literal["virtual", "wall"]
    good: str = Field(description="as the user named it")
    bad: str
    tree: GitTree | None = None
    kernels: tuple[str, ...] = Field(
        description="specs from good to bad, all that are searched; for a tree the two ends"
    )
    candidates: int = Field(
        ge=1, description="number of kernels that could be the first bad one, bad included"
    )
    metric: Measure | None = Field(None, description="step, repetition (0: the mean over all) and metric")
    symptom: Symptom | None = None
    threshold: str | None = Field(None, description="boundary between good and bad, in the metric's unit")
    relative: str | None = Field(None, description="the same, relative to good's median: 0.1")
    rounds: int = Field(description="wall clock: maximum number of rounds for each step")
    alpha: str = Field(
        description="wall clock: upper bound on the probability of a wrong answer, shared by all steps"
    )
    seed: int = Field(description="wall clock: seed of the random order of runs in each round")
    profile: bool = Field(False, description="profile both neighbours of the change when it is found")
    files: dict[str, str] = Field({}, description="files named by kernel options: path -> sha256")

    @property
    def ends(self) -> dict[str, str]:
        """The two ends: ``good`` and ``bad`` to the kernel's spec."""
        return {"good": self.kernels[0], "bad": self.kernels[-1]}

    @property
    def criterion(self) -> str:
        """Metric or symptom that tells good from bad: ``copy:elapsed``, ``symptom hang``."""
        return str(self.metric) if self.metric else f"symptom {self.symptom}"

    @property
    def profiled_step(self) -> str:
        """The step that a profile can show; empty in the wall clock, and where what is judged is of no such step."""
        if self.clock == "wall" or self.metric in (None, ALL_STEPS):
            return ""
        step = StepId.parse(self.metric.step)
        if step.is_map or step.label:  # a map, a point of a history, a pass under strace
            return ""
        return str(replace(step, name=step.name.partition(".")[0]))  # fio.read is a job of fio

    @property
    def steps(self) -> int:
        """Number of kernels between the ends to judge if none is skipped: ceil(log2 n)."""
        return ceil(log2(self.candidates))

    @property
    def step_alpha(self) -> Fraction:
        """Share of ``alpha`` for the ends and for each step."""
        return Fraction(self.alpha) / (self.steps + 1)
