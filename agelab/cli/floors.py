"""Tables and JSON of medians, intervals and floors: what ``compare`` and ``calibrate`` share."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agelab.stats.digits import decimals, number, scale, shown
from agelab.stats.floor import SEEDS_NEEDED, Verdict, false_alarms, no_floor

if TYPE_CHECKING:
    from agelab.stats.order import Summary
    from agelab.stats.series import Row, Series

Item = TypeVar("Item")


def print_rows(found: "Sequence[Row]", everything: bool) -> None:
    """Two groups of cells against each other: a line for each step, below a line for each metric."""
    lines = [
        (metric, [step, *_row_cells(row)])
        for metric, step, row in _in_order(found, lambda row: row.left, everything)
    ]
    _print_table(["  step", "median A", "median B", "B - A", "%", "floor", "verdict"], lines)
    differences = [row.difference for row in found if row.difference]
    floored = [difference for difference in differences if difference.floor is not None]
    for line in sorted({d.why_no_floor for d in differences if d.why_no_floor}):
        click.echo(f"  {line}")
    if floored:
        above = sum(d.verdict in (Verdict.A_HIGHER, Verdict.B_HIGHER) for d in floored)
        chance = max(false_alarms(d.left.n, d.right.n) for d in floored)
        shown_too = "" if everything else " (--all shows each)"
        click.echo(f"  above the floor: {above} of all {len(floored)} results{shown_too};")
        click.echo(f"  where nothing differs chance puts {percent(chance)} of them there at most, on average")


def print_series(found: "Sequence[Series]", everything: bool) -> None:
    """One group of cells: for each step of each metric the median, its interval, and the floor."""
    lines = [
        (metric, [step, *_series_cells(one)])
        for metric, step, one in _in_order(found, lambda one: one, everything)
    ]
    _print_table(["  step", "median", "from", "to", "floor", "floor %", ""], lines)


def _in_order(
    found: "Sequence[Item]", series: "Callable[[Item], Series]", everything: bool
) -> Iterator[tuple[str, str, Item]]:
    """The items to show, metric by metric and step by step: the metric with its unit, the step's name, the item.

    Without ``everything`` the headline metrics alone, and of a repeated step the first and the last repetition.
    """
    from agelab.results.compare import HEADLINES

    every = list(dict.fromkeys(series(item).metric for item in found))
    wanted = [name for name in HEADLINES if name in every]
    for metric in dict.fromkeys([*wanted, *every]) if everything else wanted:
        by_step: dict[str, dict[int, Item]] = {}
        for item in found:
            if series(item).metric == metric:
                by_step.setdefault(series(item).step, {})[series(item).repetition] = item
        for step, repetitions in by_step.items():
            last = max(repetitions)
            for turn in sorted(repetitions if everything else {min(repetitions), last}):
                unit = scale(series(repetitions[turn]).unit).name
                label = f"  {step} {turn}/{last}" if last > 1 else f"  {step}"
                yield f"{metric}, {unit}".removesuffix(", 1"), label, repetitions[turn]


def _row_cells(row: "Row") -> list[str]:
    difference = row.difference
    if difference is None:
        missing = [letter for letter, one in (("A", row.left), ("B", row.right)) if not one.values]
        return [_median(row.left), _median(row.right), "", "", "", f"{' and '.join(missing)} not measured"]
    unit = scale(row.left.unit)
    medians = [summary.median / unit.divisor for summary in (difference.left, difference.right)]
    spread = max(difference.left.spread, difference.right.spread) / unit.divisor
    places = decimals(unit.decimals, spread, *medians)
    return [
        *(shown(median, places) for median in medians),
        _signed(difference.difference / unit.divisor, places),
        _relative(difference.relative),
        "-" if difference.floor is None else shown(spread, places),
        difference.verdict.value,
    ]


def _series_cells(one: "Series") -> list[str]:
    summary = one.summary
    if summary is None:
        return ["?", "", "", "", "", f"not measured: {one.missing[0][1]}" if one.missing else "not measured"]
    unit = scale(one.unit)
    figures = (summary.median, summary.interval.low, summary.interval.high, summary.spread)
    *others, spread = (figure / unit.divisor for figure in figures)
    places = decimals(unit.decimals, spread, *others)
    enough = summary.n >= SEEDS_NEEDED
    share = summary.relative_spread
    return [
        *(shown(other, places) for other in others),
        shown(spread, places) if enough else "-",
        "-" if share is None or not enough else f"{float(100 * share):.2f}",
        "" if enough else no_floor(summary.n),
    ]


def _median(one: "Series") -> str:
    """The median by itself, or that there is none."""
    if one.summary is None:
        return "?"
    unit = scale(one.unit)
    median, spread = one.summary.median / unit.divisor, one.summary.spread / unit.divisor
    return shown(median, decimals(unit.decimals, spread, median))


def _signed(value: Fraction, places: int) -> str:
    text = shown(value, places)
    return text if text.startswith("-") or not value else f"+{text}"


def _relative(share: Fraction | None) -> str:
    """Per cent with a decimal; from ten times on without."""
    return "-" if share is None else _signed(100 * share, 1 if abs(share) < 10 else 0)


def percent(share: Fraction) -> str:
    """A share in words: 93.75 %."""
    text = f"{float(100 * share):.2f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def _print_table(head: list[str], lines: Sequence[tuple[str, list[str]]]) -> None:
    """Columns as wide as their cells, the first and the last to the left; a line of its own before each new metric."""
    rows = [head, *(cells for _, cells in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(cells: list[str]) -> str:
        middle = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)][1:-1]
        return " ".join([cells[0].ljust(widths[0]), *middle, cells[-1]]).rstrip()

    click.secho(line(head), bold=True)
    before = None
    for metric, cells in lines:
        if metric != before:
            click.secho(f" {metric}", bold=True)
        click.echo(line(cells))
        before = metric


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
