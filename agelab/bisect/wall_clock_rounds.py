"""Good or bad in the wall clock: a kernel beside both ends, in rounds whose order is drawn, until they tell."""

from fractions import Fraction
from random import Random

from agelab.bisect.judges import KernelVerdict, Say, describe_outcome, not_measurable, skip_verdict
from agelab.bisect.measurements import KernelOutcome, MeasurementCache, OutcomeKind
from agelab.bisect.question import BisectQuestion
from agelab.bisect.virtual_clock_rule import Decision
from agelab.bisect.wall_clock_rule import EndsComparison, EndsOrder, Round, compare_ends, decide_wall
from agelab.errors import AgelabError, InputError


class WallClockJudge:
    """Runs of one round are made one after the other; a round that was interrupted counts for nothing."""

    def __init__(self, question: BisectQuestion, memory: MeasurementCache, say: Say) -> None:
        self._question = question
        self._memory = memory
        self._say = say
        self._good, self._bad = question.kernels[0], question.kernels[-1]
        self._alpha = question.step_alpha

    def _differ(self) -> EndsComparison:
        """Whether the ends differ, measured if need be. Raises InputError where the rounds do not tell."""
        for name, kernel in (("good", self._good), ("bad", self._bad)):
            if wrong := self._memory.prepare(kernel):
                raise not_measurable(name, wrong)
        while True:
            whole = [
                (one[self._good].exact, one[self._bad].exact)
                for one in self._whole("", self._good, self._bad)
            ]
            found = compare_ends(whole, self._question.rounds, self._alpha)
            if found.order is EndsOrder.UNDECIDED:
                raise InputError(
                    f"good and bad cannot be told apart in {len(whole)} rounds: {found.reason}",
                    hint="more rounds (--rounds), a greater error probability (--alpha), or another metric",
                )
            if found.order is not EndsOrder.MORE:
                return found
            self._round("", self._say)

    def ends(self) -> str:
        return self._differ().reason

    def judge(self, kernel: str, say: Say) -> KernelVerdict:
        order = self._differ().order
        if wrong := self._memory.prepare(kernel):
            return skip_verdict(wrong)
        while True:
            for one in self._memory.rounds(kernel).values():
                if kernel in one and one[kernel].kind is not OutcomeKind.MEASURED:
                    return skip_verdict(one[kernel])
            rounds = [
                Round(one[self._good].exact, one[self._bad].exact, one[kernel].exact)
                for one in self._whole(kernel, self._good, self._bad, kernel)
            ]
            said = decide_wall(rounds, order, self._question.rounds, self._alpha)
            if said.decision is not Decision.MORE:
                return KernelVerdict(
                    kernel=kernel,
                    decision=said.decision,
                    kind=OutcomeKind.MEASURED,
                    reason=said.reason,
                    note=said.note,
                    error=None if said.error is None else str(said.error),
                )
            self._round(kernel, say)

    def _whole(self, candidate: str, *kernels: str) -> list[dict[str, KernelOutcome]]:
        """The rounds for a kernel in which each of these was measured."""
        return [
            one
            for one in self._memory.rounds(candidate).values()
            if all(name in one and one[name].kind is OutcomeKind.MEASURED for name in kernels)
        ]

    def _round(self, candidate: str, say: Say) -> None:
        """One run of each, in an order drawn for this round. Raises AgelabError where an end has no value any more."""
        number = self._memory.next_round()
        names = {self._good: "good", self._bad: "bad", **({candidate: "this"} if candidate else {})}
        order = list(names)
        Random(f"{self._question.seed}:{number}").shuffle(order)
        for kernel in order:
            found = self._memory.in_round(kernel, number, candidate)
            if found.kind is OutcomeKind.MEASURED:
                say(f"{names[kernel]}, {describe_outcome(found)}")
            else:
                if kernel == candidate:
                    return
                raise AgelabError(
                    f"{names[kernel]} itself {found.said}: the round counts for nothing",
                    hint="what is said of a step needs both ends; agelab bisect --continue begins another round",
                )


def error_bound(question: BisectQuestion, verdicts: int) -> Fraction:
    """The chance that an answer of so many verdicts is wrong, at most: each of them may be, and so may the ends."""
    return min(Fraction(1), (verdicts + 1) * question.step_alpha)
