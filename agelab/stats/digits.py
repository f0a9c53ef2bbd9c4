"""Numbers with as many digits as their spread leaves them."""

from fractions import Fraction
from math import floor, log10

SCALES = {"B": (10**6, "MB"), "B/s": (10**6, "MB/s")}
"""Unit of a metric to what a table divides it by, and the unit then."""
FIGURES = 2
"""Figures of the spread to show."""
DECIMALS = 6
"""The most decimals: samples have no more."""


def decimals(spread: Fraction) -> int | None:
    """Decimals that show FIGURES figures of that spread; None where there is none, and every digit counts."""
    if not spread:
        return None
    return min(DECIMALS, max(0, FIGURES - 1 - floor(log10(spread))))


def shown(value: Fraction, places: int | None) -> str:
    """The value with so many decimals; with None as many as it has, DECIMALS at most."""
    text = f"{float(value):z.{DECIMALS if places is None else places}f}"
    return text.rstrip("0").rstrip(".") if places is None else text


def number(value: Fraction) -> int | float:
    """The value for JSON."""
    return int(value) if value.denominator == 1 else float(value)
