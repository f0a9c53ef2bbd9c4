"""Coverage of the wall-clock A/A floor: how likely later runs stay within what A/A has shown."""

from fractions import Fraction
from math import comb


def coverage(seen: int, later: int) -> Fraction:
    """Return a bound of the chance that two later samples have medians no farther apart than an earlier one's ends.

    All are draws from one population, whatever it is: ``seen`` values, and twice ``later``. Medians farther apart than
    the largest and the smallest of the seen values cannot both lie between these: one of the two is above the largest
    or below the smallest. A median of m values is above the largest of N others only if at least half of the m are,
    h = ceil(m/2): then the h last of all N + m in rank order are among the m, which C(m, h) of the C(N+m, h) equally
    likely choices are. There are two medians and two ends: 1 - 4 * C(m, h) / C(N+m, h).
    """
    half = (later + 1) // 2
    return max(Fraction(0), 1 - Fraction(4 * comb(later, half), comb(seen + later, half)))
