"""Where the level of a line of single values changes: segments by PELT, in units of the noise of run seeds.

The cost of a segment is the sum of its squared distances from its mean, over the variance of the noise; each further
segment costs ``PENALTY * log(n)``. PELT finds the cheapest segments of all, exactly: R. Killick, P. Fearnhead and
I. A. Eckley, "Optimal detection of changepoints with a linear computational cost", Journal of the American Statistical
Association 107 (2012), 1590-1598. E-divisive needs a permutation test for each point since it does not know the noise;
here a few points with more run seeds tell it.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import log, sqrt
from statistics import median

PENALTY = 2.75
"""Of 200 lines without a change at most ten have a change point then (validation/track.py)."""
AROUND, REACH = 5, 1.5
"""A value counts as at most that many standard deviations from the median of those around it: chance has outliers."""
SHORTEST = 2
"""Points of a segment at least: a single one that is off is no change."""
NORMAL = 0.6745
"""The median of the absolute value of a normal variable, in standard deviations."""


def noise(values: Sequence[float], repeats: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of chance on a line, from several run seeds at a few points.

    Where neighbours on the line are further apart than run seeds are, it is theirs: a commit may move what no seed
    does. Half of the neighbours may differ by more than chance.
    """
    degrees = sum(len(seeds) - 1 for seeds in repeats)
    squares = sum((value - sum(seeds) / len(seeds)) ** 2 for seeds in repeats for value in seeds)
    of_seeds = sqrt(squares / degrees) if degrees else 0.0
    apart = [abs(after - before) for before, after in pairwise(values)]
    return max(of_seeds, median(apart) / NORMAL / sqrt(2) if apart else 0.0)


def change_points(points: Sequence[Sequence[float]], deviation: float) -> list[int]:
    """Return the places at which segments begin after the first, of points with the values of one or more run seeds.

    ``deviation`` is the noise of a single value. Without any, each change of the value is a change point, where both
    sides have ``SHORTEST`` points. With noise a level in the middle of a line is one with three: of two, the median of
    five is not.
    """
    import numpy as np

    n, values = len(points), [value for seeds in points for value in seeds]
    if n < 2 * SHORTEST or min(values) == max(values):
        return []
    unit = deviation or (max(values) - min(values)) / n / 100
    scaled = [(np.array(seeds) - values[0]) / unit for seeds in points]
    if deviation:  # winsorized, as Huber's pseudo-values are (Robust Statistics, 1981, section 1.7)
        around = np.pad([np.median(seeds) for seeds in scaled], AROUND // 2, mode="reflect")
        middle = np.median(np.lib.stride_tricks.sliding_window_view(around, AROUND), axis=1)
        scaled = [np.clip(seeds, at - REACH, at + REACH) for seeds, at in zip(scaled, middle, strict=True)]
    each = [[len(seeds), seeds.sum(), (seeds**2).sum()] for seeds in scaled]
    counts, sums, squares = np.vstack([np.zeros(3), np.cumsum(each, axis=0)]).T
    penalty = PENALTY * log(n)
    best, begins = np.full(n + 1, np.inf), [0] * (n + 1)
    best[0] = -penalty
    starts = np.array([0])
    for end in range(SHORTEST, n + 1):
        cost = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (counts[end] - counts[starts])
        without = best[starts] + cost  # of the last segment's own penalty
        at = int(np.argmin(without))
        best[end], begins[end] = without[at] + penalty, int(starts[at])
        starts = np.append(starts[without <= best[end]], end - SHORTEST + 1)
    found, end = list[int](), n
    while (end := begins[end]) > 0:
        found.append(end)
    return found[::-1]
