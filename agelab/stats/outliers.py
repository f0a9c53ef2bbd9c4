"""Values that lie far from the others of their series: named, and never dropped."""

from fractions import Fraction
from functools import cache
from math import sqrt

from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series

LEAST = 5
"""Values of a series in which one can be named at all."""
LEVEL = 0.05
"""The share of series of normal values in which one is named although all were drawn alike."""


@cache
def grubbs_limit(n: int) -> float:
    """Return the standard deviations from the mean beyond which one of n values is named.

    (n-1)/sqrt(n) * sqrt(t^2 / (n-2 + t^2)) with t the upper LEVEL/(2n) point of Student's distribution with n-2 degrees
    of freedom: of five values 1.715, of nine 2.215. F. E. Grubbs, "Procedures for detecting outlying observations in
    samples", Technometrics 11 (1969), 1-21.
    """
    from scipy.stats import t

    squared = float(t.isf(LEVEL / (2 * n), n - 2)) ** 2
    return (n - 1) / sqrt(n) * sqrt(squared / (n - 2 + squared))


def outliers(one: Series) -> tuple[tuple[Seeds, Fraction], ...]:
    """Return seeds and value of each outlier among its corpus, by Grubbs' test repeated while five are left.

    It is made for few values: three standard deviations see nothing in five (none of n is farther than (n-1)/sqrt(n)
    from the mean, of five 1.79), Tukey's fences stand on quartiles, which of five are values, and a limit for the
    median absolute deviation (3.5, Iglewicz and Hoaglin 1993) names one in each fifth series of five normal values.
    """
    by_corpus: dict[int, list[tuple[Seeds, Fraction]]] = {}
    for seeds, value in one.values:
        by_corpus.setdefault(seeds.corpus, []).append((seeds, value))
    return tuple(found for values in by_corpus.values() for found in _of_one_corpus(values))


def _of_one_corpus(left: list[tuple[Seeds, Fraction]]) -> list[tuple[Seeds, Fraction]]:
    named: list[tuple[Seeds, Fraction]] = []
    while len(left) >= LEAST:
        middle = sum((value for _, value in left), Fraction()) / len(left)
        squares = sum(((value - middle) ** 2 for _, value in left), Fraction()) / (len(left) - 1)
        far = max(left, key=lambda found: abs(found[1] - middle))
        if not squares or float((far[1] - middle) ** 2 / squares) <= grubbs_limit(len(left)) ** 2:
            break
        named.append(far)
        left.remove(far)
    return named
