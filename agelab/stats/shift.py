"""How far B is from A: the shift, with the interval that the rank test leaves it.

The shift is the median of the ratios b/a of all pairs of one corpus (J. L. Hodges and E. L. Lehmann, "Estimates of
location based on rank tests", Annals of Mathematical Statistics 34 (1963), 598-611); of their differences where some
value is not above zero. Its interval are two of these ratios: whatever shift the test does not reject at 5 % lies
between them. Where no one shift lies in the interval (99 %) of every corpus, each corpus has its own: the shift is the
median of theirs, and its interval reaches from the lowest end of theirs to the highest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt
from statistics import median
from typing import TYPE_CHECKING

from agelab.stats.phrasing import THREE
from agelab.stats.rank_test import LATTICE, LEVEL, control_false_discoveries, critical_rank
from agelab.stats.series import Block

if TYPE_CHECKING:
    from agelab.stats.series import Floats


CORPUS_LEVEL = Fraction(1, 100)
"""What the interval of one corpus may leave out: at 5 % each, two of many comparisons' corpora would often seem to
contradict each other by chance, and more seeds would find less."""
FEW = 10_000
"""Pairs that are all gone through."""
HALVINGS = 64
"""Halvings that leave of a range what a float tells apart."""


@dataclass(frozen=True)
class Interval:
    """Two ends; both are in it."""

    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class CorpusShift:
    """The shift on one corpus, with its interval: of several corpora that of 99 %, of a single one that of 95 %."""

    corpus: int
    value: Fraction
    interval: Interval | None

    def side(self, none: Fraction) -> int:
        """Return 1 where B is higher on this corpus by its own test, -1 where it is lower, 0 where that is not known.

        ``none`` is the shift of two sides that are alike.
        """
        if self.interval is None:
            return 0
        return (self.interval.low > none) - (self.interval.high < none)


@dataclass(frozen=True)
class Shift:
    """The shift from A to B."""

    value: Fraction
    interval: Interval | None
    """None where the values are too few for any."""
    is_ratio: bool
    """False: a difference, in the metric's unit."""
    corpora: tuple[CorpusShift, ...]
    depends: bool
    """True if the corpora differ in it: no one shift lies in the interval of every corpus."""

    @property
    def none(self) -> Fraction:
        """The shift of two sides that are alike: a ratio of one, or a difference of zero."""
        return Fraction(int(self.is_ratio))

    @property
    def sides(self) -> tuple[int, ...]:
        """The side of each corpus by its own test: 1 where B is higher, -1 where it is lower, 0 where not known."""
        return tuple(corpus.side(self.none) for corpus in self.corpora)


def shift_of(blocks: Sequence[Block], level: Fraction = LEVEL) -> Shift | None:
    """Estimate the shift from A to B, with its interval at 1 - ``level``; None where no corpus is on both sides."""
    if not blocks:
        return None
    is_ratio = all(side.min() > 0 for block in blocks for side in block.floats)
    value, interval = _estimate(blocks, is_ratio, level)
    if len(blocks) == 1:
        return Shift(value, interval, is_ratio, (CorpusShift(blocks[0].corpus, value, interval),), False)
    corpora = tuple(CorpusShift(block.corpus, *_estimate([block], is_ratio, CORPUS_LEVEL)) for block in blocks)
    known = [corpus.interval for corpus in corpora if corpus.interval]
    if known and max(interval.low for interval in known) > min(interval.high for interval in known):
        ends = Interval(min(interval.low for interval in known), max(interval.high for interval in known))
        return Shift(Fraction(median(corpus.value for corpus in corpora)), ends, is_ratio, corpora, True)
    return Shift(value, interval, is_ratio, corpora, False)


