"""Outcomes of kernels, the cache of all of them (nothing is measured twice), and the verdicts that they give."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from pydantic import Field

from agelab.base.errors import HostError
from agelab.base.types import Frozen
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.stats.series import exact


class OutcomeKind(StrEnum):
    """Kind of outcome of a kernel."""

    MEASURED = "measured"
    NOT_MEASURED = "has no such value"
    NO_KERNEL = "cannot be had"
    NO_BUILD = "does not build"
    NO_BOOT = "does not boot"
    UNSUPPORTED = "is unsupported"
    PANICS = "panics"
    HANGS = "hangs"
    FAILS = "fails"
    INTERRUPTED = "was interrupted"


SEED_INDEPENDENT = (OutcomeKind.NO_KERNEL, OutcomeKind.NO_BUILD, OutcomeKind.NO_BOOT, OutcomeKind.UNSUPPORTED)
"""Outcomes that do not depend on the run seed."""


class KernelOutcome(Frozen):
    """Outcome of one run of a kernel."""

    kernel: str
    seed: int
    kind: OutcomeKind
    why: str = Field("", description="reason for a missing value")
    value: int | float | None = None
    unit: str = ""
    run: str | None = Field(None, description="null if there was no run")
    round: int | None = Field(None, description="number of the round, in the wall clock")
    candidate: str = Field("", description="kernel for which the round was run, in the wall clock; empty for the ends")

    @property
    def exact(self) -> Fraction:
        """The measured value as an exact fraction."""
        assert self.value is not None
        return exact(self.value)

    @property
    def summary(self) -> str:
        """Outcome in one line, without the value."""
        first, *more = self.why.splitlines() or [""]
        words = " ".join([first, *(line.strip() for line in more[:1] if first.endswith(":"))])
        return f"{self.kind}: {words}" if words else str(self.kind)


class KernelMeasurer(Protocol):
    """Measures kernels. Both methods raise AgelabError for problems that would affect every kernel."""

    def prepare(self, kernel: str) -> KernelOutcome | None:
        """Build or fetch a kernel; return None, or the outcome if that fails."""

    def run(self, kernel: str, seeds: Sequence[int]) -> list[KernelOutcome]:
        """Measure the kernel with each of these run seeds."""


class MeasurementCache:
    """Cache in the bisect's directory; measures through ``measurer`` what is missing."""

    def __init__(self, directory: BisectDirectory, measurer: KernelMeasurer) -> None:
        self._directory = directory
        self._measurer = measurer
        self._known = directory.rows("measured", KernelOutcome)

    def measure(self, kernel: str, seeds: Sequence[int]) -> list[KernelOutcome]:
        """Return the outcome of each run seed, or the one outcome that does not depend on it.

        Raises HostError if a run was interrupted: another attempt may succeed.
        """
        without_round = (outcome for outcome in self._known if outcome.round is None)
        known = {outcome.seed: outcome for outcome in without_round if outcome.kernel == kernel}
        if (whole := self._whole(kernel)) is not None:
            return [whole]
        if missing := [seed for seed in seeds if seed not in known]:
            outcomes = self._measurer.run(kernel, missing)
            self._keep(outcomes)
            known |= {outcome.seed: outcome for outcome in outcomes}
            if (whole := self._whole(kernel)) is not None:
                return [whole]
        return [known[seed] for seed in seeds]

    def prepare(self, kernel: str) -> KernelOutcome | None:
        """Build or fetch a kernel; return None, or the outcome if that fails."""
        if any(outcome.kernel == kernel and outcome.kind not in SEED_INDEPENDENT for outcome in self._known):
            return None
        if (whole := self._whole(kernel)) is None and (whole := self._measurer.prepare(kernel)):
            self._keep([whole])
        return whole

    def measure_in_round(self, kernel: str, number: int, candidate: str) -> KernelOutcome:
        """Run the kernel once in a round, whose number is the run seed."""
        [outcome] = self._measurer.run(kernel, [number])
        outcome = outcome.model_copy(update={"round": number, "candidate": candidate})
        self._keep([outcome])
        return outcome

    def rounds(self, candidate: str) -> dict[int, dict[str, KernelOutcome]]:
        """Return the rounds for a candidate: number to outcome by kernel."""
        rounds: dict[int, dict[str, KernelOutcome]] = {}
        for outcome in self._known:
            if outcome.round is not None and outcome.candidate == candidate:
                rounds.setdefault(outcome.round, {})[outcome.kernel] = outcome
        return rounds

    def next_round(self) -> int:
        """Return a number that no round has had, finished or not."""
        return max((outcome.round for outcome in self._known if outcome.round is not None), default=0) + 1

    def _whole(self, kernel: str) -> KernelOutcome | None:
        of_all_seeds = (outcome for outcome in self._known if outcome.kind in SEED_INDEPENDENT)
        return next((outcome for outcome in of_all_seeds if outcome.kernel == kernel), None)

    def _keep(self, outcomes: Sequence[KernelOutcome]) -> None:
        for outcome in outcomes:
            if outcome.kind is not OutcomeKind.INTERRUPTED:
                self._directory.append("measured", outcome)
                self._known.append(outcome)
        if broken := next((outcome for outcome in outcomes if outcome.kind is OutcomeKind.INTERRUPTED), None):
            raise HostError(f"run {broken.run} was interrupted: {broken.why}")


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


class KernelVerdict(Frozen):
    """Verdict on one kernel between the ends."""

    kernel: str
    decision: Decision = Field(description="good, bad, or undecided: it is skipped")
    kind: OutcomeKind
    reason: str = Field(description="one line")
    note: str = Field("", description="set where it is like neither end")


@dataclass(frozen=True)
class FoundChange:
    """The two kernels between which the change lies."""

    before: str
    """The last good kernel."""
    after: str
    """The first kernel found bad."""
    possible: tuple[str, ...]
    """Candidates for the first bad kernel: ``after`` alone, or with those before it that could not be judged."""


def measured_verdict(kernel: str, step: StepDecision) -> KernelVerdict:
    return KernelVerdict(
        kernel=kernel, decision=step.decision, kind=OutcomeKind.MEASURED, reason=step.reason, note=step.note
    )


def skip_verdict(outcome: KernelOutcome) -> KernelVerdict:
    return KernelVerdict(kernel=outcome.kernel, decision=Decision.UNDECIDED, kind=outcome.kind, reason=outcome.summary)
