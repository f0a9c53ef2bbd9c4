"""Verdicts of a bisect: decision on a step, verdict on a kernel, protocol of the judges."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from pydantic import Field

from agelab.base.errors import Notify
from agelab.base.types import Frozen
from agelab.bisect.measurements import KernelOutcome, OutcomeKind


class Decision(StrEnum):
    """Decision on a step."""

    GOOD = "good"
    BAD = "bad"
    MORE = "more"
    """Needs another value (virtual clock) or another round (wall clock)."""
    UNDECIDED = "undecided"
    """All permitted measurements are made and do not decide."""


@dataclass(frozen=True)
class StepDecision:
    """A decision with its reason."""

    decision: Decision
    reason: str
    """One line, with the numbers."""
    note: str = ""
    """Position of a step that is unlike either end; else empty."""
    error: Fraction | None = None
    """Upper bound on the probability that a step like the other end gets GOOD or BAD; None where the rule has no such
    bound (always in the virtual clock, whose realised rates are in docs/bisect-rules.md)."""


class KernelVerdict(Frozen):
    """Verdict on one kernel between the ends."""

    kernel: str
    decision: Decision = Field(description="good, bad, or undecided: it is skipped")
    kind: OutcomeKind
    reason: str = Field(description="one line")
    note: str = Field("", description="set where it is like neither end")
    error: str | None = Field(
        None, description="upper bound on the probability of a wrong verdict; null where the rule has none"
    )


@dataclass(frozen=True)
class FoundChange:
    """The two kernels between which the change lies."""

    before: str
    """The last good kernel."""
    after: str
    """The first kernel found bad."""
    possible: tuple[str, ...]
    """Candidates for the first bad kernel: ``after`` alone, or with those before it that could not be judged."""


class Judge(Protocol):
    """Tells good kernels from bad ones."""

    def ends(self) -> str:
        """Check that good is good and bad is bad, and describe it in one line. Raises InputError if not."""
        ...

    def judge(self, kernel: str, say: Notify) -> KernelVerdict:
        """Judge a kernel between the ends; ``say`` gets a line for each measurement."""
        ...


def measured_verdict(kernel: str, step: StepDecision) -> KernelVerdict:
    """Return the verdict on a kernel that was measured."""
    return KernelVerdict(
        kernel=kernel,
        decision=step.decision,
        kind=OutcomeKind.MEASURED,
        reason=step.reason,
        note=step.note,
        error=None if step.error is None else str(step.error),
    )


def skip_verdict(found: KernelOutcome) -> KernelVerdict:
    """Return the verdict on a kernel that has no value."""
    return KernelVerdict(
        kernel=found.kernel, decision=Decision.UNDECIDED, kind=found.kind, reason=found.summary
    )
