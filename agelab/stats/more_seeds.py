"""How many more seeds would distinguish two sides, or show that they are the same, if the spread stays what it is."""

from fractions import Fraction
from math import ceil, log
from statistics import NormalDist

from agelab.stats.rank_test import RankTest
from agelab.stats.shift import Shift

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
    wanted = [n for n in (_to_differ(test), _to_be_the_same(count, shift, margin)) if n is not None]
    return max(1, ceil(min(wanted)) - count) if wanted else None


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
