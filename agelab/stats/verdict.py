"""The verdict on two sides, A and B, by one metric of one step: different, the same, or not known.

See docs/chance.md for what each word promises.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Literal

from agelab.stats.formatting import format_decimal, format_ratio
from agelab.stats.more_seeds import more_seeds, words
from agelab.stats.order_statistics import Summary
from agelab.stats.rank_law import LATTICE, smallest_p
from agelab.stats.rank_test import RankTest, seeds_needed
from agelab.stats.series import Series, SeriesPair
from agelab.stats.shift import CORPORA_NEEDED, LEVEL, Interval, Shift

MARGIN = Fraction(5, 100)
"""What two sides may differ by and still be called the same: the whole interval lies within it."""


class DifferenceVerdict(StrEnum):
    """The verdict on B, seen from A."""

    HIGHER = "higher"
    LOWER = "lower"
    SAME = "the same"
    """The whole interval lies within the margin: D. J. Schuirmann, "A comparison of the two one-sided tests procedure
    and the power approach", Journal of Pharmacokinetics and Biopharmaceutics 15 (1987), 657-680."""
    EQUAL = "equal"
    """All values of both sides are one value, or seed by seed the same."""
    BELOW = "below the floor"
    """In the wall clock: no more than the host does by chance, so nothing is said."""
    UNKNOWN = "not known"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class ComparedSeries:
    """A pair of series, judged."""

    row: SeriesPair
    shift: Shift | None
    """None where no corpus is on both sides."""
    test: RankTest | None
    host: Fraction | None = None
    """The host's noise, where it is known: how far values spread by chance, as a share of their median."""
    margin: Fraction = MARGIN

    @property
    def left(self) -> Summary | None:
        return self.row.left.summary

    @property
    def right(self) -> Summary | None:
        return self.row.right.summary

    @property
    def difference(self) -> Fraction | None:
        """Median of B - median of A; None where a side was not measured."""
        return self.right.median - self.left.median if self.left and self.right else None

    @property
    def ratio(self) -> Fraction | None:
        """The shift as a ratio: how many times as much B has; None where some value is not above zero."""
        return self.shift.value if self.shift and self.shift.is_ratio else None

    @property
    def interval(self) -> Interval | None:
        """The interval of the ratio."""
        return self.shift.interval if self.shift and self.shift.is_ratio else None

    @cached_property
    def verdict(self) -> DifferenceVerdict:
        """The verdict: equal, then the host's floor, then the test, and then the margin."""
        if not self.left or not self.right:
            return DifferenceVerdict.NOT_MEASURED
        ours, theirs = self.row.left.values, self.row.right.values
        if sorted(ours) == sorted(theirs) or all(value == ours[0][1] for _, value in (*ours, *theirs)):
            return DifferenceVerdict.EQUAL
        if self.shift is None or self.test is None:
            return DifferenceVerdict.UNKNOWN
        if self._below_the_floor:
            return DifferenceVerdict.BELOW
        if self.test.told:
            higher = self.shift.sides[1] > self.shift.sides[0] if self.shift.depends else self.test.delta > 0
            return DifferenceVerdict.HIGHER if higher else DifferenceVerdict.LOWER
        return DifferenceVerdict.SAME if self.within_margin else DifferenceVerdict.UNKNOWN

    @property
    def _below_the_floor(self) -> bool:
        """True if the host by chance moves as much: its share is of the larger side, whichever is called A."""
        if self.host is None or self.shift is None or not self.left or not self.right:
            return False
        if self.shift.is_ratio:
            return 1 - min(self.shift.value, 1 / self.shift.value) <= self.host
        return abs(self.shift.value) <= self.host * max(abs(self.left.median), abs(self.right.median))

    @property
    def within_margin(self) -> bool:
        """True if the whole interval lies within the margin, whichever is called A."""
        if self.shift is None or self.shift.interval is None or not self.left or not self.right:
            return False
        low, high = self.shift.interval.low, self.shift.interval.high
        if self.shift.is_ratio:
            return low * (1 + self.margin) >= 1 and high <= 1 + self.margin
        most = self.margin * min(abs(self.left.median), abs(self.right.median))
        return -most <= low and high <= most

    @property
    def differs(self) -> bool:
        """True if B is called higher or lower."""
        return self.verdict in (DifferenceVerdict.HIGHER, DifferenceVerdict.LOWER)

    @property
    def alike(self) -> bool:
        """True if B is called the same, or is equal."""
        return self.verdict in (DifferenceVerdict.SAME, DifferenceVerdict.EQUAL)

    @property
    def better(self) -> Literal["left", "right"] | None:
        """The better side; None where neither is called anything, or the metric has no better way."""
        metric = self.row.left.definition
        if not self.differs or metric is None or metric.better is None:
            return None
        return (
            "right" if (metric.better == "higher") == (self.verdict is DifferenceVerdict.HIGHER) else "left"
        )

    @property
    def word(self) -> str:
        """The verdict in the metric's own word: B is ``slower``, ``faster``, ``higher``, ``lower``; else as it is."""
        metric = self.row.left.definition
        if self.differs and metric:
            return metric.word(self.verdict is DifferenceVerdict.HIGHER)
        return self.verdict.value

    @property
    def reader_word(self) -> str:
        """The word for a reader: ``better`` or ``worse`` where the metric has a better way and is no speed."""
        metric = self.row.left.definition
        if self.better and metric and not metric.speed:
            return "better" if self.better == "right" else "worse"
        return self.word

    @property
    def word_and_reason(self) -> str:
        """The word for a reader, with the reason where there is one."""
        return f"{self.reader_word}: {self.reason}" if self.reason else self.reader_word

    @cached_property
    def more_seeds(self) -> int | None:
        """How many more seeds on each side would tell; None where it is known, or no number promises to."""
        if (
            self.verdict is not DifferenceVerdict.UNKNOWN
            or not self.shift
            or not self.test
            or self.shift.depends
        ):
            return None
        if self.too_few:
            return self._enough - self._count
        return more_seeds(self._count, self.test, self.shift, self.margin)

    @property
    def reason(self) -> str | None:
        """The reason why B is called nothing, in a sentence; None where it is called something, or there is none."""
        if self.verdict is DifferenceVerdict.NOT_MEASURED:
            sides = (("A", self.row.left), ("B", self.row.right))
            return "; ".join(f"{letter}: {why_missing(one)}" for letter, one in sides if not one.values)
        if self.verdict is not DifferenceVerdict.UNKNOWN:
            return None
        if self.shift is None or self.test is None:
            return "no corpus is on both sides"
        if self.shift.depends:
            return self._depends
        if self.too_few:
            return f"{self._seeds} cannot exclude chance, {self._enough} on each side can"
        p = f"p {self.test.corrected if self.test.family else self.test.p:.2g}"
        p += f" of {self.test.family} comparisons" if self.test.family > 1 else ""
        if self.more_seeds is None:
            return f"chance is not excluded ({p})"
        return f"chance is not excluded ({p}); {words(self.more_seeds)}"

    @property
    def _depends(self) -> str:
        """Say that the corpora differ, and how many would be enough."""
        assert self.shift is not None
        shown = ", ".join(f"corpus {one.corpus}: {self._shown(one.value)}" for one in self.shift.corpora)
        have = len(self.shift.corpora)
        more = CORPORA_NEEDED - have
        few = f"; {more} more corp{'us' if more == 1 else 'ora'} at least would tell" if more > 0 else ""
        return f"depends on the data ({shown}){few}"

    def _shown(self, value: Fraction) -> str:
        if self.shift and self.shift.is_ratio:
            return format_ratio(value, (), True)[0]
        return format_decimal(value, 3)

    @property
    def enough(self) -> bool:
        """True if the values are enough to exclude chance, in some order of them."""
        sizes = tuple(one.size for one in self.row.blocks)
        return bool(sizes) and smallest_p(sizes) <= float(self._level) * (1 + LATTICE)

    @property
    def too_few(self) -> bool:
        """True if nothing is known because the values are too few, whatever they are."""
        if self.verdict is not DifferenceVerdict.UNKNOWN or not self.shift or self.shift.depends:
            return False
        return not self.enough

    @property
    def _count(self) -> int:
        """Values on the side that has fewer, over the corpora that both have."""
        blocks = self.row.blocks
        return min(sum(len(one.left) for one in blocks), sum(len(one.right) for one in blocks))

    @property
    def _enough(self) -> int:
        """Values on each side that are enough to exclude chance at all."""
        corpora = len(self.row.blocks)
        return max(self._count + 1, corpora * seeds_needed(1, corpora, self._level))

    @property
    def _level(self) -> Fraction:
        return self.test.level if self.test else LEVEL

    @property
    def _seeds(self) -> str:
        return f"{self._count} seed{'s' * (self._count != 1)}"


def why_missing(one: Series) -> str:
    """Return the first reason why a series has no value."""
    return one.missing[0][1] if one.missing else "no sample"


def left_out(row: SeriesPair) -> Sequence[int]:
    """Return the corpora that one side alone has: their values are in no verdict."""
    sides = [{seeds.corpus for seeds, _ in side.values} for side in (row.left, row.right)]
    return sorted(sides[0] ^ sides[1])
