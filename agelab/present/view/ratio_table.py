"""Ratios of ``agelab compare`` as tables and JSON: two sides, or several against the first."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Console

from agelab.present.view.footnotes import print_notes, ratio_texts
from agelab.present.view.series_table import by_metric, heads, in_order, median_of, place_json, summary_json
from agelab.present.view.terminal import Head, print_table
from agelab.scenario.seeds import seeds_key
from agelab.stats.formatting import decimals_for_spread, format_decimal, json_number, unit_scale
from agelab.stats.series import Series
from agelab.stats.shift import Interval
from agelab.stats.spread import SpreadShares, outliers, spread_shares
from agelab.stats.verdict import ComparedSeries, DifferenceVerdict

MARKS = {
    DifferenceVerdict.BELOW: "~",
    DifferenceVerdict.SAME: "=",
    DifferenceVerdict.EQUAL: "=",
    DifferenceVerdict.UNKNOWN: "?",
}
"""Marks of the verdicts that name no difference, where there is no room for words."""
LEGEND = "= the same, within 5 %; ? not known; ~ below the floor of the host"


def two_sides(found: Sequence[ComparedSeries]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield metric and step of each row to show, and its cells: A, B, B/A, the interval's ends, the verdict."""
    for metric, step, one in in_order(found, lambda one: one.row.left, False):
        yield metric, step, _cells(one)


def print_two(console: Console, found: Sequence[ComparedSeries], everything: bool) -> None:
    """Print two sides: a row for each step, below a line for each metric."""
    lines = list(in_order(found, lambda one: one.row.left, everything))
    columns = heads("  step", "A", "B", "B/A", "from", "to", last="verdict")
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
    console.print(f"medians of {names[0]}, and the ratio of each other one's values to its")
    print_table(console, columns, by_metric(rows), repeated=2)
    console.print(f"  {LEGEND}")
    print_notes(console, found, tables, names, everything)


def _short(one: ComparedSeries | None) -> str:
    return "" if one is None else f"{ratio_texts(one)[0]:>6} {MARKS.get(one.verdict, one.reader_word)}"


def _cells(one: ComparedSeries) -> list[str]:
    if not one.left or not one.right:
        missing = [letter for letter, side in (("A", one.row.left), ("B", one.row.right)) if not side.values]
        said = f"{' and '.join(missing)} not measured"
        return [median_of(one.row.left), median_of(one.row.right), "", "", "", said]
    unit = unit_scale(one.row.left.unit)
    medians = [summary.median / unit.divisor for summary in (one.left, one.right)]
    spread = max(one.left.spread, one.right.spread) / unit.divisor
    places = decimals_for_spread(unit.decimals, spread, *medians)
    return [*(format_decimal(median, places) for median in medians), *ratio_texts(one), _verdict(one)]


def _verdict(one: ComparedSeries) -> str:
    """Format the verdict; of what is not known how many more seeds are needed."""
    if one.differs:
        return f"B {one.reader_word}"
    if one.verdict is not DifferenceVerdict.UNKNOWN:
        return one.reader_word
    if one.opposed:
        return "not known, files"
    if one.too_few:
        return "not known, few"
    return one.word if one.more_seeds is None else f"not known, +{one.more_seeds}"


def rows_json(found: Sequence[ComparedSeries]) -> list[dict[str, Any]]:
    """Return rows as exact numbers in the metric's own unit; p as floats."""
    return [_row_json(one) for one in found]


def _row_json(one: ComparedSeries) -> dict[str, Any]:
    test, shift = one.test, one.shift
    apart = one.difference
    relative = apart / abs(one.left.median) if apart is not None and one.left and one.left.median else None
    return {
        **place_json(one.row.left),
        "left": _side_json(one.row.left),
        "right": _side_json(one.row.right),
        "difference": None if apart is None else json_number(apart),
        "difference_relative": None if relative is None else json_number(relative),
        "ratio": None if one.ratio is None else json_number(one.ratio),
        "ratio_interval": _between(one.interval),
        "shift": json_number(shift.value) if shift else None,
        "shift_interval": _between(shift.interval) if shift else None,
        "corpora": [
            {"corpus_seed": at.corpus, "shift": json_number(at.value), "interval": _between(at.interval)}
            for at in (shift.corpora if shift else ())
        ],
        "depends_on_data": bool(shift and shift.depends),
        "cliffs_delta": json_number(test.delta) if test else None,
        "p": test.p if test else None,
        "p_corrected": test.p_corrected if test else None,
        "comparisons": test.family if test else None,
        "host_floor": None if one.host is None else json_number(one.host),
        "margin": json_number(one.margin),
        "verdict": one.verdict.value,
        "general": general_json(one),
        "word": one.word,
        "better": one.better,
        "reason": one.reason,
        "more_seeds": one.more_seeds,
    }


def general_json(one: ComparedSeries) -> dict[str, Any] | None:
    """Return the verdict on other files; None where the corpora are fewer than three."""
    if (found := one.general) is None:
        return None
    return {
        "verdict": one.for_others.value,
        "interval": _between(found.interval),
        "p": found.p,
        "p_corrected": found.corrected,
    }


def _side_json(one: Series) -> dict[str, Any] | None:
    summary = summary_json(one.summary)
    if summary is None:
        return None
    mean = sum((value for _, value in one.values), Fraction()) / len(one.values)
    return {
        **summary,
        "mean": json_number(mean),
        "outliers": {seeds_key(at): json_number(value) for at, value in outliers(one)},
        "spread_of": _shares_json(spread_shares(one.values)),
    }


def _shares_json(found: SpreadShares | None) -> dict[str, float] | None:
    return {name: round(share, 6) for name, share in found.named.items()} if found else None


def _between(interval: Interval | None) -> list[int | float] | None:
    return [json_number(interval.low), json_number(interval.high)] if interval else None
