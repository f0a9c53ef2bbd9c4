"""Verdicts of a bisect: one step's decision, one kernel's verdict, and the protocol of the judges."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from pydantic import Field

from agelab.bisect.measurements import KernelOutcome, OutcomeKind
from agelab.model.base import Frozen

Say = Callable[[str], None]


class Decision(StrEnum):
    """What is said of a step."""

    GOOD = "good"
    BAD = "bad"
    MORE = "more"
    """Another value (virtual clock) or another round (wall clock) is needed."""
    UNDECIDED = "undecided"
    """All that may be measured has been, and it does not tell."""


@dataclass(frozen=True)
class StepDecision:
    """A decision, why, and what else the user should know."""

    decision: Decision
    reason: str
    """One line, with the numbers."""
    note: str = ""
    """Where the step lies if it is like neither end; else empty."""
    error: Fraction | None = None
    """The chance, at most, that GOOD or BAD is said of a step that is like the other end; None where the rule has no
    such bound (always in the virtual clock, whose realised rates are in docs/bisect-rules.md)."""


class KernelVerdict(Frozen):
    """What was said of one kernel between the ends."""

    kernel: str
    decision: Decision = Field(description="good, bad, or undecided: it is skipped")
    kind: OutcomeKind
    reason: str = Field(description="one line")
    note: str = Field("", description="where it is like neither end")
    error: str | None = Field(
        None, description="the chance that it is wrong, at most; null where no rule has one"
    )


class Judge(Protocol):
    """A rule."""

    def ends(self) -> str:
        """See that good is good and bad is bad, and say so in one line. Raises InputError where they are not."""
        ...

    def judge(self, kernel: str, say: Say) -> KernelVerdict:
        """What is to be said of a kernel between them; ``say`` gets a line for each thing that was measured."""
        ...


def skip_verdict(found: KernelOutcome) -> KernelVerdict:
    """Of a kernel that has no value."""
    return KernelVerdict(
        kernel=found.kernel, decision=Decision.UNDECIDED, kind=found.kind, reason=found.summary
    )
