"""Whether chance alone could have put the values of two series in the order that they have: a rank test, corrected.

H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the
other", Annals of Mathematical Statistics 18 (1947), 50-60. Many comparisons: Y. Benjamini and Y. Hochberg, "Controlling
the false discovery rate", Journal of the Royal Statistical Society B 57 (1995), 289-300. Both are computed by scipy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from agelab.stats.series import Row

LEVEL = Fraction(5, 100)
"""Of the differences that are called such, this share at most is chance, on average."""
ORDERS = 1000
"""Orders of two series to go through one by one where values are tied: six against six and fewer."""


@dataclass(frozen=True)
class Test:
    """What the order of the values of B among those of A says."""

    delta: Fraction
    """Cliff's delta: the share of pairs in which B's is the higher value, less that in which A's is; 2U / (nm) - 1.
    1: every value of B is above every one of A; 0: they mix. N. Cliff, "Dominance statistics", Psychological Bulletin
    114 (1993), 494-509."""
    p: float
    """Mann-Whitney's, two-sided: the chance of an order at least as one-sided if both are alike."""
    corrected: float
    """The same for all comparisons of its family, after Benjamini and Hochberg."""
    family: int
    """Comparisons that it was corrected for, itself among them."""


def least(n: int, m: int) -> Fraction:
    """The smallest p that n and m values can give: all of one side above all of the other."""
    return Fraction(2, comb(n + m, n))


def enough(family: int) -> int:
    """Values on each side with which a single difference among so many comparisons can be told from chance."""
    n = 1
    while least(n, n) * family > LEVEL:
        n += 1
    return n


def tested(rows: Sequence[Row]) -> list[Test | None]:
    """One family of comparisons; None for a row of which a side has no value, and which is in no family then.

    Exact where no values are tied, and with ties where all orders can be gone through; else by the normal
    approximation with ties (scipy.stats.mannwhitneyu).
    """
    from scipy.stats import false_discovery_control

    known = [at for at, row in enumerate(rows) if row.left.values and row.right.values]
    if not known:
        return [None] * len(rows)
    found = _mann_whitney([rows[at] for at in known])
    corrected = false_discovery_control([p for _, p in found], method="bh")
    done: dict[int, Test] = {}
    for at, (u, p), fair in zip(known, found, corrected, strict=True):
        pairs = len(rows[at].left.values) * len(rows[at].right.values)
        done[at] = Test(2 * Fraction(u) / pairs - 1, p, float(fair), len(known))
    return [done.get(at) for at in range(len(rows))]


def _mann_whitney(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """U of B, and p, of each row. What counts is the order alone, so each order there is is looked at once."""
    import numpy as np
    from scipy.stats import PermutationMethod, mannwhitneyu, rankdata

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
        tied = (np.diff(np.sort(orders, axis=1), axis=1) == 0).any(axis=1)
        u, p = np.zeros(len(orders)), np.ones(len(orders))
        through = PermutationMethod(n_resamples=ORDERS) if comb(n + m, n) <= ORDERS else "asymptotic"
        for those, method in ((~tied, "exact"), (tied, through)):
            if those.any():
                a, b = orders[those, :n], orders[those, n:]
                said = mannwhitneyu(b, a, axis=1, method=method)
                u[those], p[those] = said.statistic, np.nan_to_num(said.pvalue, nan=1.0)
        for at, order in zip(members, which.ravel(), strict=True):
            found[at] = (float(u[order]), float(p[order]))
    return found
