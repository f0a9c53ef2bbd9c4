"""Say before a run which difference so many values find: the power of the rank test, summed over blocks.

Without a difference the law of Mann and Whitney's U is exact. With one it is taken as normal, with the mean and the
variance that U has of normal values of one spread (E. L. Lehmann, "Nonparametrics: Statistical Methods Based on
Ranks", 1975, chapter 2, section 3). For many values that is a t-test of 3/pi times as many.
"""

from functools import cache
from math import inf, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = 0.05
"""The chance of a false difference, on both sides together."""
POWER = 0.8
"""The chance with which a true one is found."""
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


@cache
def critical_value(n: int, blocks: int = 1) -> int | None:
    """Return the smallest U, summed over the blocks, that is a difference at LEVEL; None where the largest is not."""
    import numpy as np

    at_least = np.cumsum(_law(n, blocks)[::-1])[::-1]
    [found] = np.nonzero(2 * at_least <= LEVEL * (1 + 1e-12))
    return int(found[0]) if found.size else None


def _law(n: int, blocks: int) -> "NDArray[np.float64]":
    """Return the chance of each U of n against n values, summed over the blocks, without a difference."""
    import numpy as np

    ways = np.zeros((n + 1, n * n + 1))
    ways[0, 0] = 1
    for place in range(2 * n):  # the values in their order: each is one of B, above so many of A, or one of A
        for taken in range(min(place, n - 1), -1, -1):
            if (below := place - taken) <= n:
                ways[taken + 1, below:] += ways[taken, : n * n + 1 - below]
    one = ways[n] / ways[n].sum()
    found: NDArray[np.float64] = one
    for _ in range(blocks - 1):
        found = np.convolve(found, one)
    return found
