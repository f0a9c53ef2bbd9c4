"""Decide whether a step is good or bad in the virtual clock: few run seeds against the spread of the ends, its floor.

docs/bisect-rules.md describes the rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median

from agelab.analysis.judge import judge
from agelab.base.errors import InputError
from agelab.bisect.verdict import Decision, StepDecision
from agelab.scenario.seeds import Seeds
from agelab.stats.formatting import decimals_for_spread, format_decimal, unit_scale
from agelab.stats.series import Series, SeriesPair, Summary, summary

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
            seeds = f"{fewest} seed{'s' * (fewest > 1)}"
            raise InputError(f"good and bad are not known apart: {seeds}, five are needed of each")
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
                    f"{end} itself would not be told: {own} of its {len(values)} values are on its side "
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
        return ", ".join(
            f"{name} {format_decimal(number, places)}{called}" for name, number in scaled.items()
        )


def _series(values: Sequence[Fraction]) -> Series:
    """Make a series of an end's values, whose order is all that is asked."""
    return Series("", 1, "", "", tuple((Seeds(1, seed), value) for seed, value in enumerate(values, 1)), ())


def decide_virtual(
    references: EndReferences, values: Sequence[Fraction], seeds: int = SEEDS_NEEDED
) -> StepDecision:
    """Decide from the values of a step's run seeds so far; at most ``seeds`` may be run.

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
    if lead + seeds - len(values) < LEAD_NEEDED:
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
