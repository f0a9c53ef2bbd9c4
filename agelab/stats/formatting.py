"""Numbers with as many digits as their spread leaves them, and lists of names cut short."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log10

from agelab.stats.series import Summary

FIGURES = 2
"""Figures of the spread to show."""
MAX_DECIMALS = 9
"""Decimals of a ratio that differs from 1 by next to nothing, and of a very small value."""


@dataclass(frozen=True)
class UnitScale:
    """The way a table shows a unit: its divisor, its name, and the most decimals."""

    divisor: int
    name: str
    decimals: int


SCALES = {"B": UnitScale(10**6, "MB", 3), "B/s": UnitScale(10**6, "MB/s", 3)}
"""Units that a table scales. A sample has six decimals, a device's bytes come in 512."""


def unit_scale(unit: str) -> UnitScale:
    """Return how to show that unit."""
    return SCALES.get(unit) or UnitScale(1, unit, 6)


def decimals_for_spread(most: int, spread: Fraction, *values: Fraction) -> int:
    """Return the decimals that show FIGURES figures of a spread: ``most`` without spread, none for whole numbers."""
    if all(value.denominator == 1 for value in (spread, *values)):
        return 0
    if not spread:
        return most
    return min(most, max(0, FIGURES - 1 - floor(log10(spread))))


def format_ratio(value: Fraction, ends: Sequence[Fraction], apart: bool) -> list[str]:
    """Format a ratio and the two ends of its interval, if any, with as many digits as the interval leaves them.

    What is called different from 1 has as many as tell it from 1.
    """
    places = 3 if value < 100 else 0
    if ends:
        low, high = ends
        places = max(2, decimals_for_spread(4, high - low, value)) if high < 10 else 1 if high < 1000 else 0
    if 0 < value < 1:
        places = min(MAX_DECIMALS, max(places, FIGURES - 1 - floor(log10(value))))
    while apart and places < MAX_DECIMALS and format_decimal(value, places) == format_decimal(Fraction(1), places):
        places += 1
    return [format_decimal(number, places) for number in (value, *ends)]


def format_decimal(value: Fraction, places: int) -> str:
    """Format the value with so many decimals, and no sign where they round to zero."""
    return f"{float(value):z.{places}f}"


def format_median(summary: Summary, unit: str, most: int | None = None) -> str:
    """Format a median in the unit of tables, with as many decimals as the spread leaves it, at most ``most``.

    A value of which so few decimals show less than FIGURES figures has more.
    """
    scale = unit_scale(unit)
    median, spread = summary.median / scale.divisor, summary.spread / scale.divisor
    most = scale.decimals if most is None else most
    if median:
        most = max(most, min(MAX_DECIMALS, FIGURES - 1 - floor(log10(abs(median)))))
    return format_decimal(median, decimals_for_spread(most, spread, median))


def json_number(value: Fraction) -> int | float:
    """Return the value for JSON."""
    return int(value) if value.denominator == 1 else float(value)


def letter(at: int) -> str:
    """Return the letters of a side by its number: A to Z for 0 to 25, then AA, AB."""
    return (letter(at // 26 - 1) if at >= 26 else "") + chr(ord("A") + at % 26)