def _estimate(blocks: Sequence[Block], is_ratio: bool, level: Fraction) -> tuple[Fraction, Interval | None]:
    """Return the median of all pairs' shifts, and the interval."""
    sizes = tuple(block.size for block in blocks)
    count, k = sum(n * m for n, m in sizes), critical_rank(sizes, float(level))
    ranks = [(count - 1) // 2, count // 2, *((k, count - 1 - k) if k >= 0 else ())]
    low, high, *ends = (_of_few if count <= FEW else _of_many)(blocks, is_ratio, ranks)
    return (low + high) / 2, Interval(*ends) if ends else None


def _of_few(blocks: Sequence[Block], is_ratio: bool, ranks: Sequence[int]) -> list[Fraction]:
    """Return the pairs' shifts of these ranks, from 0: floats find the pairs; what is returned is exact."""
    import numpy as np

    table = np.concatenate([_table(block, is_ratio).ravel() for block in blocks])
    ordered = np.partition(table, ranks)
    shifts = []
    for rank in ranks:  # of equal floats the first come first
        equal = np.flatnonzero(table == ordered[rank])
        at = int(equal[rank - np.count_nonzero(table < ordered[rank])])
        for block in blocks:
            n, m = block.size
            if at < n * m:
                b, a = block.right[at // n], block.left[at % n]
                shifts.append(b / a if is_ratio else b - a)
                break
            at -= n * m
    return shifts


def _of_many(blocks: Sequence[Block], is_ratio: bool, ranks: Sequence[int]) -> list[Fraction]:
    """Return them of very many pairs, to a float's digits: halve the range by how many pairs lie below its middle."""
    import numpy as np

    sides = [(block.floats[0], np.sort(block.floats[1])) for block in blocks]

    def below(shift: float) -> int:
        return sum(int(np.searchsorted(b, a * shift if is_ratio else a + shift, side="right").sum()) for a, b in sides)

    shifts = []
    for rank in ranks:
        low, high = 0.0, 1.0
        while below(high) <= rank:
            high *= 2
        if not is_ratio:
            low = -1.0
            while below(low) > rank:
                low *= 2
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if below(middle) > rank else (middle, high)
        shifts.append(Fraction(high))
    return shifts


def _table(block: Block, is_ratio: bool) -> "Floats":
    left, right = block.floats
    return right[:, None] / left if is_ratio else right[:, None] - left


WIDEST = 700.0
"""The largest logarithm of an end of an interval."""


@dataclass(frozen=True)
class OtherFiles:
    """The shift from A to B for files of which the corpora are a sample: a t interval over the shifts of the corpora.

    Each corpus is one draw of files, so the sample is of corpora: their shifts (logarithms of ratios), as many as there
    are corpora. The interval is Student's (Biometrika 6 (1908), 1-25), the test the one that agrees with it. Run seeds
    need no term of their own: what they leave of a corpus' shift is part of how far the shifts lie apart. It is exact
    for normal shifts however few they are. A mixed model estimates the same variance from the same few corpora and has
    no exact law for few of them. From THREE on: of two the interval would be 12.7 times as wide as they are apart.
    """

    interval: Interval
    p: float
    """Two-sided: the chance of shifts so far to one side if there is none on average."""
    corrected: float
    """p corrected for all comparisons of its family; p itself where nothing is corrected."""
    higher: bool
    """True if B is higher on average."""
    level: Fraction = LEVEL

    @property
    def shown(self) -> bool:
        """True if chance in the choice of files is excluded."""
        return self.corrected <= float(self.level) * (1 + LATTICE)


def other_files(
    shifts: Sequence[Shift | None], *, correct: bool = True, level: Fraction = LEVEL
) -> list[OtherFiles | None]:
    """Return for each pair of sides what its corpora show, as one family; None where they are fewer than three."""
    tests = {at: _student(shift, level) for at, shift in enumerate(shifts) if shift and len(shift.corpora) >= THREE}
    fair = [p for _, p, _ in tests.values()]
    fair = control_false_discoveries(fair) if correct else fair
    known = {
        at: OtherFiles(interval, p, corrected, higher, level)
        for (at, (interval, p, higher)), corrected in zip(tests.items(), fair, strict=True)
    }
    return [known.get(at) for at in range(len(shifts))]


def _student(shift: Shift, level: Fraction) -> tuple[Interval, float, bool]:
    """Return the interval, p, and whether B is higher. All shifts alike: they are the interval."""
    from scipy.special import stdtr, stdtrit

    values = [log(corpus.value) if shift.is_ratio else float(corpus.value) for corpus in shift.corpora]
    count = len(values)
    mean = sum(values) / count
    error = sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
    half = float(stdtrit(count - 1, 1 - float(level) / 2)) * error
    p = 2 * float(stdtr(count - 1, -abs(mean) / error)) if error else float(not mean)
    ends = (mean - half, mean + half)
    return Interval(*(Fraction(_exp(end) if shift.is_ratio else end) for end in ends)), p, mean > 0


def _exp(value: float) -> float:
    """Return the ratio of a logarithm, within what a float can hold."""
    return exp(max(-WIDEST, min(WIDEST, value)))
