"""Whether a step of a search is good or bad, in the wall clock: rounds of runs until they tell, or the budget ends.

A round runs good, bad and candidate once each, in an order drawn at random. The rules look at signs alone: is the
candidate worse than good of its own round, is it better than bad? What drifts from round to round cancels, and no
distribution is taken for granted. Each claim is a bet against a coin (a test martingale); see docs/bisect-rules.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from math import comb

from agelab.bisect.verdict import Decision, StepDecision

ALPHA = Fraction(1, 100)
"""The error probability of a verdict unless another one is asked for."""


class EndsOrder(StrEnum):
    """What is said of the two ends."""

    HIGHER = "bad is higher"
    LOWER = "bad is lower"
    MORE = "more"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Round:
    """One run of each, in the metric's unit."""

    good: Fraction
    bad: Fraction
    candidate: Fraction


@dataclass(frozen=True)
class EndsComparison:
    """Whether good and bad differ, and which way."""

    order: EndsOrder
    reason: str
    error: Fraction | None
    """The chance, at most, that an order is said of two ends that are the same; None where none is said."""


@cache
def e_value(wins: int, losses: int) -> Fraction:
    """What one unit has become that was bet on wins being likelier than losses, after so many of each.

    The bet is a mixture, 2 * integral of (2p)^wins * (2(1-p))^losses over p from 1/2 to 1. With n = wins + losses that
    is sum(C(n+1, i), i <= wins) / ((n+1) * C(n, wins)). If a win is never likelier than a loss, whatever came before,
    it is a non-negative supermartingale that starts at 1: with probability 1 - alpha it never reaches 1/alpha, in
    however many looks. J. Ville, Etude critique de la notion de collectif, 1939; the mixture: H. Robbins, "Statistical
    methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41 (1970), 1397-1409.
    """
    n = wins + losses
    return Fraction(sum(comb(n + 1, i) for i in range(wins + 1)), (n + 1) * comb(n, wins))


def fewest_rounds(alpha: Fraction = ALPHA) -> int:
    """Rounds that ``differ`` needs if all are alike: no budget may be below this. A step may take fewer."""
    n = 1
    while (e_value(n, 0) + e_value(0, n)) * alpha < 2:
        n += 1
    return n


def compare_ends(
    pairs: Sequence[tuple[Fraction, Fraction]], budget: int, alpha: Fraction = ALPHA
) -> EndsComparison:
    """Whether good and bad differ at all, from pairs (good, bad) of one round each, of ``budget`` rounds at most.

    Half a unit is bet on either order, so the error covers both.
    """
    higher, lower = _count_worse((bad, good) for good, bad in pairs)
    value = (e_value(higher, lower) + e_value(lower, higher)) / 2
    told = (
        f"bad is higher in {higher} of {len(pairs)} rounds, lower in {lower}: e-value {_three_digits(value)}"
    )
    if value * alpha >= 1:
        return EndsComparison(EndsOrder.HIGHER if higher > lower else EndsOrder.LOWER, told, alpha)
    return EndsComparison(
        EndsOrder.UNDECIDED if len(pairs) >= budget else EndsOrder.MORE,
        f"{told} of {_three_digits(1 / alpha)}",
        None,
    )


def decide_wall(
    rounds: Sequence[Round], bad_is: EndsOrder, budget: int, alpha: Fraction = ALPHA
) -> StepDecision:
    """What the rounds say of the candidate so far, of ``budget`` rounds at most; ``bad_is`` HIGHER or LOWER.

    BAD: it is worse than good, with an e-value of 1/alpha, and that is 1/alpha times what says that it is better than
    bad. GOOD: the other way round. Where both are shown it lies between, and the midpoint of good and bad decides,
    with such an e-value of its own. A candidate that behaves as one end is so given to the other with a chance of alpha
    at most, provided that the order of the runs in each round is drawn at random.
    """
    if bad_is not in (EndsOrder.HIGHER, EndsOrder.LOWER):
        raise ValueError("the ends' order is not known")
    worse, not_worse = _count_worse(((one.candidate, one.good) for one in rounds), bad_is)
    better, not_better = _count_worse(((one.bad, one.candidate) for one in rounds), bad_is)
    against_good, against_bad = e_value(worse, not_worse), e_value(better, not_better)
    told = (
        f"worse than good in {worse} of {len(rounds)} rounds (e-value {_three_digits(against_good)}), "
        f"better than bad in {better} (e-value {_three_digits(against_bad)})"
    )
    if against_good * alpha >= max(Fraction(1), against_bad):
        beyond = e_value(not_better, better) * alpha >= 1
        return StepDecision(Decision.BAD, told, "worse than bad" if beyond else "", alpha)
    if against_bad * alpha >= max(Fraction(1), against_good):
        beyond = e_value(not_worse, worse) * alpha >= 1
        return StepDecision(Decision.GOOD, told, "better than good" if beyond else "", alpha)
    note = ""
    if min(against_good, against_bad) * alpha >= 1:
        note = "neither good nor bad: between them"
        over, under = _count_worse(((2 * one.candidate, one.good + one.bad) for one in rounds), bad_is)
        told += f", on bad's side of the midpoint in {over} and on good's in {under}"
        if e_value(over, under) * alpha >= 1:
            return StepDecision(Decision.BAD, told, note, alpha)
        if e_value(under, over) * alpha >= 1:
            return StepDecision(Decision.GOOD, told, note, alpha)
    if len(rounds) >= budget:
        return StepDecision(Decision.UNDECIDED, f"{told}: the budget of {budget} rounds has ended", note)
    return StepDecision(Decision.MORE, told, note)


def _count_worse(
    pairs: Iterable[tuple[Fraction, Fraction]], bad_is: EndsOrder = EndsOrder.HIGHER
) -> tuple[int, int]:
    """In how many pairs the first is the worse one, and in how many the second. Nothing is bet on a tie."""
    higher = lower = 0
    for first, second in pairs:
        higher += first > second
        lower += first < second
    return (higher, lower) if bad_is is EndsOrder.HIGHER else (lower, higher)


def _three_digits(value: Fraction) -> str:
    """Three figures; beyond a thousand million nobody asks, and a float ends somewhere."""
    return f"{float(min(value, Fraction(10**9))):.3g}"
