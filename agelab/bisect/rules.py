"""Decide whether a step is good or bad: in the virtual clock by a few run seeds, in the wall clock by rounds of runs.

docs/chance.md describes both rules.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cache
from statistics import median

from agelab.analysis.judge import judge
from agelab.base.errors import InputError
from agelab.bisect.measurements import Decision, StepDecision
from agelab.scenario.seeds import Seeds
from agelab.stats.formatting import decimals_for_spread, format_decimal, unit_scale
from agelab.stats.phrasing import several
from agelab.stats.rank_test import smallest_p
from agelab.stats.series import Series, SeriesPair, Summary, summary
from agelab.stats.verdict import ComparedSeries, DifferenceVerdict

SEEDS_NEEDED = 5
"""Run seeds of each end: the rule's floor is the larger spread of five values, and its lead that of five."""
LEAD_NEEDED = 3
"""Lead in values that one side of the threshold needs: 3 : 0 and 4 : 1, both of which fix the median of five."""


@dataclass(frozen=True)
class EndReferences:
    """Measurements of the good and the bad end, one value for each run seed, in the metric's unit.

    They define whether bad is higher or lower. Raises InputError where they cannot tell a step: too few seeds, ends
    that are equal, differ by less than seeds do or are not told apart by the rank test, a threshold that is not between
    them.
    """

    good: Sequence[Fraction]
    bad: Sequence[Fraction]
    threshold: Fraction | None = None
    """The user's threshold; None for the midpoint of the two medians."""
    unit: str = ""
    ends: tuple[Summary, Summary] = field(init=False)
    threshold_in_use: Fraction = field(init=False)
    """The threshold in use."""

    def __post_init__(self) -> None:
        ends = summary(self.good), summary(self.bad)
        good, bad = (end.median for end in ends)
        at = (good + bad) / 2 if self.threshold is None else self.threshold
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "threshold_in_use", at)
        if (fewest := min(end.n for end in ends)) < SEEDS_NEEDED:
            raise InputError(f"good and bad are not known apart: {several(fewest, 'seed')}, five are needed of each")
        medians = self.format_numbers(good=good, bad=bad)
        if good == bad:
            raise InputError(f"good and bad are equal: {medians}")
        if abs(good - bad) <= self.floor:
            raise InputError(
                f"good and bad differ by less than run seeds do: {medians}; {self.format_numbers(floor=self.floor)}"
            )
        [judged] = judge([SeriesPair(_series(self.good), _series(self.bad))], lambda _: None)
        if not judged.differs:
            raise InputError(f"good and bad are not known to differ: {medians}; {judged.reason}")
        if not min(good, bad) < at < max(good, bad):
            raise InputError(f"{self.format_numbers(threshold=at)} is not between the two ends: {medians}")
        for end, values in ((Decision.GOOD, self.good), (Decision.BAD, self.bad)):
            own = sum(self.side(value) is end for value in values)
            if (2 * own - len(values)) * SEEDS_NEEDED < LEAD_NEEDED * len(values):  # of five: less than four
                raise InputError(
                    f"{end} itself would get no verdict: {own} of its {len(values)} values are on its side "
                    f"of {self.format_numbers(threshold=at)}; {medians}"
                )

    @property
    def floor(self) -> Fraction:
        """The larger spread of both ends."""
        return max(end.spread for end in self.ends)

    def median(self, end: Decision) -> Fraction:
        """Return the median of GOOD or BAD."""
        return self.ends[end is not Decision.GOOD].median

    def side(self, value: Fraction) -> Decision:
        """Return the side of the threshold on which the value lies: GOOD or BAD; UNDECIDED if equal."""
        if value == self.threshold_in_use:
            return Decision.UNDECIDED
        good_is_lower = self.ends[0].median < self.ends[1].median
        return Decision.GOOD if (value < self.threshold_in_use) == good_is_lower else Decision.BAD

    def format_numbers(self, **numbers: Fraction) -> str:
        """Format named numbers in a fitting unit, with the digits that the floor allows."""
        unit = unit_scale(self.unit)
        scaled = {name: number / unit.divisor for name, number in numbers.items()}
        places = decimals_for_spread(unit.decimals, self.floor / unit.divisor, *scaled.values())
        called = f" {unit.name}" if unit.name not in ("", "1") else ""
        return ", ".join(f"{name} {format_decimal(number, places)}{called}" for name, number in scaled.items())


