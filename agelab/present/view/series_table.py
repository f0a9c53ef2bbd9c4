"""Medians, intervals and spreads of ``agelab calibrate`` as a table and as JSON; ratio_table shares the parts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeVar

from rich.text import Text

from agelab.analysis.calibration import AA_SEEDS
from agelab.present.view.terminal import Head, Row, open_console, print_table
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import seeds_key
from agelab.stats.formatting import (
    decimals_for_spread,
    format_decimal,
    format_median,
    json_number,
    unit_scale,
)
from agelab.stats.series import Series, Summary

Item = TypeVar("Item")

HEADLINES = (
    "elapsed",
    "throughput_ratio",
    "slowdown",
    "layout_score",
    "dynamic_layout_score",
    "locality_score",
    "extents",
    "fragmented_files",
    "free_extents",
    "free_usable_1mib",
    "space_used",
)
"""Metrics to show in a table of statistics, in this order; programs and ``--all`` get every metric."""


def print_series(found: Sequence[Series], everything: bool) -> None:
    """Print the median, its interval and the spread of each step of each metric of one group of cells."""
    lines = by_metric(
        (metric, [step, *_series_cells(one)])
        for metric, step, one in in_order(found, lambda one: one, everything)
    )
    columns = heads("  step", "median", "from", "to", "spread", "spread %", last="")
    print_table(open_console(), columns, lines, names_above=True)


def metrics_in_order(measured: Iterable[str], everything: bool) -> list[str]:
    """Return the headline metrics that were measured, and those of scenario and programs; ``everything`` is all."""
    every = dict.fromkeys(measured)
    headlines = [name for name in HEADLINES if name in every]
    headlines += [name for name in every if name not in METRICS]
    return list(dict.fromkeys([*headlines, *every])) if everything else headlines


def in_order(
    found: Sequence[Item], series: Callable[[Item], Series], everything: bool
) -> Iterator[tuple[str, str, Item]]:
    """Yield the items to show by metric and step: the metric with its unit, the step's name, the item.

    Without ``everything`` the headline metrics alone.
    """
    for metric in metrics_in_order((series(item).metric for item in found), everything):
        by_step: dict[str, dict[int, Item]] = {}
        for item in found:
            if series(item).metric == metric:
                by_step.setdefault(series(item).step, {})[series(item).repetition] = item
        for repetitions in by_step.values():
            for _, item in sorted(repetitions.items(), key=lambda one: one[0]):
                unit = unit_scale(series(item).unit).name
                yield f"{metric}, {unit}".removesuffix(", 1"), f"  {series(item).title}", item


def _series_cells(one: Series) -> list[str]:
    summary = one.summary
    if summary is None:
        return ["?", "", "", "", "", f"not measured: {one.missing[0][1]}" if one.missing else "not measured"]
    unit = unit_scale(one.unit)
    figures = (summary.median, summary.interval.low, summary.interval.high, summary.spread)
    *others, spread = (figure / unit.divisor for figure in figures)
    places = decimals_for_spread(unit.decimals, spread, *others)
    share = summary.relative_spread
    return [
        *(format_decimal(other, places) for other in (*others, spread)),
        "-" if share is None else f"{float(100 * share):.2f}",
        f"{summary.n} seed{'s' * (summary.n > 1)}" if summary.n < AA_SEEDS else "",
    ]


def median_of(one: Series) -> str:
    """Format the median; a question mark where there is none."""
    return format_median(one.summary, one.unit) if one.summary else "?"


def percent(share: Fraction) -> str:
    """Format a share: 93.75 %."""
    text = f"{float(100 * share):.2f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def by_metric(rows: Iterable[tuple[str, Sequence[str]]]) -> list[Row]:
    """Put a line with the metric's name before the rows of each metric."""
    lines: list[Row] = []
    for metric, those in groupby(rows, lambda row: row[0]):
        lines += [Text(f" {metric}", "bold"), *(cells for _, cells in those)]
    return lines


def heads(first: str, *others: str, last: str) -> list[Head]:
    """Make columns of figures between one of names and one of words."""
    return [(first, "left"), *((name, "right") for name in others), (last, "left")]


def summary_json(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "n": summary.n,
        "median": json_number(summary.median),
        "low": json_number(summary.interval.low),
        "high": json_number(summary.interval.high),
        "coverage": json_number(summary.interval.coverage),
        "spread": json_number(summary.spread),
    }


def series_json(one: Series) -> dict[str, Any]:
    """Return a series as exact numbers in the metric's own unit."""
    summary = one.summary
    relative = summary.relative_spread if summary else None
    return {
        **place_json(one),
        "values": {seeds_key(at): json_number(value) for at, value in one.values},
        "not_measured": {seeds_key(at): why for at, why in one.missing},
        "summary": summary_json(summary),
        "spread_relative": None if relative is None else json_number(relative),
    }


def place_json(one: Series) -> dict[str, Any]:
    return {"step": one.step, "repetition": one.repetition, "metric": one.metric, "unit": one.unit}
