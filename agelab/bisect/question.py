"""What a bisect is asked, to the last detail that matters: written once, so that it can be gone on with."""

from enum import StrEnum
from fractions import Fraction
from math import ceil, log2
from typing import Any, Literal

from pydantic import Field

from agelab.model.base import Frozen
from agelab.stats.series import Place


class Symptom(StrEnum):
    """What makes a kernel bad, where it is no value."""

    PANIC = "panic"
    HANG = "hang"
    FAIL = "fail"
    BOOT = "boot"
    """It is not heard of within the host's patience, or panics before anything is measured."""


class GitTree(Frozen):
    """A git tree with kernels in it."""

    path: str
    options: str = Field("", description="of every kernel built from it: ,base=...,config=...,patches=...")
    good: str = Field(description="the commit")
    bad: str

    def kernel_spec(self, commit: str) -> str:
        """The spec of the kernel of a commit."""
        return f"tree:{self.path}@{commit}{self.options}"

    def commit_of(self, kernel: str) -> str:
        """Of which commit the kernel of such a spec is."""
        return kernel.removeprefix(f"tree:{self.path}@").partition(",")[0]


class BisectQuestion(Frozen):
    """What is searched, and by what each kernel is told."""

    format: Literal[1] = 1
    directory: str = Field(description="where it was asked: paths are relative to it")
    name: str = Field(description="scenario, or scenario and variant")
    variant: str
    words: dict[str, Any] = Field(description="the options of each step's run")
    clock: Literal["virtual", "wall"]
    good: str = Field(description="as the user said it")
    bad: str
    tree: GitTree | None = None
    kernels: tuple[str, ...] = Field(
        description="specs from good to bad, all that are searched; of a tree the two ends alone"
    )
    candidates: int = Field(
        ge=1, description="how many kernels could be the first bad one; bad itself is one"
    )
    metric: Place | None = Field(None, description="step, repetition and metric")
    symptom: Symptom | None = None
    threshold: str | None = Field(None, description="where bad begins, in the metric's unit")
    relative: str | None = Field(None, description="the same as a part of good's median: 0.1")
    rounds: int = Field(description="of the wall clock: how many each step may take")
    alpha: str = Field(
        description="of the wall clock: the chance of a wrong answer, at most, shared by all steps"
    )
    seed: int = Field(description="of the wall clock: what draws the order of the runs of each round")
    files: dict[str, str] = Field({}, description="what the kernels' options name: path -> sha256")

    @property
    def criterion(self) -> str:
        """By what good and bad are told, in one word: ``copy:elapsed``, ``symptom hang``."""
        return metric_name(*self.metric) if self.metric else f"symptom {self.symptom}"

    @property
    def steps(self) -> int:
        """How many kernels between the ends have to be judged, if none is skipped."""
        return expected_steps(self.candidates)

    @property
    def step_alpha(self) -> Fraction:
        """What the ends and each step may take of ``alpha``."""
        return Fraction(self.alpha) / (self.steps + 1)


def metric_name(step: str, repetition: int, metric: str) -> str:
    """How a user says a metric: ``copy:elapsed``, ``copy:elapsed:2``."""
    return f"{step}:{metric}" + (f":{repetition}" if repetition > 1 else "")


def expected_steps(candidates: int) -> int:
    """How often so many candidates have to be halved until one is left: ceil(log2 n)."""
    return ceil(log2(candidates))
