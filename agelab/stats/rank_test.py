"""Test whether chance alone could have put the values of two sides in their order: a rank test, corrected.

Within each corpus by Mann and Whitney's U, summed over corpora. Many comparisons: Y. Benjamini and
Y. Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57 (1995), 289-300.

U counts the pairs (a value of A, a value of B) of a corpus in which B's is the higher one; equal ones count half. All
ways to deal a corpus' values to A and B are equally likely; corpora are independent, so their laws are convolved.
H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics 18 (1947), 50-60; over blocks: P. van Elteren, "On the
combination of independent two-sample tests of Wilcoxon", Bulletin of the International Statistical Institute 37 (1960),
351-361, here with equal weights. All laws are by twice U, which is whole with ties, too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import comb, floor, prod, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from agelab.scenario.seeds import Seeds
from agelab.stats.series import Block

if TYPE_CHECKING:
    from agelab.stats.series import Floats


LEVEL = Fraction(5, 100)
"""What an interval may leave out, and a test may find of what is not there."""
COUNTED = 60
"""Values of a block up to which its law is exact; beyond, and beyond BLOCKS blocks, the normal law serves."""
BLOCKS = 12
LATTICE = 1e-9
"""The relative error of a sum of chances that is no error: a chance of exactly 5 % is not more than 5 %."""

Size = tuple[int, int]
"""Values of A and of B in a block."""


@dataclass(frozen=True)
class Ties:
    """What the law of a block depends on: how many of its values are equal, the lowest first, and how many are B's."""

    groups: tuple[int, ...]
    right: int

    @property
    def size(self) -> Size:
        return sum(self.groups) - self.right, self.right

    @classmethod
    def none(cls, size: Size) -> "Ties":
        """Return those of a block without equal values."""
        return cls((1,) * sum(size), size[1])


def tails(blocks: Sequence[Ties], twice: int) -> tuple[float, float]:
    """Return the chance of a sum of twice U that is so low or lower, and so high or higher."""
    if not _is_counted(blocks):
        low, high = (_approximately(blocks, at) for at in (twice, 2 * _pairs(blocks) - twice))
        return low, high
    law = _law(tuple(blocks))
    return min(1.0, float(law[: twice + 1].sum())), min(1.0, float(law[twice:].sum()))


def two_sided(blocks: Sequence[Ties], twice: int) -> float:
    """Return the chance of an order at least as one-sided as this one."""
    return min(1.0, 2 * min(tails(blocks, twice)))


def least_p(blocks: Sequence[Ties]) -> float:
    """Return the smallest p that any order of these values can give."""
    if not _is_counted(blocks):
        return 0.0
    law = _law(tuple(blocks))
    possible = law.nonzero()[0]
    return min(1.0, 2 * float(min(law[possible[0]], law[possible[-1]])))


@cache
def smallest_p(sizes: tuple[Size, ...]) -> float:
    """Return the smallest p of blocks without ties: in each of them all of one side above all of the other."""
    return min(1.0, 2 / prod(comb(n + m, n) for n, m in sizes))


@cache
def critical_rank(sizes: tuple[Size, ...], level: float) -> int:
    """Return how many of the pairwise shifts, from either end, the interval of the shift leaves out; -1 if none exists.

    The largest k with P(U <= k) <= level / 2, of values without ties: a shift is in the interval unless the test
    rejects it (E. L. Lehmann, "Nonparametrics: Statistical Methods Based on Ranks", 1975, section 2.6).
    """
    blocks = [Ties.none(size) for size in sizes]
    if not _is_counted(blocks):
        middle, spread = _moments(blocks)
        return max(-1, floor(middle + spread * NormalDist().inv_cdf(level / 2) - 0.5))
    below, k = _law(tuple(blocks)).cumsum(), -1
    while below[2 * (k + 1)] <= level / 2 * (1 + LATTICE):
        k += 1
    return k


def _is_counted(blocks: Sequence[Ties]) -> bool:
    return len(blocks) <= BLOCKS and all(sum(block.groups) <= COUNTED for block in blocks)


def _pairs(blocks: Sequence[Ties]) -> int:
    return sum(n * m for n, m in (block.size for block in blocks))


@lru_cache(maxsize=4096)
def _law(blocks: tuple[Ties, ...]) -> "Floats":
    """Return the chance of each twice U, from 0 on, summed over the blocks."""
    import numpy as np

    law = np.ones(1)
    for block in blocks:
        law = np.convolve(law, _of_one(block))
    return law


@lru_cache(maxsize=4096)
def _of_one(block: Ties) -> "Floats":
    """Count the choices of B's values by twice the sum of their ranks: of each group some are taken."""
    import numpy as np

    n, m = block.size
    twice_ranks: list[int] = []
    for group in block.groups:
        twice_ranks += [2 * len(twice_ranks) + group + 1] * group
    ways = np.zeros((m + 1, sum(twice_ranks) + 1))
    ways[0, 0] = 1
    for rank in twice_ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    least = m * (m + 1)  # twice the sum of the ranks 1 to m
    return ways[m, least : least + 2 * n * m + 1] / comb(n + m, m)


