"""Tables and JSON of ratios, as ``compare`` prints them: two sides, or several against the first."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from agelab.cli.floors import columns, in_order, median_of, place_json, print_table, summary_json
from agelab.stats.digits import decimals, number, scale, shown

if TYPE_CHECKING:
    from agelab.stats.bootstrap import Between, Estimate
    from agelab.stats.compared import Compared
    from agelab.stats.series import Series

MARKS = {"below the floor": "~", "equal": "=", "no floor": "?"}
"""What stands for the commonest verdicts where there is no room for words."""
BRIEF = {"below the floor": "below floor"}
OUTLIERS = 6
"""Outliers to name below a table."""


def print_two(found: "Sequence[Compared]", everything: bool) -> None:
    """Two sides: a line for each step, below a line for each metric."""
    lines = list(in_order(found, lambda one: one.row.left, everything))
    head = ["  step", "A", "B", "B/A", "from", "to", "floor", "verdict"]
    print_table(head, [(metric, [step, *_cells(one)]) for metric, step, one in lines])
    _print_notes([found], [one for _, _, one in lines], "AB", everything)


def print_several(found: "Sequence[Sequence[Compared]]", names: Sequence[str], everything: bool) -> None:
    """Several sides against the first: a line for each step, columns for each side, in parts that fit the terminal.

    ``names`` has the base's first.
    """
    tables = [list(in_order(one, lambda one: one.row.left, everything)) for one in found]
    labels = list(dict.fromkeys((metric, step) for table in tables for metric, step, _ in table))
    by_label = [{(metric, step): one for metric, step, one in table} for table in tables]
    first = [
        next(median_of(there[label].row.left) for there in by_label if label in there) for label in labels
    ]
    sides = [
        [name, *(_short(there.get(label)) for label in labels)]
        for name, there in zip(names[1:], by_label, strict=True)
    ]
    left = max(len(step) for _, step in [("", "  step"), *labels]) + max(map(len, [names[0], *first])) + 1
    parts: list[list[list[str]]] = []
    room = 0
    for side in sides:
        width = max(map(len, side)) + 2
        if not parts or width > room:
            parts.append([])
            room = columns() - left
        parts[-1].append([cell.ljust(width - 2) for cell in side])
        room -= width
    click.echo(f"medians of {names[0]}, and the ratio of each other one's to it")
    for part in parts:
        heads, *cells = zip(*part, strict=True)
        rows = [
            (metric, [step, first[at], *(f" {cell}" for cell in cells[at])])
            for at, (metric, step) in enumerate(labels)
        ]
        print_table(["  step", names[0], *(f" {head}" for head in heads)], rows)
    seen = [one for table in tables for _, _, one in table]
    click.echo("  ~ below the floor: no more than run seeds make; = equal; ? no floor")
    _print_notes(found, seen, names, everything)


def _short(one: "Compared | None") -> str:
    """Ratio and verdict."""
    return "" if one is None else f"{_ratios(one)[0]:>6} {MARKS.get(one.verdict.value, one.word)}"


def _cells(one: "Compared") -> list[str]:
    difference = one.difference
    if difference is None:
        missing = [letter for letter, side in (("A", one.row.left), ("B", one.row.right)) if not side.values]
        said = f"{' and '.join(missing)} not measured"
        return [median_of(one.row.left), median_of(one.row.right), "", "", "", "", said]
    unit = scale(one.row.left.unit)
    medians = [summary.median / unit.divisor for summary in (difference.left, difference.right)]
    spread = max(difference.left.spread, difference.right.spread) / unit.divisor
    places = decimals(unit.decimals, spread, *medians)
    share, middle = difference.floor, abs(difference.left.median)
    return [
        *(shown(median, places) for median in medians),
        *_ratios(one),
        "-" if share is None or not middle else f"{shown(100 * share / middle, 1 if share < middle else 0)}%",
        f"B {one.word}" if one.differs else BRIEF.get(one.word, one.word),
    ]


def _ratios(one: "Compared") -> list[str]:
    """The ratio and its interval, with as many digits as that leaves."""
    if one.ratio is None:
        return ["-", "", ""]
    if one.interval is None:
        return [shown(one.ratio, 3 if one.ratio < 100 else 0), "", ""]
    low, high = Fraction(one.interval.low), Fraction(one.interval.high)
    places = max(2, decimals(4, high - low)) if high < 10 else 1 if high < 1000 else 0
    return [shown(value, places) for value in (one.ratio, low, high)]


def _print_notes(
    found: "Sequence[Sequence[Compared]]", seen: "Sequence[Compared]", names: Sequence[str], everything: bool
) -> None:
    """What the words of the table mean where they are not plain, how much of all differs, and outliers."""
    from agelab.stats.compared import Verdict
    from agelab.stats.outliers import outliers
    from agelab.stats.ranks import LEVEL, enough

    every = [one for side in found for one in side]
    known = [one for one in every if one.difference]
    for line in sorted({d.why_no_floor for one in known if (d := one.difference) and d.why_no_floor}):
        click.echo(f"  {line}")
    floored = [one for one in known if one.verdict is not Verdict.NO_FLOOR]
    chance = [one for one in floored if one.verdict is Verdict.CHANCE]
    if floored:
        differ = sum(one.differs for one in floored)
        more = "" if everything else " (--all shows each)"
        click.echo(f"  {differ} of all {len(floored)} results differ{more}: above the floor, and")
        click.echo(f"  p <= {float(LEVEL)} in a rank test corrected for the comparisons of the metric")
    if chance:
        family = max(one.test.family for one in chance if one.test)
        least = min(one.test.corrected for one in chance if one.test)
        click.echo(f"  maybe chance: above the floor, but p is {least:.2g} or more ({len(chance)} of all);")
        click.echo(f"  {enough(family)} seeds on each side can tell a single one of {family} comparisons")
    named: dict[tuple[str, str, int, str], str] = {}
    shown_rows = set(map(id, seen))
    for name, side in zip(names[1:], found, strict=True):
        for one in (one for one in side if id(one) in shown_rows):
            for letter, measured in ((names[0], one.row.left), (name, one.row.right)):
                for seed, value in outliers(measured):
                    named[measured.step, measured.metric, seed, letter] = _value(measured, value)
    for (step, metric, seed, letter), text in list(named.items())[:OUTLIERS]:
        click.echo(f"  outlier, counted: {letter}, seed {seed}: {step} {metric} {text}")
    if len(named) > OUTLIERS:
        click.echo(f"  and {len(named) - OUTLIERS} more outliers: --json names each")


def _value(one: "Series", value: Fraction) -> str:
    unit = scale(one.unit)
    return f"{float(value / unit.divisor):.6g} {unit.name}".removesuffix(" 1")


def rows_json(found: "Sequence[Compared]") -> list[dict[str, Any]]:
    """Rows for programs: exact numbers in the metric's own unit, those of intervals and p as floats."""
    from agelab.stats.bootstrap import estimates

    lefts = estimates(dict(enumerate(one.row.left for one in found)))
    rights = estimates(dict(enumerate(one.row.right for one in found)))
    return [_row_json(one, lefts.get(at), rights.get(at)) for at, one in enumerate(found)]


