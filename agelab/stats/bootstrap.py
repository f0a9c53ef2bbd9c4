"""Intervals for a median, a mean and a ratio of medians, from run seeds drawn again: the bootstrap.

What is drawn is a guest run, with all that it measured. So a series has one number for each run (of a step that a run
repeats their mean: ``series.by_step``), and the resamples of every series over the same runs are the same.

B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979), 1-26; percentile intervals:
B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13. What they are worth for few runs
is in docs/floor.md: measured, and less than their name says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from agelab.stats.series import Series, SeriesPair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = Fraction(95, 100)
"""The nominal coverage of each interval."""
DRAWN = 2000
"""Resamples of a mean where there are more to draw (from eight runs on); of fewer runs each one that there is."""
GENERATOR = 1
"""The seed of the generator that draws them: always the same ones."""

NEGLIGIBLE = 1e-6
"""The chance below which a pair of middle ranks is left out."""
AT_ONCE = 1 << 21
"""Numbers to hold at a time."""

Key = TypeVar("Key")
Floats: TypeAlias = "NDArray[np.float64]"
Ranks: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True)
class Interval:
    """A bootstrap interval, in the metric's unit (of a ratio without one)."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """Estimates over all run seeds from the runs of a series."""

    mean: Fraction
    median_interval: Interval | None
    """None where there is but one run."""
    mean_interval: Interval | None


@cache
def median_ranks(n: int) -> tuple[Ranks, Ranks, Floats]:
    """Return the two middle ranks (from 0; equal for an odd number) of n values drawn from n, and how likely.

    In closed form, so that a median's bootstrap needs no generator. With m = (n+1) // 2 the m-th smallest of the drawn
    is of rank i or less with chance P(Bin(n, i/n) >= m) (Efron 1979, section 3). Of an even n the middle two are of
    ranks i < j if n/2 draws end at i, and the others begin at j.
    """
    import numpy as np

    m = (n + 1) // 2

    def at_most(i: int) -> int:
        return sum(comb(n, k) * int(i**k) * int((n - i) ** (n - k)) for k in range(m, n + 1))

    def apart(i: int, j: int) -> int:
        return comb(n, m) * int(i**m - (i - 1) ** m) * int((n - j + 1) ** m - (n - j) ** m)

    found = []
    for i in range(1, n + 1):
        above = [] if n % 2 else [(i, j, apart(i, j)) for j in range(i + 1, n + 1)]
        both = at_most(i) - at_most(i - 1) - sum(ways for _, _, ways in above)
        found += [(i, i, both), *above]
    low, high, ways = zip(*(one for one in found if one[2] > NEGLIGIBLE * n**n), strict=True)
    return np.array(low) - 1, np.array(high) - 1, np.array([one / sum(ways) for one in ways])


@cache
def resamples(n: int) -> tuple[Ranks, Floats]:
    """Return the runs in each resample of n, a row each, and how likely it is: all there are, or DRAWN of them."""
    import numpy as np

    if comb(2 * n - 1, n) > DRAWN:
        drawn = np.random.default_rng(GENERATOR).integers(n, size=(DRAWN, n))
        return drawn, np.full(DRAWN, 1 / DRAWN)
    every = list(combinations_with_replacement(range(n), n))
    ways = [factorial(n) // prod(factorial(one.count(run)) for run in set(one)) for one in every]
    return np.array(every), np.array(ways) / n**n


def percentile_interval(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return, for each row (series by resamples), the two values that leave out at most half of 1 - LEVEL each."""
    import numpy as np

    order = np.argsort(values, axis=1, kind="stable")
    below = np.cumsum(weights[order], axis=1)
    tail = float((1 - LEVEL) / 2)
    low = np.argmax(below > tail, axis=1)
    high = np.argmax(below >= 1 - tail, axis=1)
    rows = np.arange(len(values))
    return values[rows, order[rows, low]], values[rows, order[rows, high]]


def medians(values: Floats) -> tuple[Floats, Floats]:
    """Return the medians of all resamples of each row (series by runs), and how likely each is."""
    import numpy as np

    low, high, weights = median_ranks(values.shape[1])
    ordered = np.sort(values, axis=1)
    return (ordered[:, low] + ordered[:, high]) / 2, weights


def means(values: Floats) -> tuple[Floats, Floats]:
    """Return the means of all resamples of each row, and how likely each is."""
    import numpy as np

    runs, weights = resamples(values.shape[1])
    total = np.zeros((len(values), len(runs)))
    for column in runs.T:  # one by one: a sum of floats depends on its order, which no library promises
        total += values[:, column]
    return total / values.shape[1], weights


def estimate_all(found: Mapping[Key, Series]) -> dict[Key, Estimate]:
    """Estimate mean and intervals of each series that has a value."""
    done: dict[Key, Estimate] = {}
    for keys, (numbers,) in _alike(
        {key: (one,) for key, one in found.items() if one.values}, AT_ONCE // DRAWN
    ):
        several = numbers.shape[1] > 1
        intervals = [_pairs(*percentile_interval(*of(numbers))) for of in (medians, means)] if several else []
        for at, key in enumerate(keys):
            ours = [value for _, value in found[key].values]
            mine = [one[at] for one in intervals] if several else [None, None]
            done[key] = Estimate(sum(ours, Fraction()) / len(ours), *mine)
    return {key: done[key] for key in found if key in done}


def ratio_intervals(rows: Sequence[SeriesPair]) -> list[Interval | None]:
    """Return each row's interval of the median of B / the median of A; runs are drawn on each side by itself.

    None where a side has fewer than two runs, or a value that is not above zero.
    """
    done: dict[int, Interval] = {}
    fit = {
        at: (row.left, row.right)
        for at, row in enumerate(rows)
        if all(len(one.values) > 1 and min(v for _, v in one.values) > 0 for one in (row.left, row.right))
    }
    most = max(
        (len(median_ranks(len(a.values))[0]) * len(median_ranks(len(b.values))[0]) for a, b in fit.values()),
        default=1,
    )
    for keys, (left, right) in _alike(fit, max(1, AT_ONCE // most)):
        (below, one), (above, other) = medians(left), medians(right)
        shares = above[:, None, :] / below[:, :, None]
        weights = (one[:, None] * other[None, :]).ravel()
        done.update(
            zip(keys, _pairs(*percentile_interval(shares.reshape(len(keys), -1), weights)), strict=True)
        )
    return [done.get(at) for at in range(len(rows))]


def _alike(found: Mapping[Key, tuple[Series, ...]], most: int) -> Iterator[tuple[list[Key], list[Floats]]]:
    """Batch series of equal length: the keys, and for each of their series an array of key by value."""
    import numpy as np

    by_size: dict[tuple[int, ...], list[Key]] = {}
    for key, several in found.items():
        by_size.setdefault(tuple(len(one.values) for one in several), []).append(key)
    for size, all_keys in by_size.items():
        for first in range(0, len(all_keys), most):
            keys = all_keys[first : first + most]
            yield (
                keys,
                [
                    np.array([[float(value) for _, value in found[key][side].values] for key in keys])
                    for side in range(len(size))
                ],
            )


def _pairs(low: Floats, high: Floats) -> list[Interval]:
    return [Interval(float(one), float(other)) for one, other in zip(low, high, strict=True)]
