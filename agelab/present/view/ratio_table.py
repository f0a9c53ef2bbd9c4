"""Ratios of ``agelab compare`` as tables and JSON: two sides, or several against the first."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeVar

from agelab.analysis.calibration import AA_SEEDS
from agelab.base.errors import name_some
from agelab.base.gathered import gathered
from agelab.present.report.blocks import Block, Column, Line, Table, Text
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import Seeds, seeds_key, seeds_text
from agelab.stats import phrasing
from agelab.stats.formatting import (
    decimals_for_spread,
    format_decimal,
    format_median,
    format_ratio,
    json_number,
    unit_scale,
)
from agelab.stats.rank_test import LEVEL, seeds_needed
from agelab.stats.series import Series, Summary
from agelab.stats.shift import Interval
from agelab.stats.spread import outliers, spread_shares
from agelab.stats.verdict import MARGIN, POWER, ComparedSeries, DifferenceVerdict, about_files, left_out

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


def series_blocks(measured: Sequence[Series], everything: bool) -> Iterator[Block]:
    """Yield the median, its interval and the spread of each step of each metric of one group of cells."""
    lines = by_metric(
        (metric, [step, *_series_cells(series)])
        for metric, step, series in in_order(measured, lambda series: series, everything)
    )
    columns = heads("  step", "median", "from", "to", "spread", "spread %", last="")
    yield Table(columns, lines, names_above=True)


def metrics_in_order(measured: Iterable[str], everything: bool) -> list[str]:
    """Return the headline metrics that were measured, and those of scenario and programs; ``everything`` is all."""
    every = dict.fromkeys(measured)
    headlines = [name for name in HEADLINES if name in every]
    headlines += [name for name in every if name not in METRICS]
    return list(dict.fromkeys([*headlines, *every])) if everything else headlines


def in_order(
    items: Sequence[Item], series: Callable[[Item], Series], everything: bool
) -> Iterator[tuple[str, str, Item]]:
    """Yield the items to show by metric and step: the metric with its unit, the step's name, the item.

    Without ``everything`` the headline metrics alone.
    """
    for metric in metrics_in_order((series(item).metric for item in items), everything):
        by_step: dict[str, dict[int, Item]] = {}
        for item in items:
            if series(item).metric == metric:
                by_step.setdefault(series(item).step, {})[series(item).repetition] = item
        for repetitions in by_step.values():
            for _, item in sorted(repetitions.items(), key=lambda entry: entry[0]):
                unit = unit_scale(series(item).unit).name
                yield f"{metric}, {unit}".removesuffix(", 1"), f"  {series(item).title}", item


def _series_cells(series: Series) -> list[str]:
    summary = series.summary
    if summary is None:
        why = f": {series.missing[0][1]}" if series.missing else ""
        return ["?", "", "", "", "", f"not measured{why}"]
    unit = unit_scale(series.unit)
    figures = (summary.median, summary.interval.low, summary.interval.high, summary.spread)
    *others, spread = (figure / unit.divisor for figure in figures)
    places = decimals_for_spread(unit.decimals, spread, *others)
    share = summary.relative_spread
    return [
        *(format_decimal(other, places) for other in (*others, spread)),
        "-" if share is None else f"{float(100 * share):.2f}",
        phrasing.several(summary.n, "seed") if summary.n < AA_SEEDS else "",
    ]


def median_of(series: Series) -> str:
    """Format the median; a question mark where there is none."""
    return format_median(series.summary, series.unit) if series.summary else "?"


def by_metric(rows: Iterable[tuple[str, Sequence[str]]]) -> list[list[str] | str]:
    """Put a line with the metric's name before the rows of each metric."""
    lines: list[list[str] | str] = []
    for metric, those in groupby(rows, lambda row: row[0]):
        lines += [f" {metric}", *([*cells] for _, cells in those)]
    return lines


def heads(first: str, *others: str, last: str) -> list[Column]:
    """Make columns of figures between one of names and one of words."""
    return [Column(first), *(Column(name, "right") for name in others), Column(last)]


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


