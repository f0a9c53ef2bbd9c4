"""Tables and JSON of medians, intervals and floors: what ``compare`` and ``calibrate`` share."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agelab.stats.digits import SCALES, decimals, number, shown
from agelab.stats.floor import SEEDS_NEEDED, Verdict, false_alarms, no_floor

if TYPE_CHECKING:
    from rich.table import Table

    from agelab.stats.order import Summary
    from agelab.stats.series import Row, Series

Item = TypeVar("Item")


def print_rows(found: "Sequence[Row]", everything: bool) -> None:
    """Two groups of cells against each other: a line for each step, below a line for each metric."""
    table = _table("median A", "median B", "B - A", "%", "floor", "verdict")
    for metric, step, row in _in_order(found, lambda row: row.left, everything):
        if metric:
            _heading(table, metric)
        table.add_row(step, *_row_cells(row))
    _print(table)
    differences = [row.difference for row in found if row.difference]
    floored = [difference for difference in differences if difference.floor is not None]
    counts = {(d.left.n, d.right.n) for d in differences if d.floor is None}
    for line in sorted({no_floor(*pair) for pair in counts}):
        click.echo(f"  {line}")
    if floored:
        above = sum(d.verdict in (Verdict.A_HIGHER, Verdict.B_HIGHER) for d in floored)
        chance = max(false_alarms(d.left.n, d.right.n) for d in floored)
        shown_too = "" if everything else " (--all shows each)"
        click.echo(f"  above the floor: {above} of all {len(floored)} results{shown_too};")
        click.echo(f"  where nothing differs, chance alone puts at most {percent(chance)} of them there")


def print_series(found: "Sequence[Series]", everything: bool) -> None:
    """One group of cells: for each step of each metric the median, its interval, and the floor."""
    table = _table("median", "from", "to", "floor", "floor %", "")
    for metric, step, one in _in_order(found, lambda one: one, everything):
        if metric:
            _heading(table, metric)
        table.add_row(step, *_series_cells(one))
    _print(table)


def _in_order(
    found: "Sequence[Item]", series: "Callable[[Item], Series]", everything: bool
) -> Iterator[tuple[str | None, str, Item]]:
    """The items to show, metric by metric: the metric with its unit where one begins, the step's name, the item.

    Without ``everything`` the headline metrics alone, and of a repeated step the first and the last repetition.
    """
    from agelab.results.compare import HEADLINES

    every = list(dict.fromkeys(series(item).metric for item in found))
    wanted = [name for name in HEADLINES if name in every]
    for metric in dict.fromkeys([*wanted, *every]) if everything else wanted:
        those = [item for item in found if series(item).metric == metric]
        heading: str | None = f"{metric}, {_scale(series(those[0]))[1]}".removesuffix(", 1")
        by_step: dict[str, dict[int, Item]] = {}
        for item in those:
            by_step.setdefault(series(item).step, {})[series(item).repetition] = item
        for step, repetitions in by_step.items():
            last = max(repetitions)
            for turn in sorted(repetitions if everything else {min(repetitions), last}):
                yield heading, f"  {step} {turn}/{last}" if last > 1 else f"  {step}", repetitions[turn]
                heading = None


def _scale(series: "Series") -> tuple[int, str]:
    return SCALES.get(series.unit, (1, series.unit))


def _row_cells(row: "Row") -> list[str]:
    difference = row.difference
    if difference is None:
        missing = [letter for letter, one in (("A", row.left), ("B", row.right)) if not one.values]
        medians = [_median(one) for one in (row.left, row.right)]
        return [*medians, "", "", "", f"{' and '.join(missing)} not measured"]
    divisor, _ = _scale(row.left)
    left, right, gap = (
        value / divisor for value in (difference.left.median, difference.right.median, difference.difference)
    )
    floor = None if difference.floor is None else difference.floor / divisor
    grain = max(difference.left.spread, difference.right.spread) / divisor
    places = decimals(grain, left, right)
    return [
        shown(left, places),
        shown(right, places),
        _signed(gap, places),
        "-" if difference.relative is None else _signed(100 * difference.relative, 1),
        "-" if floor is None else shown(floor, places),
        difference.verdict.value,
    ]


def _median(one: "Series") -> str:
    """The median by itself, or that there is none."""
    if one.summary is None:
        return "?"
    divisor, _ = _scale(one)
    median = one.summary.median / divisor
    return shown(median, decimals(one.summary.spread / divisor, median))


def _series_cells(one: "Series") -> list[str]:
    summary = one.summary
    if summary is None:
        return ["?", "", "", "", "", f"not measured: {one.missing[0][1]}" if one.missing else "not measured"]
    divisor, _ = _scale(one)
    median, low, high, spread = (
        value / divisor
        for value in (summary.median, summary.interval.low, summary.interval.high, summary.spread)
    )
    places = decimals(spread, median, low, high)
    enough = summary.n >= SEEDS_NEEDED
    share = summary.relative_spread
    return [
        shown(median, places),
        shown(low, places),
        shown(high, places),
        shown(spread, places) if enough else "-",
        "-" if share is None or not enough else f"{float(100 * share):.2f}",
        "" if enough else no_floor(summary.n),
    ]


def _signed(value: Fraction, places: int) -> str:
    text = shown(value, places)
    return text if text.startswith("-") or not value else f"+{text}"


def percent(share: Fraction) -> str:
    """A share as a table says it: 93.75 %."""
    text = f"{float(100 * share):.2f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("  step", overflow="fold")
    for name in columns:
        last = name in ("verdict", "")
        table.add_column(name, justify="left" if last else "right", no_wrap=not last, overflow="fold")
    return table


def _heading(table: "Table", metric: str) -> None:
    table.add_row(f" [bold]{metric}[/bold]")


def _print(table: "Table") -> None:
    from rich.console import Console

    Console(highlight=False).print(table)


def _summary_json(summary: "Summary | None") -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "n": summary.n,
        "median": number(summary.median),
        "low": number(summary.interval.low),
        "high": number(summary.interval.high),
        "coverage": number(summary.interval.coverage),
        "spread": number(summary.spread),
    }


def series_json(one: "Series") -> dict[str, Any]:
    """A series for programs: exact numbers in the metric's own unit."""
    summary = one.summary
    enough = summary is not None and summary.n >= SEEDS_NEEDED
    relative = summary.relative_spread if summary and enough else None
    return {
        **_place_json(one),
        "values": {str(seed): number(value) for seed, value in one.values},
        "not_measured": {str(seed): why for seed, why in one.missing},
        "summary": _summary_json(summary),
        "floor": number(summary.spread) if summary and enough else None,
        "floor_relative": None if relative is None else number(relative),
        "reason": no_floor(len(one.values)) if not enough else None,
    }


def row_json(row: "Row") -> dict[str, Any]:
    """A row for programs: exact numbers in the metric's own unit."""
    difference = row.difference
    relative = difference.relative if difference else None
    return {
        **_place_json(row.left),
        "left": _summary_json(row.left.summary),
        "right": _summary_json(row.right.summary),
        "difference": number(difference.difference) if difference else None,
        "difference_relative": None if relative is None else number(relative),
        "floor": None if difference is None or difference.floor is None else number(difference.floor),
        "verdict": difference.verdict.value if difference else "not measured",
        "reason": difference.why_no_floor if difference else None,
    }


def _place_json(one: "Series") -> dict[str, Any]:
    return {"step": one.step, "repetition": one.repetition, "metric": one.metric, "unit": one.unit}
