"""Say before a run which difference so many values find: the power of the rank test, summed over blocks.

Without a difference the law of Mann and Whitney's U is exact. With one it is taken as normal, with the mean and the
variance that U has of normal values of one spread (E. L. Lehmann, "Nonparametrics: Statistical Methods Based on
Ranks", 1975, chapter 2, section 3). For many values that is a t-test of 3/pi times as many.
"""

from math import inf, sqrt

from agelab.stats.rank_test import LEVEL, critical_rank
from agelab.stats.verdict import POWER

WIDEST = 60.0
"""Standard deviations beyond which nothing is looked for."""


def smallest_difference(n: int, blocks: int = 1) -> float | None:
    """Return the difference, in standard deviations, that n values a side in each block find with POWER.

    None where they find none, however large it is: even the most one-sided order may be chance.
    """
    from scipy.optimize import brentq

    if critical_value(n, blocks) is None:
        return None
    return float(brentq(lambda shift: power(shift, n, blocks) - POWER, 0, WIDEST))


def power(shift: float, n: int, blocks: int = 1) -> float:
    """Return the chance of finding a difference of so many standard deviations."""
    from scipy.special import ndtr, owens_t

    needed = critical_value(n, blocks)
    if needed is None:
        return 0.0
    half = shift / sqrt(2)
    above = float(ndtr(half))  # one of B above one of A
    both = above - 2 * float(owens_t(half, 1 / sqrt(3)))  # above two of A
    mean = blocks * n * n * above
    variance = blocks * n * n * (above * (1 - above) + 2 * (n - 1) * (both - above * above))
    apart = mean - (needed - 0.5)
    return float(ndtr(apart / sqrt(variance) if variance > 0 else inf if apart > 0 else -inf))


def critical_value(n: int, blocks: int = 1) -> int | None:
    """Return the smallest U, summed over the blocks, that is a difference; None where even the largest is not."""
    below = critical_rank(((n, n),) * blocks, float(LEVEL))
    return None if below < 0 else blocks * n * n - below
