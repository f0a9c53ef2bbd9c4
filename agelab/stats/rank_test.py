"""Test whether chance alone could have put the values of two sides in their order: a rank test, corrected.

Within each corpus by Mann and Whitney's U, summed over corpora (``rank_law``). Many comparisons: Y. Benjamini and
Y. Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57 (1995), 289-300.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from agelab.scenario.seeds import Seeds
from agelab.stats.blocks import Block
from agelab.stats.rank_law import LATTICE, Ties, least_p, smallest_p, two_sided
from agelab.stats.shift import LEVEL


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


def control_false_discoveries(found: Sequence[float]) -> list[float]:
    """Correct p values for their number, as Benjamini and Hochberg do.

    scipy.stats has the same, and takes longer to be imported than most runs of agelab take.
    """
    order = sorted(range(len(found)), key=found.__getitem__, reverse=True)
    corrected, least = [1.0] * len(found), 1.0
    for place, at in enumerate(order):
        least = min(least, found[at] * (len(found) / (len(found) - place)))
        corrected[at] = least
    return corrected


def rank_tests(
    sides: Sequence[Sequence[Block]],
    *,
    correct: bool = True,
    level: Fraction = LEVEL,
) -> list[RankTest | None]:
    """Test each pair of sides, as one family unless nothing is to be corrected; None where no corpus is common.

    A pair whose values could give no p of ``level`` in whatever order is in no family: it could never be called one
    (R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515-522; for this correction
    P. B. Gilbert, Applied Statistics 54 (2005), 143-158).
    """
    found = [_test(blocks) if blocks else None for blocks in sides]
    family = [at for at, one in enumerate(found) if one and one[2] <= float(level) * (1 + LATTICE)]
    fair = [found[at][1] for at in family]  # type: ignore[index]
    if correct and family:
        fair = control_false_discoveries(fair)
    corrected = dict(zip(family, fair, strict=True))
    count = len(family) if correct else 1
    return [
        RankTest(one[0], one[1], corrected.get(at, 1.0), count if at in corrected else 0, level)
        if one
        else None
        for at, one in enumerate(found)
    ]


def _test(blocks: Sequence[Block]) -> tuple[Fraction, float, float]:
    """Return Cliff's delta, p, and the smallest p that any order of the values could give."""
    twice = sum(map(_twice_u, blocks))
    pairs = sum(n * m for n, m in (one.size for one in blocks))
    delta = Fraction(twice, pairs) - 1
    ties = [_ties(one) for one in blocks]
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
    counts = Counter(one.corpus for one in seeds)
    return smallest_p(tuple((n, n) for n in counts.values())) <= float(LEVEL) * (1 + LATTICE)
