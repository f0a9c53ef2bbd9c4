"""Good, bad or to be skipped: what is said of one kernel, by one of three rules.

A value against the measured floor (virtual clock), rounds beside both ends (wall clock, ``rounds.py``), or a symptom.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import median
from typing import Protocol

from pydantic import Field

from agelab.bisect.measurements import KernelOutcome, MeasurementCache, OutcomeKind
from agelab.bisect.question import BisectQuestion, Symptom
from agelab.bisect.virtual_clock_rule import Decision, EndReferences, decide_virtual
from agelab.errors import InputError
from agelab.model.base import Frozen
from agelab.stats.noise_floor import SEEDS_NEEDED

Say = Callable[[str], None]


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
    return KernelVerdict(kernel=found.kernel, decision=Decision.UNDECIDED, kind=found.kind, reason=found.said)


def not_measurable(end: str, found: KernelOutcome) -> InputError:
    """The error for an end that cannot be measured."""
    return InputError(f"{end} itself {found.said}")


def describe_outcome(found: KernelOutcome) -> str:
    """What was measured, in a few words."""
    unit = "" if found.unit == "1" else f" {found.unit}"
    return f"seed {found.seed}: {found.value}{unit}"


class VirtualClockJudge:
    """In the virtual clock: as few run seeds as it takes, against the floor of five of each end."""

    def __init__(self, question: BisectQuestion, memory: MeasurementCache, at_once: int = 1) -> None:
        self._question = question
        self._memory = memory
        self._at_once = at_once
        """Run seeds of an end that are run together."""

    @property
    def references(self) -> EndReferences:
        """What the ends measured, measured if need be. Raises InputError where no step could be told by them."""
        ends = {"good": self._question.kernels[0], "bad": self._question.kernels[-1]}
        for name, kernel in ends.items():
            if wrong := self._memory.prepare(kernel):
                raise not_measurable(name, wrong)
        values: dict[str, list[Fraction]] = {name: [] for name in ends}
        seeds = range(1, SEEDS_NEEDED + 1)
        for first in range(0, SEEDS_NEEDED, self._at_once):
            for name, kernel in ends.items():
                for found in self._memory.of(kernel, seeds[first : first + self._at_once]):
                    if found.kind is not OutcomeKind.MEASURED:
                        raise not_measurable(name, found)
                    values[name].append(found.exact)
        return EndReferences(values["good"], values["bad"], self._threshold(values["good"], values["bad"]))

    def _threshold(self, good: Sequence[Fraction], bad: Sequence[Fraction]) -> Fraction | None:
        """The user's, in the metric's unit; None for the one midway between the ends."""
        if self._question.threshold is not None:
            return Fraction(self._question.threshold)
        if self._question.relative is None:
            return None
        middle, other = Fraction(median(good)), Fraction(median(bad))
        if not middle:
            raise InputError(
                "--relative: good's median is 0, of which no part can be taken",
                hint="--threshold takes a number in the metric's unit",
            )
        change = Fraction(self._question.relative) * abs(middle)
        return middle + change if other > middle else middle - change

    def ends(self) -> str:
        known = self.references
        good, bad = known.median(Decision.GOOD), known.median(Decision.BAD)
        return known.shown(good=good, bad=bad, threshold=known.at, floor=known.floor)

    def judge(self, kernel: str, say: Say) -> KernelVerdict:
        known, values = self.references, list[Fraction]()
        while True:
            [found] = self._memory.of(kernel, [len(values) + 1])
            if found.kind is not OutcomeKind.MEASURED:
                return skip_verdict(found)
            say(describe_outcome(found))
            values.append(found.exact)
            said = decide_virtual(known, values)
            if said.decision is not Decision.MORE:
                return KernelVerdict(
                    kernel=kernel, decision=said.decision, kind=found.kind, reason=said.reason, note=said.note
                )


class SymptomJudge:
    """Bad is what shows the symptom, good what comes to its end; anything else is skipped."""

    def __init__(self, question: BisectQuestion, memory: MeasurementCache) -> None:
        assert question.symptom
        self._question = question
        self._symptom = question.symptom
        self._memory = memory

    def ends(self) -> str:
        said = {}
        for name, kernel in (("good", self._question.kernels[0]), ("bad", self._question.kernels[-1])):
            [found] = self._memory.of(kernel, [1])
            said[name] = (self._decide(found), found)
        good, bad = said["good"], said["bad"]
        if (good[0], bad[0]) == (Decision.BAD, Decision.GOOD):
            raise InputError(
                f"good and bad are swapped: good {good[1].said}; bad does not",
                hint="swap --good and --bad",
            )
        if good[0] is not Decision.GOOD:
            raise InputError(f"good itself {good[1].said}")
        if bad[0] is not Decision.BAD:
            what = "comes to its end" if bad[0] is Decision.GOOD else bad[1].said
            raise InputError(f"bad does not show the symptom {self._symptom}: it {what}")
        return f"good comes to its end; bad {bad[1].said}"

    def judge(self, kernel: str, say: Say) -> KernelVerdict:
        [found] = self._memory.of(kernel, [1])
        decision = self._decide(found)
        reason = "comes to its end" if decision is Decision.GOOD else found.said
        return KernelVerdict(kernel=kernel, decision=decision, kind=found.kind, reason=reason)

    def _decide(self, found: KernelOutcome) -> Decision:
        if found.kind in (OutcomeKind.MEASURED, OutcomeKind.NOT_MEASURED):
            return Decision.GOOD
        return Decision.BAD if _shows_symptom(found, self._symptom) else Decision.UNDECIDED


def _shows_symptom(found: KernelOutcome, symptom: Symptom) -> bool:
    if symptom is Symptom.BOOT:
        return found.kind is OutcomeKind.NO_BOOT or (found.kind is OutcomeKind.PANICS and found.run is None)
    return (
        found.kind
        is {
            Symptom.PANIC: OutcomeKind.PANICS,
            Symptom.HANG: OutcomeKind.HANGS,
            Symptom.FAIL: OutcomeKind.FAILS,
        }[symptom]
    )