def _series(values: Sequence[Fraction]) -> Series:
    """Make a series of an end's values, whose order is all that is asked."""
    return Series("", 1, "", "", tuple((Seeds(1, seed), value) for seed, value in enumerate(values, 1)), ())


def decide_virtual(references: EndReferences, values: Sequence[Fraction]) -> StepDecision:
    """Decide from the values of a step's run seeds so far; at most SEEDS_NEEDED may be run.

    The verdict is the side on which the median of five lies whatever the other seeds give (a lead of three values),
    or would lie if the step's seeds spread no further than the ends' do (fewer values, all far from the threshold and
    like that side's end). Otherwise MORE, and with all seeds run UNDECIDED.
    """
    if not values:
        return StepDecision(Decision.MORE, "no value yet")
    sides = [references.side(value) for value in values]
    bad, good = sides.count(Decision.BAD), sides.count(Decision.GOOD)
    side, lead = (Decision.BAD, bad - good) if bad >= good else (Decision.GOOD, good - bad)
    middle = Fraction(median(values))
    count = f"median of {len(values)} seeds" if len(values) > 1 else "1 seed"
    split = f"{references.format_numbers(**{'': middle}).strip()} ({count})"
    if good and bad:
        split += f", {good} on good's side, {bad} on bad's"
    note = unlike_both_ends(references, middle)
    if lead >= LEAD_NEEDED or (lead == len(values) and _few_values_suffice(references, side, values)):
        return StepDecision(side, split, note)
    if lead + SEEDS_NEEDED - len(values) < LEAD_NEEDED:
        return StepDecision(Decision.UNDECIDED, f"{split}; a lead of {LEAD_NEEDED} is needed", note)
    return StepDecision(Decision.MORE, f"{split}; another seed is needed")


def _few_values_suffice(references: EndReferences, side: Decision, values: Sequence[Fraction]) -> bool:
    """Return True if one or two values on one side decide, as no spread like the ends' reaches the threshold.

    One value must be twice the floor away from the threshold, the median of two once: the spread of five is that of a
    small sample. And the step must be like that side's end, where the floor was measured: no farther from its median
    than the floor, or than half the way to the threshold.
    """
    middle, home = Fraction(median(values)), references.median(side)
    far = len(values) * abs(middle - references.threshold_in_use) > 2 * references.floor
    return far and abs(middle - home) <= max(references.floor, abs(references.threshold_in_use - home) / 2)


def unlike_both_ends(references: EndReferences, value: Fraction) -> str:
    """Describe the position of a value farther than the floor from all values of both ends; else return ""."""
    ends = {end: sorted(getattr(references, end)) for end in (Decision.GOOD, Decision.BAD)}
    gaps = {end: max(low - value, value - high, Fraction(0)) for end, (low, *_, high) in ends.items()}
    if min(gaps.values()) <= references.floor:
        return ""
    good, bad = (references.median(end) for end in ends)
    if min(good, bad) < value < max(good, bad):
        share = round(100 * (value - good) / (bad - good))
        return f"neither good nor bad: {share} % of the way from good to bad"
    nearest = min(gaps, key=lambda end: gaps[end])
    return "neither good nor bad: " + references.format_numbers(**{f"beyond {nearest} by": gaps[nearest]})


ALPHA = Fraction(1, 100)
"""Default error probability of a verdict."""
LOOKS = 6
"""Numbers of rounds after which it is looked: each look may err with an equal share of the error probability."""


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


@cache
def fewest_rounds(alpha: Fraction = ALPHA) -> int:
    """Return the rounds that tell where all agree: the least budget allowed."""
    level, rounds = alpha / LOOKS, 1
    while smallest_p(((1, 1),) * rounds) > float(level):
        rounds += 1
    return rounds


@cache
def looks(budget: int, alpha: Fraction = ALPHA) -> tuple[int, ...]:
    """Return the numbers of rounds after which it is looked: from the fewest that tell to the budget, by one factor."""
    first = min(fewest_rounds(alpha), budget)
    return tuple(sorted({round(first * (budget / first) ** (look / (LOOKS - 1))) for look in range(LOOKS)}))