def series_json(series: Series) -> dict[str, Any]:
    """Return a series as exact numbers in the metric's own unit."""
    summary = series.summary
    relative = summary.relative_spread if summary else None
    return {
        **place_json(series),
        "values": {seeds_key(at): json_number(value) for at, value in series.values},
        "not_measured": {seeds_key(at): why for at, why in series.missing},
        "caveat": series.caveat or None,
        "summary": summary_json(summary),
        "spread_relative": None if relative is None else json_number(relative),
    }


def place_json(series: Series) -> dict[str, Any]:
    return {"step": series.step, "repetition": series.repetition, "metric": series.metric, "unit": series.unit}


Shown = tuple[str, str, ComparedSeries]
"""A row that a table shows: its metric with the unit, its step, and the row."""

OUTLIERS = 6
"""Outliers to name below a table."""
WORDS = ("slower", "faster", "worse", "better", "higher", "lower")
"""The words for a difference, in the order of the columns."""
REASONS = 4
"""Reasons to give for rows without a verdict, or without a value."""


def notes_blocks(
    sides: Sequence[Sequence[ComparedSeries]], seen: Sequence[Sequence[Shown]], names: Sequence[str], everything: bool
) -> Iterator[Block]:
    """Yield the notes of a table.

    ``sides`` has each side's rows, ``seen`` those that the table shows, ``names`` the base's name and theirs.
    """
    every = [compared for side in sides for compared in side]
    for line in (
        *_too_few(sides, names),
        *_left_out(sides, names),
        *_depends(seen, names),
        *_not_measured(seen, names),
        *_caveats(sides, names),
        *_more_seeds(seen),
        *_outliers(seen, names),
    ):
        yield Text(f"  {line}", 4)
    tested = [compared for compared in every if compared.enough]
    if tested:
        differ = sum(compared.differs for compared in tested)
        alike = sum(compared.alike for compared in tested)
        more = "" if everything else " (--all shows each)"
        yield Line(f"  {differ} of all {len(tested)} results differ{more}: p <= {float(LEVEL)} in a rank test")
        same = f"; {alike} {'is' if alike == 1 else 'are'} the same, within {float(100 * MARGIN):g} %" if alike else ""
        yield Line(f"  corrected for the comparisons of the metric{same}")
        if about := about_files(tested):
            yield Text(f"  {about}", 4)
        if len(sides) == 1:
            of_metric = gathered((line[2].row.left.metric, line) for line in seen[0])
            yield from _short_blocks(f" in short, {names[1]} is", of_metric)
        else:
            differing = (compared.row for lines in seen for *_, compared in lines if compared.differs)
            metric = next((row.left.metric for row in differing), "")
            yield from _short_blocks(" in short", dict(zip(names[1:], seen, strict=True)), metric)


