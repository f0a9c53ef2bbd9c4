"""Order statistics of a sample: its median, an interval for it, its spread.

The interval is non-parametric: W. R. Thompson, "On confidence ranges for the median and other expectation
distributions for populations of unknown distribution form", Annals of Mathematical Statistics 7 (1936), 122-128;
H. A. David and H. N. Nagaraja, "Order Statistics", 3rd ed. 2003, section 7.1. All arithmetic is exact, in fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import comb

LEVEL = Fraction(15, 16)
"""The coverage an interval is to have: that of the range of five values. More values never weaken it."""


@dataclass(frozen=True)
class MedianInterval:
    """Two of the sample's own values, and the chance that such a pair holds the population's median."""

    low: Fraction
    high: Fraction
    coverage: Fraction
    """Exact for a continuous population, at least this much for any other; 0 for a sample of one."""


@dataclass(frozen=True)
class Summary:
    """A sample of one metric, in the metric's unit."""

    n: int
    median: Fraction
    interval: MedianInterval
    spread: Fraction
    """Largest less smallest."""

    @property
    def relative_spread(self) -> Fraction | None:
        """Spread / median, or None where the median is zero."""
        return self.spread / abs(self.median) if self.median else None


def exact(value: int | float) -> Fraction:
    """Return the number that the digits say: 0.1 is a tenth, as it was written, and not the float nearest to it.

    Raises ValueError for what is no finite number.
    """
    if isinstance(value, int):
        return Fraction(value)
    try:
        return Fraction(Decimal(str(value)))
    except OverflowError as error:
        raise ValueError(f"{value} is no finite number") from error


@cache
def coverage(n: int, k: int) -> Fraction:
    """Return the chance that the k-th smallest and the k-th largest of n values enclose the population's median.

    The median lies outside when fewer than k of the n fall on one side of it, and each falls there with chance 1/2:
    1 - 2 * sum(C(n, i), i < k) / 2**n.
    """
    return 1 - Fraction(2 * sum(comb(n, i) for i in range(k)), 2**n)


@cache
def interval_rank(n: int, level: Fraction = LEVEL) -> int:
    """Return the k of the narrowest symmetric interval that covers with ``level``; 1, the widest, where none does."""
    most, k, ways = (1 - level) * 2 ** (n - 1), 1, n  # ways: C(n, k)
    outside = 1  # 2**n times the chance that fewer than k values lie on one given side
    while k < (n + 1) // 2 and outside + ways <= most:
        outside, k = outside + ways, k + 1
        ways = ways * (n - k + 1) // k
    return k


def summary(values: Sequence[Fraction]) -> Summary:
    """Summarize a sample: median, interval and spread. Raises ValueError for an empty one."""
    if not values:
        raise ValueError("an empty sample has no median")
    ordered = sorted(values, key=lambda value: (float(value), value))  # floats are quick to compare
    n = len(ordered)
    k = interval_rank(n)
    return Summary(
        n=n,
        median=(ordered[(n - 1) // 2] + ordered[n // 2]) / 2,
        interval=MedianInterval(ordered[k - 1], ordered[n - k], coverage(n, k)),
        spread=ordered[-1] - ordered[0],
    )
