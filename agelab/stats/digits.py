"""Numbers with as many digits as their spread leaves them."""

from fractions import Fraction
from math import floor, log10

SCALES = {"B": (10**6, "MB"), "B/s": (10**6, "MB/s")}
"""Unit of a metric to what a table divides it by, and the unit then."""
FIGURES = 2
"""Figures of the spread to show."""
DECIMALS = 6
"""The most decimals: samples have no more."""


def decimals(spread: Fraction, *values: Fraction) -> int:
    """Decimals that show FIGURES figures of that spread; all where nothing is spread, none where all is whole."""
    if all(value.denominator == 1 for value in (spread, *values)):
        return 0
    if not spread:
        return DECIMALS
    return min(DECIMALS, max(0, FIGURES - 1 - floor(log10(spread))))


def shown(value: Fraction, places: int) -> str:
    """The value with so many decimals; what they round to zero has no sign."""
    return f"{float(value):z.{places}f}"


def number(value: Fraction) -> int | float:
    """The value for JSON."""
    return int(value) if value.denominator == 1 else float(value)