def _too_few(sides: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[str]:
    """Name the sides with too few seeds; where only some rows have too few, those rows and why."""
    few: dict[str, None] = {}
    rows: dict[tuple[str, str], list[str]] = {}
    needed: set[int] = set()
    lacking = [[compared for compared in side if compared.too_few] for side in sides]
    for compared in (compared for side in lacking for compared in side):
        needed.add(seeds_needed(1, len(compared.row.blocks)))
    for who, series in _sides(lacking, names):
        if len(series.values) < max(needed):
            has = f"{who} has {seeds_text(seeds for seeds, _ in series.values)}"
            if series.missing:
                rows.setdefault((has, _missing(series)), []).append(f"{series.step} {series.metric}")
            else:
                few[has] = None
    if few:
        yield f"not known: {', '.join(few)}: so few {phrasing.CANNOT}"
    for (has, why), steps in _first(rows):
        yield f"not known, of {name_some(steps, 1)}: {has}: so few {phrasing.CANNOT}; {why}"


def _left_out(sides: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[str]:
    """Name the corpora that one of two sides lacks: their values are in no verdict."""
    lines: dict[str, None] = {}
    for name, rows in zip(names[1:], sides, strict=True):
        both = [compared.row for compared in rows if compared.left and compared.right]
        if alone := sorted({corpus for row in both for corpus in left_out(row)}):
            corpora = f"corp{'us' if len(alone) == 1 else 'ora'} {','.join(map(str, alone))}"
            lines[f"in no ratio and no verdict: {corpora}, which {names[0]} and {name} do not both have"] = None
    yield from lines


def _depends(seen: Sequence[Sequence[Shown]], names: Sequence[str]) -> Iterator[str]:
    """Name the rows whose corpora contradict each other, and how far."""
    reasons = [
        f"{compared.row.left.step} {compared.row.left.metric}{f', {name}' if len(seen) > 1 else ''}: {compared.reason}"
        for name, lines in zip(names[1:], seen, strict=True)
        for *_, compared in lines
        if compared.verdict is DifferenceVerdict.UNKNOWN and compared.opposed
    ]
    yield from reasons[:REASONS]
    if len(reasons) > REASONS:
        yield f"{len(reasons) - REASONS} more depend on the files: --json has each"


def _more_seeds(seen: Sequence[Sequence[Shown]]) -> Iterator[str]:
    """Say what the number behind ``not known`` means."""
    enough = [compared for lines in seen for *_, compared in lines if not compared.too_few]
    if more := [compared.more_seeds for compared in enough if compared.more_seeds]:
        least = min(more)
        yield (
            f"not known, +{least}: {phrasing.needs_seeds(least)}, if the spread stays what it is, to be known with "
            f"{float(100 * POWER):.0f} %"
        )


def _not_measured(seen: Sequence[Sequence[Shown]], names: Sequence[str]) -> Iterator[str]:
    rows = gathered(
        ((who, _missing(series)), f"{series.step} {series.metric}")
        for who, series in _sides([[compared for *_, compared in lines] for lines in seen], names)
        if not series.values
    )
    for (who, why), steps in _first(rows):
        yield f"not measured: {who}, {name_some(list(dict.fromkeys(steps)), 1)}: {why}"


def _caveats(sides: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[str]:
    """Yield why values say less than their names, but for what is said of a whole side already."""
    rows: dict[tuple[str, str], list[str]] = {}
    whole: dict[str, bool] = {}
    for who, series in _sides(sides, names):
        whole[who] = whole.get(who, True) and bool(series.caveat)
        if series.caveat and series.values:
            rows.setdefault((who, series.caveat), []).append(f"{series.step} {series.metric}")
    for (who, why), steps in _first({key: steps for key, steps in rows.items() if not whole[key[0]]}):
        yield f"{who}, {name_some(list(dict.fromkeys(steps)), 2)}: {why}"


def _sides(sides: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[tuple[str, Series]]:
    """Yield both series of each row, each with the name of its side."""
    for name, rows in zip(names[1:], sides, strict=True):
        for compared in rows:
            yield names[0], compared.row.left
            yield name, compared.row.right


def _missing(series: Series) -> str:
    """Name the seeds without a value, and the first reason."""
    if not series.missing:
        return "no sample"
    _, why = series.missing[0]
    without = seeds_text(seeds for seeds, other in series.missing if other == why)
    return f"{without}: {' '.join(why.split())}"


def _first(rows: dict[tuple[str, str], list[str]]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the first reasons, then how many rows have others."""
    yield from list(rows.items())[:REASONS]
    if rest := sum(len(steps) for steps in list(rows.values())[REASONS:]):
        yield (("some", "other reasons"), [f"{rest} more rows"])


def _outliers(seen: Sequence[Sequence[Shown]], names: Sequence[str]) -> Iterator[str]:
    named: dict[tuple[str, str, Seeds, str], str] = {}
    for who, series in _sides([[compared for *_, compared in lines] for lines in seen], names):
        unit = unit_scale(series.unit)
        for seeds, value in outliers(series):
            text = f"{float(value / unit.divisor):.6g} {unit.name}".removesuffix(" 1")
            named[series.step, series.metric, seeds, who] = text
    for (step, metric, seeds, who), text in list(named.items())[:OUTLIERS]:
        yield f"outlier, counted: {who}, {seeds_text([seeds])}: {step} {metric} {text}"
    if len(named) > OUTLIERS:
        yield f"and {phrasing.several(len(named) - OUTLIERS, 'more outlier')}: --json names each"


def _short_blocks(head: str, kinds: Mapping[str, Sequence[Shown]], metric: str = "") -> Iterator[Block]:
    """Yield how many rows of each kind differ how, and the largest ratio, of all or of that metric."""
    judged = {name: [line for line in lines if line[2].enough and not line[2].caveat] for name, lines in kinds.items()}
    apart = {name: [line for line in lines if line[2].differs] for name, lines in judged.items()}
    there = {line[2].reader_word for lines in apart.values() for line in lines}
    words = [word for word in WORDS if word in there]
    rows = []
    for name, lines in ((name, lines) for name, lines in apart.items() if lines):
        counts = [sum(line[2].reader_word == word for line in lines) for word in words]
        alike = sum(line[2].alike for line in judged[name])
        fit = [line for line in lines if metric in ("", line[2].row.left.metric)]
        _, step, compared = max(fit, key=_apart, default=("", "", None))
        most = f"{step.strip()} {ratio_texts(compared)[0]}" if compared else ""
        rest = len(judged[name]) - len(lines) - alike
        rows.append([f"  {name}", *map(str, counts), str(alike), str(rest), most])
    if rows:
        last = f"most of {metric}" if metric else "most"
        columns = heads(head, *words, "the same", "not known", last=last)
        yield Table(columns, rows, names_above=True)
    if alone := [name for name, lines in judged.items() if lines and not apart[name]]:
        yield Text(f"  no difference found: {', '.join(alone)}", 4)


def _apart(line: Shown) -> float:
    value = line[2].ratio
    return float(max(value, 1 / value)) if value else 0.0


def ratio_texts(compared: ComparedSeries) -> list[str]:
    """Format the ratio and the ends of its interval; empty where there are none."""
    if compared.ratio is None:
        return ["-", "", ""]
    equal = compared.verdict is DifferenceVerdict.EQUAL
    ends = (compared.interval.low, compared.interval.high) if compared.interval and not equal else ()
    return [*format_ratio(compared.ratio, ends, compared.differs), "", ""][:3]


MARKS = {
    DifferenceVerdict.BELOW: "~",
    DifferenceVerdict.SAME: "=",
    DifferenceVerdict.EQUAL: "=",
    DifferenceVerdict.UNKNOWN: "?",
}
"""Marks of the verdicts that name no difference, where there is no room for words."""
LEGEND = "= the same, within 5 %; ? not known; ~ below the floor of the host"


def two_sides(judged: Sequence[ComparedSeries]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield metric and step of each row to show, and its cells: A, B, B/A, the interval's ends, the verdict."""
    for metric, step, compared in in_order(judged, lambda compared: compared.row.left, False):
        yield metric, step, _cells(compared)


def two_blocks(judged: Sequence[ComparedSeries], everything: bool) -> Iterator[Block]:
    """Yield two sides: a row for each step, below a line for each metric."""
    lines = list(in_order(judged, lambda compared: compared.row.left, everything))
    columns = heads("  step", "A", "B", "B/A", "from", "to", last="verdict")
    rows = by_metric((metric, [step, *_cells(compared)]) for metric, step, compared in lines)
    yield Table(columns, rows, names_above=True)
    yield from notes_blocks([judged], [lines], "AB", everything)


def several_blocks(
    sides: Sequence[Sequence[ComparedSeries]], names: Sequence[str], everything: bool
) -> Iterator[Block]:
    """Yield several sides against the first: a row for each step, a column for each side.

    ``names`` has the base's first.
    """
    tables = [list(in_order(side, lambda compared: compared.row.left, everything)) for side in sides]
    labels = list(dict.fromkeys((metric, step) for table in tables for metric, step, _ in table))
    by_label = [{(metric, step): compared for metric, step, compared in table} for table in tables]
    rows = []
    for label in labels:
        there = [side.get(label) for side in by_label]
        base = next(median_of(compared.row.left) for compared in there if compared)
        rows.append((label[0], [label[1], base, *(f" {_short(compared)}" for compared in there)]))
    columns = [Column("  step"), Column(names[0], "right")]
    columns += [Column(f" {name}") for name in names[1:]]
    yield Text(f"medians of {names[0]}, and the ratio of each other one's values to its")
    yield Table(columns, by_metric(rows), repeated=2)
    yield Line(f"  {LEGEND}")
    yield from notes_blocks(sides, tables, names, everything)


def _short(compared: ComparedSeries | None) -> str:
    if compared is None:
        return ""
    return f"{ratio_texts(compared)[0]:>6} {MARKS.get(compared.verdict, compared.reader_word)}"


def _cells(compared: ComparedSeries) -> list[str]:
    if not compared.left or not compared.right:
        sides = {"A": compared.row.left, "B": compared.row.right}
        missing = " and ".join(letter for letter, side in sides.items() if not side.values)
        return [*map(median_of, sides.values()), "", "", "", f"{missing} not measured"]
    unit = unit_scale(compared.row.left.unit)
    medians = [summary.median / unit.divisor for summary in (compared.left, compared.right)]
    spread = max(compared.left.spread, compared.right.spread) / unit.divisor
    places = decimals_for_spread(unit.decimals, spread, *medians)
    figures = [format_decimal(median, places) for median in medians]
    return [*figures, *ratio_texts(compared), _verdict(compared)]


def _verdict(compared: ComparedSeries) -> str:
    """Format the verdict; of what is not known how many more seeds are needed."""
    if compared.differs:
        return f"B {compared.reader_word}"
    if compared.verdict is not DifferenceVerdict.UNKNOWN:
        return compared.reader_word
    if compared.opposed:
        return "not known, files"
    if compared.too_few:
        return "not known, few"
    return compared.word if compared.more_seeds is None else f"not known, +{compared.more_seeds}"


def rows_json(judged: Sequence[ComparedSeries]) -> list[dict[str, Any]]:
    """Return rows as exact numbers in the metric's own unit; p as floats."""
    return [_row_json(compared) for compared in judged]


def _row_json(compared: ComparedSeries) -> dict[str, Any]:
    test, shift = compared.test, compared.shift
    apart = compared.difference
    base = compared.left.median if compared.left else None
    relative = apart / abs(base) if apart is not None and base else None
    return {
        **place_json(compared.row.left),
        "left": _side_json(compared.row.left),
        "right": _side_json(compared.row.right),
        "difference": None if apart is None else json_number(apart),
        "difference_relative": None if relative is None else json_number(relative),
        "ratio": None if compared.ratio is None else json_number(compared.ratio),
        "ratio_interval": _between(compared.interval),
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
        "host_floor": None if compared.host is None else json_number(compared.host),
        "margin": json_number(compared.margin),
        "verdict": compared.verdict.value,
        "general": general_json(compared),
        "word": compared.word,
        "better": compared.better,
        "reason": compared.reason,
        "more_seeds": compared.more_seeds,
    }


def general_json(compared: ComparedSeries) -> dict[str, Any] | None:
    """Return the verdict on other files; None where the corpora are fewer than three."""
    if (general := compared.general) is None:
        return None
    return {
        "verdict": compared.for_others.value,
        "interval": _between(general.interval),
        "p": general.p,
        "p_corrected": general.corrected,
    }


def _side_json(series: Series) -> dict[str, Any] | None:
    summary = summary_json(series.summary)
    if summary is None:
        return None
    mean = sum((value for _, value in series.values), Fraction()) / len(series.values)
    shares = spread_shares(series.values)
    return {
        **summary,
        "mean": json_number(mean),
        "outliers": {seeds_key(at): json_number(value) for at, value in outliers(series)},
        "spread_of": {name: round(share, 6) for name, share in shares.named.items()} if shares else None,
    }


def _between(interval: Interval | None) -> list[int | float] | None:
    return [json_number(interval.low), json_number(interval.high)] if interval else None