def _moments(blocks: Sequence[Ties]) -> tuple[float, float]:
    """Return mean and standard deviation of the sum of U."""
    variance = 0.0
    for block in blocks:
        (n, m), of = block.size, sum(block.groups)
        ties = sum(t**3 - t for t in block.groups) / (of * (of - 1)) if of > 1 else 0
        variance += n * m / 12 * (of + 1 - ties)
    return _pairs(blocks) / 2, sqrt(variance)


def _approximately(blocks: Sequence[Ties], twice: int) -> float:
    """Return the chance of a sum of twice U that is so low or lower, by the normal law, continuous by half a pair."""
    middle, spread = _moments(blocks)
    return NormalDist().cdf((twice / 2 + 0.5 - middle) / spread) if spread else 1.0


@dataclass(frozen=True)
class RankTest:
    """The rank test of the values of B among those of A."""

    delta: Fraction
    """Cliff's delta: the share of pairs in which B's is the higher value, less that in which A's is; 2U / (nm) - 1.
    1: every value of B is above every one of A; 0: they mix. N. Cliff, "Dominance statistics", Psychological Bulletin
    114 (1993), 494-509. Pairs are of one corpus."""
    p: float
    """Two-sided: the chance of an order at least as one-sided if both are alike."""
    corrected: float
    """p corrected for all comparisons of its family; p itself where nothing is corrected, 1 outside of a family."""
    family: int
    """Comparisons that it was corrected for, itself among them; 0 for what is in no family."""
    level: Fraction = LEVEL
    """What it may find of what is not there."""

    @property
    def p_corrected(self) -> float | None:
        """The corrected p to show; None outside of a family, where nothing was tested."""
        return self.corrected if self.family else None

    @property
    def distinguishable(self) -> bool:
        """True if chance is excluded."""
        return self.corrected <= float(self.level) * (1 + LATTICE)


def control_false_discoveries(p_values: Sequence[float]) -> list[float]:
    """Correct p values for their number, as Benjamini and Hochberg do.

    scipy.stats has the same, and takes longer to be imported than most runs of agelab take.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    corrected, least = [1.0] * len(p_values), 1.0
    for place, at in enumerate(order):
        least = min(least, p_values[at] * (len(p_values) / (len(p_values) - place)))
        corrected[at] = least
    return corrected


def rank_tests(
    sides: Sequence[Sequence[Block]], *, correct: bool = True, level: Fraction = LEVEL
) -> list[RankTest | None]:
    """Test each pair of sides, as one family unless nothing is to be corrected; None where no corpus is common.

    A pair whose values could give no p of ``level`` in whatever order is in no family: it could never be called one
    (R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515-522; for this correction
    P. B. Gilbert, Applied Statistics 54 (2005), 143-158).
    """
    tests = [_test(blocks) if blocks else None for blocks in sides]
    family = [at for at, test in enumerate(tests) if test and test[2] <= float(level) * (1 + LATTICE)]
    fair = [tests[at][1] for at in family]  # type: ignore[index]
    if correct and family:
        fair = control_false_discoveries(fair)
    corrected = dict(zip(family, fair, strict=True))
    count = len(family) if correct else 1
    return [
        RankTest(test[0], test[1], corrected.get(at, 1.0), count if at in corrected else 0, level) if test else None
        for at, test in enumerate(tests)
    ]


def _test(blocks: Sequence[Block]) -> tuple[Fraction, float, float]:
    """Return Cliff's delta, p, and the smallest p that any order of the values could give."""
    twice = sum(map(_twice_u, blocks))
    pairs = sum(n * m for n, m in (block.size for block in blocks))
    delta = Fraction(twice, pairs) - 1
    ties = [_ties(block) for block in blocks]
    return delta, two_sided(ties, twice), least_p(ties)


def _twice_u(block: Block) -> int:
    a, b = block.floats
    return int((b[:, None] > a).sum() + (b[:, None] >= a).sum())


def _ties(block: Block) -> Ties:
    import numpy as np

    a, b = block.floats
    _, groups = np.unique(np.concatenate([a, b]), return_counts=True)
    return Ties(tuple(groups.tolist()), len(b))


def seeds_needed(family: int = 1, corpora: int = 1, level: Fraction = LEVEL) -> int:
    """Return the values on each side, of each corpus, that show a single difference among so many comparisons."""
    n = 1
    while smallest_p(((n, n),) * corpora) * family > float(level) * (1 + LATTICE):
        n += 1
    return n


def can_be_distinguishable(seeds: Iterable[Seeds]) -> bool:
    """Return True if values of these seeds could be distinguishable from as many others at all."""
    counts = Counter(seed.corpus for seed in seeds)
    return smallest_p(tuple((n, n) for n in counts.values())) <= float(LEVEL) * (1 + LATTICE)
