"""Judges: measure a kernel and call it good, bad, or skipped.

In the virtual clock by values against the measured floor, in the wall clock by rounds beside both ends, or by a
symptom.
"""

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from statistics import median

from agelab.base.errors import AgelabError, InputError, Notify
from agelab.bisect.bisect_directory import BisectQuestion, Symptom
from agelab.bisect.measurements import (
    Decision,
    KernelOutcome,
    KernelVerdict,
    MeasurementCache,
    OutcomeKind,
    measured_verdict,
    skip_verdict,
)
from agelab.bisect.rules import SEEDS_NEEDED, EndReferences, EndsOrder, Round, compare_ends, decide_virtual, decide_wall


def not_measurable(end: str, outcome: KernelOutcome) -> InputError:
    """Return the error for an end that cannot be measured."""
    return InputError(f"{end} itself {outcome.summary}")


def prepare_ends(question: BisectQuestion, cache: MeasurementCache) -> None:
    """Build or fetch both ends. Raises InputError for one that cannot be had."""
    for name, kernel in question.ends.items():
        if wrong := cache.prepare(kernel):
            raise not_measurable(name, wrong)


def describe_outcome(outcome: KernelOutcome) -> str:
    """Describe a measured value with its run seed."""
    unit = "" if outcome.unit == "1" else f" {outcome.unit}"
    return f"seed {outcome.seed}: {outcome.value}{unit}"


class VirtualClockJudge:
    """Judge in the virtual clock: as few run seeds as needed, against the floor from five of each end."""

    def __init__(self, question: BisectQuestion, cache: MeasurementCache, seeds_at_once: int = 1) -> None:
        self._question = question
        self._cache = cache
        self._at_once = seeds_at_once
        """Run seeds of an end that run together."""

    @property
    def references(self) -> EndReferences:
        """Values of both ends, measured if necessary. Raises InputError where they cannot tell a step."""
        ends = self._question.ends
        prepare_ends(self._question, self._cache)
        values: dict[str, list[Fraction]] = {name: [] for name in ends}
        unit = ""
        seeds = range(1, SEEDS_NEEDED + 1)
        for first in range(0, SEEDS_NEEDED, self._at_once):
            for name, kernel in ends.items():
                for outcome in self._cache.measure(kernel, seeds[first : first + self._at_once]):
                    if outcome.kind is not OutcomeKind.MEASURED:
                        raise not_measurable(name, outcome)
                    values[name].append(outcome.exact)
                    unit = outcome.unit
        threshold = self._threshold(values["good"], values["bad"])
        return EndReferences(values["good"], values["bad"], threshold, unit)

    def _threshold(self, good: Sequence[Fraction], bad: Sequence[Fraction]) -> Fraction | None:
        """Return the user's threshold in the metric's unit, or None for the midpoint between the ends."""
        if self._question.threshold is not None:
            return Fraction(self._question.threshold)
        if self._question.relative is None:
            return None
        middle, other = Fraction(median(good)), Fraction(median(bad))
        if not middle:
            raise InputError(
                "--relative: good's median is 0, so a relative threshold is impossible",
                hint="--threshold takes a number in the metric's unit",
            )
        change = Fraction(self._question.relative) * abs(middle)
        return middle + change if other > middle else middle - change

    def ends(self) -> str:
        """Check that good is good and bad is bad, and describe it in one line. Raises InputError if not."""
        known = self.references
        good, bad = known.median(Decision.GOOD), known.median(Decision.BAD)
        return known.format_numbers(good=good, bad=bad, threshold=known.threshold_in_use, floor=known.floor)

    def judge(self, kernel: str, say: Notify) -> KernelVerdict:
        """Judge a kernel between the ends; ``say`` gets a line for each measurement."""
        known, values = self.references, list[Fraction]()
        while True:
            [outcome] = self._cache.measure(kernel, [len(values) + 1])
            if outcome.kind is not OutcomeKind.MEASURED:
                return skip_verdict(outcome)
            say(describe_outcome(outcome))
            values.append(outcome.exact)
            step = decide_virtual(known, values)
            if step.decision is not Decision.MORE:
                return measured_verdict(kernel, step)


