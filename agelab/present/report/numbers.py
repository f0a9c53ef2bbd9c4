"""Format numbers for the page, with the digits that their spread allows."""

from fractions import Fraction

from agelab.present.report.blocks import TableCell
from agelab.stats.formatting import decimals_for_spread, format_decimal, format_median, unit_scale
from agelab.stats.series import Series, Summary
from agelab.stats.shift import Interval

MAX_DECIMALS = 3
"""Decimals of a value without a spread, in tables with many."""


def text(summary: Summary, unit: str = "1", most: int = MAX_DECIMALS) -> str:
    """Format the median in the unit of tables."""
    return format_median(summary, unit, most)


def with_spread(summary: Summary, unit: str = "1", most: int = MAX_DECIMALS) -> str:
    """Format the median, with the spread in brackets where there are several values."""
    if summary.n < 2:
        return text(summary, unit, most)
    as_shown = unit_scale(unit)
    median, spread = summary.median / as_shown.divisor, summary.spread / as_shown.divisor
    places = min(most + 1, decimals_for_spread(most, spread, median))
    return f"{format_decimal(median, places)} ({format_decimal(spread, places)})"


def unit_name(unit: str) -> str:
    """Return the unit of tables; empty for a pure number."""
    name = unit_scale(unit).name
    return "" if name == "1" else name


def median_cell(series: Series | None, most: int = MAX_DECIMALS) -> TableCell:
    """Format a table cell: a dash without such a series, a question mark if it could not be measured."""
    if series is None:
        return TableCell("–")
    if series.summary is None:
        return TableCell("?")
    return TableCell(with_spread(series.summary, series.unit, most), float(series.summary.median))


def number_cell(value: Fraction | float | None, places: int, missing: str = "–") -> TableCell:
    """Format a number for a table, or what stands there where it is missing."""
    return TableCell(missing) if value is None else TableCell(number(value, places), float(value))


def interval_cell(interval: Interval | None, places: int) -> TableCell:
    """Format both ends of an interval."""
    if interval is None:
        return TableCell("–")
    return TableCell(f"{number(interval.low, places)} to {number(interval.high, places)}", float(interval.low))


def number(value: Fraction | float, places: int = 2) -> str:
    """Format a number for a sentence."""
    return format_decimal(Fraction(value), places)


def percent(share: Fraction) -> str:
    """Format a share for a sentence."""
    return f"{format_decimal(100 * share, 2 if Fraction(99, 100) < share < 1 else 1)} %"