def compare_ends(
    pairs: Sequence[tuple[Fraction, Fraction]], budget: int, alpha: Fraction = ALPHA
) -> tuple[EndsOrder, str]:
    """Compare good with bad from pairs (good, bad) of one round each, of ``budget`` rounds at most.

    Returns the order and the reason; the error probability covers both orders.
    """
    rounds = several(len(pairs), "round")
    if len(pairs) not in looks(budget, alpha):
        return EndsOrder.MORE, rounds
    judged = _judged(pairs, alpha)
    higher, lower = sum(bad > good for good, bad in pairs), sum(bad < good for good, bad in pairs)
    reason = f"bad is higher in {higher} of {rounds}, lower in {lower} ({_p(judged)})"
    if judged.differs:
        return EndsOrder.HIGHER if judged.verdict is DifferenceVerdict.HIGHER else EndsOrder.LOWER, reason
    return EndsOrder.UNDECIDED if len(pairs) >= budget else EndsOrder.MORE, reason


def decide_wall(rounds: Sequence[Round], bad_is: EndsOrder, budget: int, alpha: Fraction = ALPHA) -> StepDecision:
    """Decide from the rounds so far, of ``budget`` rounds at most; ``bad_is`` is HIGHER or LOWER.

    BAD: it is told from good, and is worse. GOOD: it is told from bad, and is better. If both, it lies between, and
    the midpoint of good and bad decides, if it is told from that. A candidate that behaves as one end is thus given to
    the other with probability alpha at most, provided that the runs of each round are in random order.
    """
    if bad_is not in (EndsOrder.HIGHER, EndsOrder.LOWER):
        raise ValueError("the ends' order is not known")
    if len(rounds) not in looks(budget, alpha):
        return StepDecision(Decision.MORE, f"{len(rounds)} rounds")
    sign = 1 if bad_is is EndsOrder.HIGHER else -1

    def judged(end: Callable[[Round], Fraction]) -> ComparedSeries:
        return _judged([(sign * end(turn), sign * turn.candidate) for turn in rounds], alpha)

    from_good, from_bad = judged(lambda turn: turn.good), judged(lambda turn: turn.bad)
    worse = sum(sign * turn.candidate > sign * turn.good for turn in rounds)
    better = sum(sign * turn.candidate < sign * turn.bad for turn in rounds)
    reason = (
        f"worse than good in {worse} of {len(rounds)} rounds ({_p(from_good)}), "
        f"better than bad in {better} ({_p(from_bad)})"
    )
    higher, lower = DifferenceVerdict.HIGHER, DifferenceVerdict.LOWER
    note = ""
    match from_good.verdict is higher, from_bad.verdict is lower:
        case True, False:
            return StepDecision(Decision.BAD, reason, "worse than bad" * (from_bad.verdict is higher))
        case False, True:
            return StepDecision(Decision.GOOD, reason, "better than good" * (from_good.verdict is lower))
        case True, True:
            note = "neither good nor bad: between them"
            middle = judged(lambda turn: (turn.good + turn.bad) / 2)
            reason += f", from the midpoint of both: {_p(middle)}"
            if middle.differs:
                return StepDecision(Decision.BAD if middle.verdict is higher else Decision.GOOD, reason, note)
    if len(rounds) >= budget:
        return StepDecision(Decision.UNDECIDED, f"{reason}: the budget of {budget} rounds has ended", note)
    return StepDecision(Decision.MORE, reason, note)


def _judged(pairs: Sequence[tuple[Fraction, Fraction]], alpha: Fraction) -> ComparedSeries:
    """Judge the seconds of pairs against the firsts as any comparison, each round a block of its own."""
    sides = (
        Series("", 1, "", "", tuple((Seeds(number, 1), value) for number, value in enumerate(side, 1)), ())
        for side in zip(*pairs, strict=True)
    )
    [judged] = judge([SeriesPair(*sides)], lambda _: None, correct=False, level=alpha / LOOKS)
    return judged


def _p(judged: ComparedSeries) -> str:
    return f"p {judged.test.p:.2g}" if judged.test else "no p"
