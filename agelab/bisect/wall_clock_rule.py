"""Decide whether a step is good or bad in the wall clock: rounds of runs until they tell, or the budget ends.

A round runs good, bad and candidate once each, in random order. The rules use signs only: is the candidate worse than
good of its own round, is it better than bad? Drift from round to round cancels, and no distribution is assumed. Each
claim is tested by a test martingale; see docs/bisect-rules.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from math import comb

from agelab.bisect.verdict import Decision, StepDecision

ALPHA = Fraction(1, 100)
"""Default error probability of a verdict."""


class EndsOrder(StrEnum):
    """Order of the two ends."""

    HIGHER = "bad is higher"
    LOWER = "bad is lower"
    MORE = "more"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Round:
    """One run of each kernel, in the metric's unit."""

    good: Fraction
    bad: Fraction
    candidate: Fraction


@dataclass(frozen=True)
class EndsComparison:
    """Result of comparing good with bad."""

    order: EndsOrder
    reason: str
    error: Fraction | None
    """Upper bound on the probability of finding an order of equal ends; None where no order was found."""


@cache
def e_value(wins: int, losses: int) -> Fraction:
    """Return the value of one unit bet on wins being likelier than losses, after so many of each.

    The bet is a mixture, 2 * integral of (2p)^wins * (2(1-p))^losses over p from 1/2 to 1. With n = wins + losses
    that is sum(C(n+1, i), i <= wins) / ((n+1) * C(n, wins)). If a win is never likelier than a loss, whatever came
    before, it is a non-negative supermartingale that starts at 1: with probability 1 - alpha it never reaches
    1/alpha, in however many looks. J. Ville, Etude critique de la notion de collectif, 1939; the mixture: H. Robbins,
    "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41 (1970),
    1397-1409.
    """
    n = wins + losses
    return Fraction(sum(comb(n + 1, i) for i in range(wins + 1)), (n + 1) * comb(n, wins))


def fewest_rounds(alpha: Fraction = ALPHA) -> int:
    """Return the rounds that ``compare_ends`` needs if all agree: the least budget allowed. A step may take fewer."""
    n = 1
    while (e_value(n, 0) + e_value(0, n)) * alpha < 2:
        n += 1
    return n


def compare_ends(
    pairs: Sequence[tuple[Fraction, Fraction]], budget: int, alpha: Fraction = ALPHA
) -> EndsComparison:
    """Compare good with bad from pairs (good, bad) of one round each, of ``budget`` rounds at most.

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
    """Decide from the rounds so far, of ``budget`` rounds at most; ``bad_is`` is HIGHER or LOWER.

    BAD: it is worse than good with an e-value of at least 1/alpha, and at least that of being better than bad. GOOD:
    the other way round. If both are shown, it lies between, and the midpoint of good and bad decides, with an e-value
    of its own. A candidate that behaves as one end is thus given to the other with probability alpha at most,
    provided that the runs of each round are in random order.
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
    """Count the pairs in which the first is worse, and those in which the second is; ties count for neither."""
    higher = lower = 0
    for first, second in pairs:
        higher += first > second
        lower += first < second
    return (higher, lower) if bad_is is EndsOrder.HIGHER else (lower, higher)


def _three_digits(value: Fraction) -> str:
    """Format with three digits, limited to 10**9, which a float can hold."""
    return f"{float(min(value, Fraction(10**9))):.3g}"
