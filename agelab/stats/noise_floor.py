"""The floor of a difference: how far run seeds alone, or the host by chance, move two samples apart."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import comb

from agelab.stats.order_statistics import Summary

SEEDS_NEEDED = 5
"""Run seeds in each sample before anything is said of a difference: with fewer, the range of the sample covers the
median with less than 93.75 %."""


class FloorVerdict(StrEnum):
    """The verdict on a difference of medians."""

    A_HIGHER = "A higher"
    B_HIGHER = "B higher"
    BELOW = "below the floor"
    EQUAL = "equal"
    NO_FLOOR = "no floor"


@dataclass(frozen=True)
class MedianDifference:
    """The difference between two samples of one metric, A and B."""

    left: Summary
    right: Summary
    host: Fraction | None = None
    """The host's noise, where it is known: how far values spread by chance, as a share of their median."""

    @property
    def difference(self) -> Fraction:
        """Median of B - median of A."""
        return self.right.median - self.left.median

    @property
    def relative(self) -> Fraction | None:
        """The difference / the median of A, or None where that is zero."""
        return self.difference / abs(self.left.median) if self.left.median else None

    @property
    def floor(self) -> Fraction | None:
        """The largest of both spreads and the host's noise; None with fewer than SEEDS_NEEDED values.

        The host's share is taken of the larger median, so that it is the same whichever is called A, and covers any two
        that lie within what was seen: of values from ``low`` to ``high`` the share is (high - low) / median, so
        (high - low) / high or more, and no two of them differ by more than that share of the larger one.
        """
        if min(self.left.n, self.right.n) < SEEDS_NEEDED:
            return None
        return max(self.left.spread, self.right.spread, self.host_floor)

    @property
    def host_floor(self) -> Fraction:
        """The host's noise in the metric's unit; 0 where that is not known."""
        return (self.host or Fraction(0)) * max(abs(self.left.median), abs(self.right.median))

    @property
    def verdict(self) -> FloorVerdict:
        """The verdict: a difference counts only if it is greater than the floor."""
        if self.floor is None:
            return FloorVerdict.NO_FLOOR
        if not self.difference:
            return FloorVerdict.EQUAL
        if abs(self.difference) <= self.floor:
            return FloorVerdict.BELOW
        return FloorVerdict.B_HIGHER if self.difference > 0 else FloorVerdict.A_HIGHER

    @property
    def why_no_floor(self) -> str | None:
        """The words for too few seeds, or None where there is a floor."""
        return None if self.floor is not None else too_few_seeds(self.left.n, self.right.n)


def too_few_seeds(*counts: int) -> str:
    """Say why samples of so many seeds have no floor."""
    fewest = min(counts)
    return f"no floor: {fewest} {'seed' if fewest == 1 else 'seeds'}, five are needed"


def aa_coverage(seen: int, later: int) -> Fraction:
    """Return a bound of the chance that two later samples have medians no farther apart than an earlier one's ends.

    It says how likely later runs stay within what A/A has shown of the host. All are draws from one population,
    whatever it is: ``seen`` values, and twice ``later``. Medians farther apart than the largest and the smallest of the
    seen values cannot both lie between these: one of the two is above the largest or below the smallest. A median of m
    values is above the largest of N others only if at least half of the m are, h = ceil(m/2): then the h last of all
    N + m in rank order are among the m, which C(m, h) of the C(N+m, h) equally likely choices are. There are two
    medians and two ends: 1 - 4 * C(m, h) / C(N+m, h).
    """
    half = (later + 1) // 2
    return max(Fraction(0), 1 - Fraction(4 * comb(later, half), comb(seen + later, half)))