def _row_json(one: "Compared", left: "Estimate | None", right: "Estimate | None") -> dict[str, Any]:
    difference, test = one.difference, one.test
    relative = difference.relative if difference else None
    return {
        **place_json(one.row.left),
        "left": _side_json(one.row.left, left),
        "right": _side_json(one.row.right, right),
        "difference": number(difference.difference) if difference else None,
        "difference_relative": None if relative is None else number(relative),
        "ratio": None if one.ratio is None else number(one.ratio),
        "ratio_interval": _between(one.interval),
        "cliffs_delta": number(test.delta) if test else None,
        "p": test.p if test else None,
        "p_corrected": test.corrected if test else None,
        "comparisons": test.family if test else None,
        "floor": None if difference is None or difference.floor is None else number(difference.floor),
        "verdict": one.verdict.value,
        "word": one.word,
        "better": one.better,
        "reason": one.reason,
    }


def _side_json(one: "Series", estimate: "Estimate | None") -> dict[str, Any] | None:
    from agelab.stats.outliers import outliers

    summary = summary_json(one.summary)
    if summary is None or estimate is None:
        return None
    return {
        **summary,
        "median_interval": _between(estimate.median_interval),
        "mean": number(estimate.mean),
        "mean_interval": _between(estimate.mean_interval),
        "outliers": {str(seed): number(value) for seed, value in outliers(one)},
    }


def _between(interval: "Between | None") -> list[float] | None:
    return [interval.low, interval.high] if interval else None
