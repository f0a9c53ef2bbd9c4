"""The verdict on two sides, A and B, by one metric of one step: different, the same, or not known.

It is about the files that were run. Whether it holds for other files is a second verdict, ``for_others``. See
docs/chance.md for what each word promises.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import ceil, log
from statistics import NormalDist
from typing import Literal

from agelab.stats import phrasing
from agelab.stats.formatting import format_decimal, format_ratio
from agelab.stats.rank_test import LATTICE, LEVEL, RankTest, seeds_needed, smallest_p
from agelab.stats.series import SeriesPair, Summary
from agelab.stats.shift import Interval, OtherFiles, Shift

POWER = 0.8
"""How likely so many seeds are to show it."""


def more_seeds(count: int, test: RankTest, shift: Shift, margin: Fraction) -> int | None:
    """Return how many more seeds are needed, for ``count`` on each side; None where no number of them promises to.

    To be called different, after G. E. Noether, "Sample size determination for some common nonparametric tests",
    Journal of the American Statistical Association 82 (1987), 645-647, with Cliff's delta as seen:

        n = 2 (z(1 - LEVEL/2m) + z(POWER))^2 / (3 delta^2)     for m comparisons

    To be called the same: an interval of half the width w becomes narrower with the root of n, and must leave the
    margin less the shift: n = count * (w / (margin - |shift|))^2, for ratios in logarithms.
    """
    counts = [n for n in (_to_differ(test), _to_be_the_same(count, shift, margin)) if n is not None]
    return max(1, ceil(min(counts)) - count) if counts else None


def _to_differ(test: RankTest) -> float | None:
    normal = NormalDist()
    z = normal.inv_cdf(1 - float(test.level) / 2 / max(1, test.family)) + normal.inv_cdf(POWER)
    return 2 * z**2 / (3 * float(test.delta) ** 2) if test.delta else None


def _to_be_the_same(count: int, shift: Shift, margin: Fraction) -> float | None:
    if not shift.is_ratio or shift.interval is None:
        return None
    low, high = log(shift.interval.low), log(shift.interval.high)
    room = log(1 + margin) - abs(log(shift.value))
    return count * ((high - low) / 2 / room) ** 2 if room > 0 else None


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
    general: OtherFiles | None = None
    """What the corpora show of other files; None where they are fewer than three."""
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
        """The verdict on these files: equal, then the host's floor, then the test, and then the margin.

        The test is of all corpora together; where a corpus by its own test says the opposite it depends on the files,
        and no direction is named.
        """
        if not self.left or not self.right:
            return DifferenceVerdict.NOT_MEASURED
        if self.caveat:
            return DifferenceVerdict.UNKNOWN
        ours, theirs = self.row.left.values, self.row.right.values
        if sorted(ours) == sorted(theirs) or all(value == ours[0][1] for _, value in (*ours, *theirs)):
            return DifferenceVerdict.EQUAL
        if self.shift is None or self.test is None:
            return DifferenceVerdict.UNKNOWN
        if self._below_the_floor:
            return DifferenceVerdict.BELOW
        if self.opposed:
            return DifferenceVerdict.UNKNOWN
        if self.test.distinguishable:
            return DifferenceVerdict.HIGHER if self.test.delta > 0 else DifferenceVerdict.LOWER
        return DifferenceVerdict.SAME if self.within_margin else DifferenceVerdict.UNKNOWN

    @property
    def caveat(self) -> str:
        """The caveat that one side alone has: what sets it apart from the other is not what it is called."""
        left, right = self.row.left.caveat, self.row.right.caveat
        return "" if left == right else "; ".join(filter(None, (left, right)))

    @property
    def opposed(self) -> bool:
        """True if corpora contradict each other: one by its own test says the opposite of another, or of all together.

        Then it depends on the files.
        """
        if not self.shift or not self.test or len(self.shift.corpora) < 2:
            return False
        delta = self.test.delta
        sides = {side for side in self.shift.sides if side}
        return bool(sides) and len(sides | {(delta > 0) - (delta < 0)} - {0}) > 1

    @property
    def on_each(self) -> bool:
        """True if each corpus by its own test says what is said of all together."""
        side = 1 if self.verdict is DifferenceVerdict.HIGHER else -1
        return bool(self.differs and self.shift and all(way == side for way in self.shift.sides))

    @property
    def for_others(self) -> DifferenceVerdict:
        """The verdict on other files, of which the corpora are a sample."""
        if self.general is None or self.caveat or self.verdict is DifferenceVerdict.BELOW:
            return DifferenceVerdict.UNKNOWN
        if self.general.shown:
            return DifferenceVerdict.HIGHER if self.general.higher else DifferenceVerdict.LOWER
        same = self._is_within_margin(self.general.interval)
        return DifferenceVerdict.SAME if same else DifferenceVerdict.UNKNOWN

    @property
    def holds(self) -> bool:
        """True if the difference holds for other files, too."""
        return self.differs and self.for_others is self.verdict

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
        return self._is_within_margin(self.shift.interval if self.shift else None)

    def _is_within_margin(self, interval: Interval | None) -> bool:
        if self.shift is None or interval is None or not self.left or not self.right:
            return False
        low, high = interval.low, interval.high
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
        return "right" if (metric.better == "higher") == (self.verdict is DifferenceVerdict.HIGHER) else "left"

    @property
    def word(self) -> str:
        """The verdict in the metric's own word: B is ``slower``, ``faster``, ``higher``, ``lower``; else as it is."""
        return self._word(self.verdict)

    def _word(self, verdict: DifferenceVerdict) -> str:
        metric = self.row.left.definition
        if verdict in (DifferenceVerdict.HIGHER, DifferenceVerdict.LOWER) and metric:
            return metric.word(verdict is DifferenceVerdict.HIGHER)
        return verdict.value

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
        """How many more seeds on each side are needed; None where it is known, or no number promises to do."""
        if self.verdict is not DifferenceVerdict.UNKNOWN or not self.shift or not self.test:
            return None
        if self.opposed or self.caveat:
            return None
        if self.too_few:
            return self._enough - self._count
        return more_seeds(self._count, self.test, self.shift, self.margin)

    @property
    def reason(self) -> str | None:
        """The reason why B is called nothing, in a sentence; None where it is called something, or there is none."""
        if self.verdict is DifferenceVerdict.NOT_MEASURED:
            sides = (("A", self.row.left), ("B", self.row.right))
            empty = (f"{letter}: {series.why_missing}" for letter, series in sides if not series.values)
            return "; ".join(empty)
        if self.verdict is not DifferenceVerdict.UNKNOWN:
            return None
        if self.caveat:
            return self.caveat
        if self.shift is None or self.test is None:
            return "no corpus is on both sides"
        if self.opposed:
            return "; ".join(filter(None, (f"it depends on the files: {self.by_corpus}", self.others)))
        if self.too_few:
            return phrasing.too_few(self._count, 0 if self._level == LEVEL else self._enough)
        p = f"p {self.test.corrected if self.test.family else self.test.p:.2g}"
        p += f" of {self.test.family} comparisons" if self.test.family > 1 else ""
        if self.more_seeds is None:
            return f"no difference found ({p})"
        return f"no difference found ({p}); {phrasing.needs_seeds(self.more_seeds)}"

    @property
    def by_corpus(self) -> str:
        """What each corpus says by its own test: ``slower on corpus 1 (1.20), faster on corpus 2 (0.97)``."""
        kinds = {1: DifferenceVerdict.HIGHER, -1: DifferenceVerdict.LOWER, 0: DifferenceVerdict.UNKNOWN}
        return phrasing.by_corpus([(self._word(kinds[side]), corpus, shown) for side, corpus, shown in self._corpora])

    @property
    def files(self) -> str:
        """Which files a verdict that differs is about: ``on both sets of files: 1.90 and 2.17 times``."""
        several = len(self._corpora) > 1 and self.ratio is not None
        return f"{self.where}: {self.times}" if several else self.where

    @property
    def where(self) -> str:
        """The same without numbers."""
        return phrasing.on_these_files(len(self._corpora), self.on_each)

    @property
    def times(self) -> str:
        """The ratio on each corpus: ``1.90 and 2.17 times``."""
        return f"{phrasing.joined([shown for _, _, shown in self._corpora])} times"

    @property
    def _corpora(self) -> Sequence[tuple[int, int, str]]:
        """Each corpus: its side by its own test, its number, its shift in digits."""
        if self.shift is None:
            return ()
        sides = zip(self.shift.sides, self.shift.corpora, strict=True)
        return [(side, shift.corpus, self._shown(shift.value, bool(side))) for side, shift in sides]

    @property
    def others(self) -> str:
        """The second sentence: what is known of other files, whatever is known of these; empty for nothing."""
        if self.general is None or self.for_others not in (DifferenceVerdict.HIGHER, DifferenceVerdict.LOWER):
            return ""
        ends = [self._shown(end) for end in (self.general.interval.low, self.general.interval.high)]
        return phrasing.on_average(self._word(self.for_others), " to ".join(ends), len(self._corpora))

    def _shown(self, value: Fraction, apart: bool = True) -> str:
        if self.shift and self.shift.is_ratio:
            return format_ratio(value, (), apart)[0]
        return format_decimal(value, 3)

    @property
    def enough(self) -> bool:
        """True if the values are enough to exclude chance, in some order of them."""
        sizes = tuple(block.size for block in self.row.blocks)
        return bool(sizes) and smallest_p(sizes) <= float(self._level) * (1 + LATTICE)

    @property
    def too_few(self) -> bool:
        """True if nothing is known because the values are too few, whatever they are."""
        if self.verdict is not DifferenceVerdict.UNKNOWN or not self.shift:
            return False
        if self.opposed or self.caveat:
            return False
        return not self.enough

    @property
    def _count(self) -> int:
        """Values on the side that has fewer, over the corpora that both have."""
        blocks = self.row.blocks
        return min(sum(len(block.left) for block in blocks), sum(len(block.right) for block in blocks))

    @property
    def _enough(self) -> int:
        """Values on each side that are enough to exclude chance at all."""
        corpora = len(self.row.blocks)
        return max(self._count + 1, corpora * seeds_needed(1, corpora, self._level))

    @property
    def _level(self) -> Fraction:
        return self.test.level if self.test else LEVEL


def about_files(rows: Iterable[ComparedSeries]) -> str:
    """Say which files the verdicts of a table are about, or how many hold for others; empty where none differs."""
    differ = [row for row in rows if row.differs and row.shift]
    corpora = max((len(row.shift.corpora) for row in differ if row.shift), default=0)
    if not corpora:
        return ""
    return phrasing.about_files(corpora) or phrasing.hold(sum(row.holds for row in differ), len(differ))


def left_out(row: SeriesPair) -> Sequence[int]:
    """Return the corpora that one side alone has: their values are in no verdict."""
    sides = [{seeds.corpus for seeds, _ in side.values} for side in (row.left, row.right)]
    return sorted(sides[0] ^ sides[1])
