"""The verdict on two sides, A and B, by one metric of one step: the floor first, and then the rank test.

Nobody is called slower or faster, higher or lower, below the floor (``floor``); above it the rank test must exclude
chance as well, corrected for all comparisons of the metric (``ranks``). See docs/floor.md.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Literal

from agelab.model.metrics import METRICS
from agelab.stats.bootstrap import Interval
from agelab.stats.noise_floor import FloorVerdict as Floored
from agelab.stats.noise_floor import MedianDifference
from agelab.stats.rank_test import LEVEL, Test, seeds_needed
from agelab.stats.series import SeriesPair


class DifferenceVerdict(StrEnum):
    """The verdict on B, seen from A."""

    HIGHER = "higher"
    LOWER = "lower"
    CHANCE = "maybe chance"
    """Above the floor, but the rank test cannot exclude chance."""
    BELOW = "below the floor"
    EQUAL = "equal"
    NO_FLOOR = "no floor"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class ComparedSeries:
    """A pair of series, judged."""

    row: SeriesPair
    difference: MedianDifference | None
    """None where a side was not measured."""
    interval: Interval | None
    """The interval of the ratio; None where a side has fewer than two runs, or a value that is not above zero."""
    test: Test | None

    @property
    def ratio(self) -> Fraction | None:
        """Median of B / median of A; None where that is zero."""
        found = self.difference
        return found.right.median / found.left.median if found and found.left.median else None

    @cached_property
    def verdict(self) -> DifferenceVerdict:
        """Floor and rank test together."""
        if self.difference is None or self.test is None:
            return DifferenceVerdict.NOT_MEASURED
        floored = self.difference.verdict
        if floored not in (Floored.A_HIGHER, Floored.B_HIGHER):
            return DifferenceVerdict(floored.value)
        if self.test.corrected > LEVEL:
            return DifferenceVerdict.CHANCE
        return DifferenceVerdict.HIGHER if floored is Floored.B_HIGHER else DifferenceVerdict.LOWER

    @property
    def differs(self) -> bool:
        """True if B is called higher or lower."""
        return self.verdict in (DifferenceVerdict.HIGHER, DifferenceVerdict.LOWER)

    @property
    def better(self) -> Literal["left", "right"] | None:
        """The better side; None where neither is called anything, or the metric has no better way."""
        metric = METRICS.get(self.row.left.metric)
        if not self.differs or metric is None or metric.better is None:
            return None
        return (
            "right" if (metric.better == "higher") == (self.verdict is DifferenceVerdict.HIGHER) else "left"
        )

    @property
    def word(self) -> str:
        """The verdict in the metric's own word: B is ``slower``, ``faster``, ``higher``, ``lower``; else why not."""
        metric = METRICS.get(self.row.left.metric)
        if self.differs and metric:
            return metric.word(self.verdict is DifferenceVerdict.HIGHER)
        return self.verdict.value

    @property
    def reader_word(self) -> str:
        """The word for a reader: ``better`` or ``worse`` where the metric has a better way and is no speed."""
        if self.better and not METRICS[self.row.left.metric].speed:
            return "better" if self.better == "right" else "worse"
        return self.word

    @property
    def word_or_reason(self) -> str:
        """The word where B differs; else the reason, or the verdict where there is none."""
        return self.word if self.differs else self.reason or self.word

    @property
    def reason(self) -> str | None:
        """The reason why B is called nothing, in a sentence; None where it is called something, or there is none."""
        if self.verdict is DifferenceVerdict.CHANCE and self.test:
            return (
                f"above the floor, but chance is not excluded (p {self.test.corrected:.2g} of "
                f"{self.test.family} comparisons): {seeds_needed(self.test.family)} seeds on each side could"
            )
        if self.verdict is DifferenceVerdict.NOT_MEASURED:
            sides = (("A", self.row.left), ("B", self.row.right))
            said = [
                f"{letter}: {(one.missing or [(0, 'no sample')])[0][1]}"
                for letter, one in sides
                if not one.values
            ]
            return "; ".join(said)
        return self.difference.why_no_floor if self.difference else None
