"""Ratios of ``agelab compare`` as tables and JSON: two sides, or several against the first."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from rich.console import Console

from agelab.model.seeds import seeds_key
from agelab.stats.bootstrap import Estimate, Interval, estimate_all
from agelab.stats.formatting import decimals_for_spread, format_decimal, json_number, unit_scale
from agelab.stats.noise_floor import MedianDifference
from agelab.stats.outliers import outliers
from agelab.stats.series import Series
from agelab.stats.verdict import ComparedSeries
from agelab.view.footnotes import print_notes, ratio_texts
from agelab.view.series_table import by_metric, heads, in_order, median_of, place_json, summary_json
from agelab.view.terminal import Head, print_table

MARKS = {"below the floor": "~", "equal": "=", "no floor": "?"}
"""Marks of the commonest verdicts, where there is no room for words."""
LEAST = Fraction(1, 10)
"""The smallest floor that is shown as a number, in per cent."""
BRIEF = {"below the floor": "below floor"}


def print_two(console: Console, found: Sequence[ComparedSeries], everything: bool) -> None:
    """Print two sides: a row for each step, below a line for each metric."""
    lines = list(in_order(found, lambda one: one.row.left, everything))
    columns = heads("  step", "A", "B", "B/A", "from", "to", "floor", last="verdict")
    rows = by_metric((metric, [step, *_cells(one)]) for metric, step, one in lines)
    print_table(console, columns, rows, names_above=True)
    print_notes(console, [found], [lines], "AB", everything)


def print_several(
    console: Console, found: Sequence[Sequence[ComparedSeries]], names: Sequence[str], everything: bool
) -> None:
    """Print several sides against the first: a row for each step, a column for each side.

    ``names`` has the base's first.
    """
    tables = [list(in_order(one, lambda one: one.row.left, everything)) for one in found]
    labels = list(dict.fromkeys((metric, step) for table in tables for metric, step, _ in table))
    by_label = [{(metric, step): one for metric, step, one in table} for table in tables]
    rows = []
    for label in labels:
        there = [side.get(label) for side in by_label]
        base = next(median_of(one.row.left) for one in there if one)
        rows.append((label[0], [label[1], base, *(f" {_short(one)}" for one in there)]))
    columns: list[Head] = [("  step", "left"), (names[0], "right")]
    columns += [(f" {name}", "left") for name in names[1:]]
    console.print(f"medians of {names[0]}, and the ratio of each other one's to it")
    print_table(console, columns, by_metric(rows), repeated=2)
    console.print("  ~ below the floor: no more than run seeds make; = equal; ? no floor")
    print_notes(console, found, tables, names, everything)


def _short(one: ComparedSeries | None) -> str:
    return "" if one is None else f"{ratio_texts(one)[0]:>6} {MARKS.get(one.verdict.value, one.reader_word)}"


def _cells(one: ComparedSeries) -> list[str]:
    difference = one.difference
    if difference is None:
        missing = [letter for letter, side in (("A", one.row.left), ("B", one.row.right)) if not side.values]
        said = f"{' and '.join(missing)} not measured"
        return [median_of(one.row.left), median_of(one.row.right), "", "", "", "", said]
    unit = unit_scale(one.row.left.unit)
    medians = [summary.median / unit.divisor for summary in (difference.left, difference.right)]
    spread = max(difference.left.spread, difference.right.spread) / unit.divisor
    places = decimals_for_spread(unit.decimals, spread, *medians)
    return [
        *(format_decimal(median, places) for median in medians),
        *ratio_texts(one),
        _floor(difference),
        f"B {one.reader_word}" if one.differs else BRIEF.get(one.reader_word, one.reader_word),
    ]


def _floor(difference: MedianDifference) -> str:
    """Format the floor as a share of A's median."""
    if difference.floor is None or not difference.left.median:
        return "-"
    share = 100 * difference.floor / abs(difference.left.median)
    if share < LEAST:
        return f"<{float(LEAST)}%" if share else "0%"
    return f"{format_decimal(share, 1 if share < 100 else 0)}%"


def rows_json(found: Sequence[ComparedSeries]) -> list[dict[str, Any]]:
    """Return rows as exact numbers in the metric's own unit; intervals and p as floats."""
    lefts = estimate_all(dict(enumerate(one.row.left for one in found)))
    rights = estimate_all(dict(enumerate(one.row.right for one in found)))
    return [_row_json(one, lefts.get(at), rights.get(at)) for at, one in enumerate(found)]


def _row_json(one: ComparedSeries, left: Estimate | None, right: Estimate | None) -> dict[str, Any]:
    difference, test = one.difference, one.test
    relative = difference.relative if difference else None
    return {
        **place_json(one.row.left),
        "left": _side_json(one.row.left, left),
        "right": _side_json(one.row.right, right),
        "difference": json_number(difference.difference) if difference else None,
        "difference_relative": None if relative is None else json_number(relative),
        "ratio": None if one.ratio is None else json_number(one.ratio),
        "ratio_interval": _between(one.interval),
        "cliffs_delta": json_number(test.delta) if test else None,
        "p": test.p if test else None,
        "p_corrected": test.corrected if test else None,
        "comparisons": test.family if test else None,
        "floor": None if difference is None or difference.floor is None else json_number(difference.floor),
        "verdict": one.verdict.value,
        "word": one.word,
        "better": one.better,
        "reason": one.reason,
    }


def _side_json(one: Series, estimate: Estimate | None) -> dict[str, Any] | None:
    summary = summary_json(one.summary)
    if summary is None or estimate is None:
        return None
    return {
        **summary,
        "median_interval": _between(estimate.median_interval),
        "mean": json_number(estimate.mean),
        "mean_interval": _between(estimate.mean_interval),
        "outliers": {seeds_key(at): json_number(value) for at, value in outliers(one)},
    }


def _between(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None
