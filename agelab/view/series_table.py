"""Tables and JSON of medians, intervals and floors, as ``calibrate`` prints them; ``ratios`` shares their parts."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agelab.stats.formatting import decimals, format_decimal, json_number, scale
from agelab.stats.noise_floor import SEEDS_NEEDED, too_few_seeds
from agelab.stats.series import MEAN

if TYPE_CHECKING:
    from agelab.stats.order_statistics import Summary
    from agelab.stats.series import Series

Item = TypeVar("Item")


def print_series(found: "Sequence[Series]", everything: bool) -> None:
    """One group of cells: for each step of each metric the median, its interval, and the floor."""
    lines = [
        (metric, [step, *_series_cells(one)])
        for metric, step, one in in_order(found, lambda one: one, everything)
    ]
    print_table(["  step", "median", "from", "to", "floor", "floor %", ""], lines)


def in_order(
    found: "Sequence[Item]", series: "Callable[[Item], Series]", everything: bool
) -> Iterator[tuple[str, str, Item]]:
    """The items to show, metric by metric and step by step: the metric with its unit, the step's name, the item.

    Without ``everything`` the headline metrics alone, and of a repeated step the first and the last repetition.
    """
    from agelab.analysis.cells import HEADLINES

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
                label = f"  {step}, mean" if turn == MEAN else label
                yield f"{metric}, {unit}".removesuffix(", 1"), label, repetitions[turn]


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
        *(format_decimal(other, places) for other in others),
        format_decimal(spread, places) if enough else "-",
        "-" if share is None or not enough else f"{float(100 * share):.2f}",
        "" if enough else too_few_seeds(summary.n),
    ]


def median_of(one: "Series") -> str:
    """The median by itself, or that there is none."""
    if one.summary is None:
        return "?"
    unit = scale(one.unit)
    median, spread = one.summary.median / unit.divisor, one.summary.spread / unit.divisor
    return format_decimal(median, decimals(unit.decimals, spread, median))


def percent(share: Fraction) -> str:
    """A share in words: 93.75 %."""
    text = f"{float(100 * share):.2f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def print_table(head: list[str], lines: Sequence[tuple[str, list[str]]]) -> None:
    """Columns as wide as their cells, the first and the last to the left; before each new metric a line with its name.

    Where a line would be longer than the terminal is wide the first column has lines of its own.
    """
    rows = [head, *(cells for _, cells in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    narrow = sum(widths) + len(widths) - 1 > columns()

    def line(cells: list[str]) -> str:
        middle = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)][1:-1]
        first = f"{cells[0]}\n   " if narrow else cells[0].ljust(widths[0])
        return " ".join([first, *middle, cells[-1]]).rstrip()

    click.secho(line(head), bold=True)
    before = None
    for metric, cells in lines:
        if metric and metric != before:
            click.secho(f" {metric}", bold=True)
        click.echo(line(cells))
        before = metric


def wrapped(text: str, indent: str) -> str:
    """A sentence in lines that fit, parted between words alone: ``random-read`` is one."""
    more = f"{indent}  "
    return fill(text, columns(), initial_indent=indent, subsequent_indent=more, break_on_hyphens=False)


def columns() -> int:
    """Characters to a line: the terminal's, or 80."""
    return get_terminal_size((80, 24)).columns


def summary_json(summary: "Summary | None") -> dict[str, Any] | None:
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


def series_json(one: "Series") -> dict[str, Any]:
    """A series for programs: exact numbers in the metric's own unit."""
    summary = one.summary
    enough = summary is not None and summary.n >= SEEDS_NEEDED
    relative = summary.relative_spread if summary and enough else None
    return {
        **place_json(one),
        "values": {str(seed): json_number(value) for seed, value in one.values},
        "not_measured": {str(seed): why for seed, why in one.missing},
        "summary": summary_json(summary),
        "floor": json_number(summary.spread) if summary and enough else None,
        "floor_relative": None if relative is None else json_number(relative),
        "reason": too_few_seeds(len(one.values)) if not enough else None,
    }


def place_json(one: "Series") -> dict[str, Any]:
    return {"step": one.step, "repetition": one.repetition, "metric": one.metric, "unit": one.unit}
