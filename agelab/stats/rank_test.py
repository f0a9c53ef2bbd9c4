"""Test whether chance alone could have put the values of two series in their order: a rank test, corrected.

H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the
other", Annals of Mathematical Statistics 18 (1947), 50-60. Many comparisons: Y. Benjamini and Y. Hochberg, "Controlling
the false discovery rate", Journal of the Royal Statistical Society B 57 (1995), 289-300. Both are computed by scipy,
but for ties.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from agelab.stats.noise_floor import SEEDS_NEEDED
from agelab.stats.series import SeriesPair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = Fraction(5, 100)
"""The largest share, on average, of chance among the differences that are called such."""
COUNTED = 60
"""Values of both series up to which p is exact where some are tied, too."""


@dataclass(frozen=True)
class Test:
    """The rank test of the values of B among those of A."""

    delta: Fraction
    """Cliff's delta: the share of pairs in which B's is the higher value, less that in which A's is; 2U / (nm) - 1.
    1: every value of B is above every one of A; 0: they mix. N. Cliff, "Dominance statistics", Psychological Bulletin
    114 (1993), 494-509."""
    p: float
    """Mann-Whitney's, two-sided: the chance of an order at least as one-sided if both are alike."""
    corrected: float
    """p corrected for all comparisons of its family, after Benjamini and Hochberg; 1 outside of a family."""
    family: int
    """Comparisons that it was corrected for, itself among them; 0 for what is in no family."""


def smallest_p(n: int, m: int) -> Fraction:
    """Return the smallest p that n and m values can give: all of one side above all of the other."""
    return Fraction(2, comb(n + m, n))


def seeds_needed(family: int) -> int:
    """Return the values on each side that tell a single difference among so many comparisons from chance."""
    n = 1
    while smallest_p(n, n) * family > LEVEL:
        n += 1
    return n


def rank_tests(rows: Sequence[SeriesPair]) -> list[Test | None]:
    """Run the rank tests of one family of comparisons; None for a row in which a side has no value.

    Exact, where no values are tied by scipy.stats.mannwhitneyu; with ties among more than COUNTED values by its normal
    approximation (of seven and seven with many ties it would give a p of two fifths of the true one). A row without a
    floor is in no family, and neither is one all of whose values are the same: it could never be called a difference
    (R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515-522; for this correction
    P. B. Gilbert, Applied Statistics 54 (2005), 143-158).
    """
    from scipy.stats import false_discovery_control

    known = [at for at, row in enumerate(rows) if row.left.values and row.right.values]
    found = dict(zip(known, _mann_whitney([rows[at] for at in known]), strict=True))
    family = [at for at in known if _may_differ(rows[at])]
    fair = false_discovery_control([found[at][1] for at in family], method="bh") if family else []
    corrected = dict(zip(family, map(float, fair), strict=True))
    return [
        Test(
            2 * Fraction(found[at][0]) / (len(row.left.values) * len(row.right.values)) - 1,
            found[at][1],
            corrected.get(at, 1.0),
            len(family) if at in corrected else 0,
        )
        if at in found
        else None
        for at, row in enumerate(rows)
    ]


def _may_differ(row: SeriesPair) -> bool:
    both = [[value for _, value in side.values] for side in (row.left, row.right)]
    return min(map(len, both)) >= SEEDS_NEEDED and len({*both[0], *both[1]}) > 1


def _mann_whitney(rows: Sequence[SeriesPair]) -> list[tuple[float, float]]:
    """Return U of B, and p, for each row. Only the order counts, so each order is computed once."""
    import numpy as np
    from scipy.stats import mannwhitneyu, rankdata

    found: list[tuple[float, float]] = [(0.0, 1.0)] * len(rows)
    sizes: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        sizes.setdefault((len(row.left.values), len(row.right.values)), []).append(at)
    for (n, m), members in sizes.items():
        both = [
            [float(v) for side in (rows[at].left, rows[at].right) for _, v in side.values] for at in members
        ]
        ranks = rankdata(both, axis=1)
        ordered = np.concatenate([np.sort(ranks[:, :n], axis=1), np.sort(ranks[:, n:], axis=1)], axis=1)
        orders, which = np.unique(ordered, axis=0, return_inverse=True)
        a, b = orders[:, :n], orders[:, n:]
        tied = (np.diff(np.sort(orders, axis=1), axis=1) == 0).any(axis=1)
        u, p = b.sum(axis=1) - m * (m + 1) / 2, np.ones(len(orders))
        if (~tied).any():
            p[~tied] = mannwhitneyu(b[~tied], a[~tied], axis=1, method="exact").pvalue
        if n + m <= COUNTED:
            p[tied] = [_with_ties(order, m) for order in orders[tied]]
        elif tied.any():
            p[tied] = np.nan_to_num(mannwhitneyu(b[tied], a[tied], axis=1).pvalue, nan=1.0)
        for at, order in zip(members, which.ravel(), strict=True):
            found[at] = (float(u[order]), float(p[order]))
    return found


def _with_ties(ranks: "NDArray[np.float64]", m: int) -> float:
    """Return twice the share of all choices of m ranks whose sum is no nearer to the middle than that of the last m.

    The choices are counted by their size and by twice their sum, which is whole where ranks are shared: each rank
    is taken or not.
    """
    import numpy as np

    twice = np.rint(2 * ranks).astype(int)
    ways = np.zeros((m + 1, twice.sum() + 1))
    ways[0, 0] = 1
    for rank in twice:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    at, law = twice[-m:].sum(), ways[m] / ways[m].sum()
    return min(1.0, 2 * float(min(law[: at + 1].sum(), law[at:].sum())))