class WallClockJudge:
    """Judge in the wall clock: rounds of one run each, in random order; an interrupted round does not count."""

    def __init__(self, question: BisectQuestion, cache: MeasurementCache, say: Notify) -> None:
        self._question = question
        self._cache = cache
        self._say = say
        self._good, self._bad = question.ends.values()
        self._alpha = question.step_alpha

    def _differ(self) -> tuple[EndsOrder, str]:
        """Compare the ends, measuring rounds if necessary. Raises InputError if the rounds cannot tell them apart."""
        prepare_ends(self._question, self._cache)
        while True:
            rounds = self._whole("", self._good, self._bad)
            pairs = [(outcomes[self._good].exact, outcomes[self._bad].exact) for outcomes in rounds]
            order, reason = compare_ends(pairs, self._question.rounds, self._alpha)
            if order is EndsOrder.UNDECIDED:
                raise InputError(
                    f"good and bad do not differ in {len(pairs)} rounds: {reason}",
                    hint="more rounds (--rounds), a greater error probability (--alpha), or another metric",
                )
            if order is not EndsOrder.MORE:
                return order, reason
            self._round("", self._say)

    def ends(self) -> str:
        _, reason = self._differ()
        return reason

    def judge(self, kernel: str, say: Notify) -> KernelVerdict:
        order, _ = self._differ()
        if wrong := self._cache.prepare(kernel):
            return skip_verdict(wrong)
        while True:
            for outcomes in self._cache.rounds(kernel).values():
                if kernel in outcomes and outcomes[kernel].kind is not OutcomeKind.MEASURED:
                    return skip_verdict(outcomes[kernel])
            rounds = [
                Round(outcomes[self._good].exact, outcomes[self._bad].exact, outcomes[kernel].exact)
                for outcomes in self._whole(kernel, self._good, self._bad, kernel)
            ]
            step = decide_wall(rounds, order, self._question.rounds, self._alpha)
            if step.decision is not Decision.MORE:
                return measured_verdict(kernel, step)
            self._round(kernel, say)

    def _whole(self, candidate: str, *kernels: str) -> list[dict[str, KernelOutcome]]:
        """Return the rounds for a candidate in which each of these kernels was measured."""
        return [
            outcomes
            for outcomes in self._cache.rounds(candidate).values()
            if all(name in outcomes and outcomes[name].kind is OutcomeKind.MEASURED for name in kernels)
        ]

    def _round(self, candidate: str, say: Notify) -> None:
        """Run each kernel once, in a random order. Raises AgelabError if an end has no value."""
        number = self._cache.next_round()
        names = {self._good: "good", self._bad: "bad", **({candidate: "this"} if candidate else {})}
        order = list(names)
        Random(f"{self._question.seed}:{number}").shuffle(order)
        for kernel in order:
            outcome = self._cache.measure_in_round(kernel, number, candidate)
            if outcome.kind is OutcomeKind.MEASURED:
                say(f"{names[kernel]}, {describe_outcome(outcome)}")
            else:
                if kernel == candidate:
                    return
                raise AgelabError(
                    f"{names[kernel]} itself {outcome.summary}: the round counts for nothing",
                    hint="what is said of a step needs both ends; agelab bisect --continue begins another round",
                )


def error_bound(question: BisectQuestion, verdicts: int) -> Fraction:
    """Return the upper bound on the probability that the answer is wrong: the verdicts and the ends may each err."""
    return min(Fraction(1), (verdicts + 1) * question.step_alpha)


class SymptomJudge:
    """Judge by symptom: bad shows it, good runs to its end, anything else is skipped."""

    def __init__(self, question: BisectQuestion, cache: MeasurementCache) -> None:
        assert question.symptom
        self._question = question
        self._symptom = question.symptom
        self._cache = cache

    def ends(self) -> str:
        decided = {}
        for name, kernel in self._question.ends.items():
            [outcome] = self._cache.measure(kernel, [1])
            decided[name] = (self._decide(outcome), outcome)
        good, bad = decided["good"], decided["bad"]
        if (good[0], bad[0]) == (Decision.BAD, Decision.GOOD):
            raise InputError(
                f"good and bad are swapped: good {good[1].summary}; bad does not", hint="swap --good and --bad"
            )
        if good[0] is not Decision.GOOD:
            raise InputError(f"good itself {good[1].summary}")
        if bad[0] is not Decision.BAD:
            what = "runs to its end" if bad[0] is Decision.GOOD else bad[1].summary
            raise InputError(f"bad does not show the symptom {self._symptom}: it {what}")
        return f"good runs to its end; bad {bad[1].summary}"

    def judge(self, kernel: str, say: Notify) -> KernelVerdict:
        [outcome] = self._cache.measure(kernel, [1])
        decision = self._decide(outcome)
        reason = "runs to its end" if decision is Decision.GOOD else outcome.summary
        return KernelVerdict(kernel=kernel, decision=decision, kind=outcome.kind, reason=reason)

    def _decide(self, outcome: KernelOutcome) -> Decision:
        if outcome.kind in (OutcomeKind.MEASURED, OutcomeKind.NOT_MEASURED):
            return Decision.GOOD
        return Decision.BAD if _shows_symptom(outcome, self._symptom) else Decision.UNDECIDED


SYMPTOM_KINDS = {
    Symptom.PANIC: OutcomeKind.PANICS,
    Symptom.HANG: OutcomeKind.HANGS,
    Symptom.FAIL: OutcomeKind.FAILS,
    Symptom.BOOT: OutcomeKind.NO_BOOT,
}


def _shows_symptom(outcome: KernelOutcome, symptom: Symptom) -> bool:
    """Return True if a kernel shows the symptom; one that panics before anything is measured does not boot."""
    early = symptom is Symptom.BOOT and outcome.kind is OutcomeKind.PANICS and outcome.run is None
    return early or outcome.kind is SYMPTOM_KINDS[symptom]


Judge = VirtualClockJudge | WallClockJudge | SymptomJudge
"""Tells good kernels from bad ones, once it has seen by its ``ends`` that good is good and bad is bad."""
