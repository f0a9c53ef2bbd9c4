"""Build the page of results over kernels or dates: a chart and a table for each metric (docs/howto/over-time.md)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from agelab import __version__
from agelab.analysis import vega
from agelab.analysis.over_time import JoinedRuns, OverTime, Row
from agelab.evaluate.layout import svg
from agelab.present.report.blocks import (
    Answer,
    Block,
    Chart,
    Charts,
    Facts,
    Mark,
    Page,
    Part,
    Prose,
    Section,
    Table,
    TableCell,
    headings,
)
from agelab.present.report.charts import line_style
from agelab.present.report.numbers import interval_cell, number_cell, text, unit_name
from agelab.results.conditions import names
from agelab.results.measure import Measure
from agelab.stats.formatting import format_decimal, unit_scale
from agelab.stats.phrasing import capital
from agelab.stats.verdict import ComparedSeries, about_files

LABELS = 10
"""Names below the axis at most."""
HEIGHT = 230
APART = 0.12
"""How far lines stand beside each other at most, in columns, so that their intervals can be told, and"""
STEP = 0.02
"""the same as a share of the whole axis."""


class PointMark(StrEnum):
    """What the judge says of a point, seen from the one before it; each has a shape of its own."""

    FIRST = "first"
    HIGHER = "higher"
    LOWER = "lower"
    ALIKE = "alike"
    UNKNOWN = "unknown"


SHAPES = {
    PointMark.FIRST: "circle",
    PointMark.HIGHER: "triangle-up",
    PointMark.LOWER: "triangle-down",
    PointMark.ALIKE: "circle",
    PointMark.UNKNOWN: "circle",
}
SIZES = {**dict.fromkeys(PointMark, 30), PointMark.HIGHER: 130, PointMark.LOWER: 130, PointMark.UNKNOWN: 45}


@dataclass(frozen=True)
class ChartPoint:
    """A median with its interval, which a single value does not have."""

    column: int
    median: float
    low: float | None
    high: float | None
    mark: PointMark

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest that is drawn of it."""
        low, high = self.low, self.high
        return self.median if low is None else low, self.median if high is None else high


@dataclass(frozen=True)
class TimeLine:
    """The points of a subject, with the numbers of its colour and dash."""

    points: Sequence[ChartPoint]
    colour: int
    dash: int


def _draw_lines(
    lines: Sequence[TimeLine], columns: Sequence[str], axis: str, unit: str, reach: tuple[float, float]
) -> str:
    """Draw the lines over the columns, which stand in equal steps; the scale has all of ``reach``."""
    beside = min(APART, STEP * len(columns))
    rows = [
        {
            "n": str(number),
            "x": point.column + beside * _side(number, len(lines)),
            "y": point.median,
            "l": point.low,
            "h": point.high,
            "m": point.mark,
            "s": SIZES[point.mark],
        }
        for number, line in enumerate(lines)
        for point in line.points
    ]
    every = -(-len(columns) // LABELS)
    words = json.dumps([svg.plain(name) for name in columns])
    x = {
        "field": "x",
        "type": "quantitative",
        "title": axis,
        "scale": {"domain": [-0.3, len(columns) - 0.7], "nice": False},
        "axis": {
            "values": list(range(0, len(columns), every)),
            "labelExpr": f"{words}[datum.value]",
            "labelAngle": -35,
            "labelAlign": "right",
            "labelOverlap": False,
            "grid": False,
            "titlePadding": 12,
        },
    }
    y = {
        "type": "quantitative",
        "title": unit or None,
        "scale": {"zero": False, **({"domain": list(reach)} if reach[0] < reach[1] else {})},
        "axis": {"tickCount": 5},
    }
    numbers = [str(number) for number in range(len(lines))]
    which = {"field": "n", "type": "nominal", "legend": None}
    colour = {**which, "scale": {"domain": numbers, "range": [vega.colour(line.colour) for line in lines]}}
    dashes = [list(vega.DASHES[line.dash % len(vega.DASHES)]) for line in lines]
    dash = {**which, "scale": {"domain": numbers, "range": dashes}}
    marks = [*map(str, PointMark)]
    shapes = {"domain": marks, "range": [*SHAPES.values()]}
    looks = {
        "shape": {"field": "m", "type": "nominal", "legend": None, "scale": shapes},
        "size": {"field": "s", "type": "quantitative", "legend": None, "scale": None},
    }
    known = f"datum.m != '{PointMark.UNKNOWN}'"
    place = {"x": x, "y": {"field": "y", **y}, "color": colour}
    hollow = {"type": "point", "filled": True, "fill": "var(--paper)", "stroke": None, "opacity": 1}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "strokeWidth": 1.4}, "encoding": {**place, "strokeDash": dash}},
        {
            "transform": [{"filter": "isValid(datum.l)"}],
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "encoding": {"x": x, "y": {"field": "l", **y}, "y2": {"field": "h"}, "color": colour},
        },
        {
            "transform": [{"filter": known}],
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {**place, **looks},
        },
        {
            "transform": [{"filter": f"!({known})"}],
            "mark": {**hollow, "size": SIZES[PointMark.UNKNOWN]},
            "encoding": {"x": x, "y": {"field": "y", **y}},
        },
        {
            "transform": [{"filter": f"!({known})"}],
            "mark": {
                "type": "point",
                "filled": False,
                "size": SIZES[PointMark.UNKNOWN],
                "strokeWidth": 1.6,
                "opacity": 1,
            },
            "encoding": place,
        },
    ]
    return vega.page_svg({"data": {"values": rows}, "height": HEIGHT, "layer": layers})


def _side(number: int, lines: int) -> float:
    """Return where a line's points stand beside their column: from -1, left, to 1."""
    return 2 * number / (lines - 1) - 1 if lines > 1 else 0.0


MARKS = (
    "Points are medians over the seeds, thin lines the intervals that hold them. Seen from the point before it: "
    "\N{BLACK UP-POINTING TRIANGLE} \N{BLACK DOWN-POINTING TRIANGLE} a difference, a change point; "
    "\N{BLACK CIRCLE} the same within 5 %, or equal, or the first; \N{WHITE CIRCLE} not known, or below "
    "the floor of the host (docs/chance.md). The scale need not begin at 0."
)
OURS = "this store"
MOST_NAMED = 12
"""Change points to name in the answer."""


def build_page(trends: OverTime, measures: Sequence[Measure]) -> Page:
    """Build the page: a part for each scenario, in the order of the runs."""
    kinds: dict[tuple[object, ...], list[JoinedRuns]] = {}
    for joined in trends.joined:
        kinds.setdefault(joined.runs[0].conditions[0].question, []).append(joined)
    parts = tuple(
        _part(OverTime(trends.axis, tuple(those)), measures, f"part{number}")
        for number, those in enumerate(kinds.values(), 1)
    )
    title = ", ".join(dict.fromkeys(part.title for part in parts))
    return Page(f"agelab: {title} over {trends.axis}s", parts, __version__)


def _part(trends: OverTime, measures: Sequence[Measure], where: str) -> Part:
    plan = trends.joined[0].runs[0].plan
    emulated = ", EMULATED" if plan.emulated else ""
    metrics = [
        Section(f"{where}-metric{at}", measure_words(trends.joined, measure), blocks)
        for at, measure in enumerate(measures, 1)
        if (blocks := tuple(_metric(trends, measure, f"{where}-table{at}")))
    ]
    notes: list[Block] = [Facts(tuple((title, names(joined.runs)) for title, joined in _titled(trends)))]
    if apart := tuple(trends.apart):
        notes.append(Prose(apart, listed=True, title="On other lines, because something else differs"))
    if left := tuple(line for joined in trends.joined for line in joined.left_out):
        notes.append(Prose(left, listed=True, title="On no line"))
    return Part(
        where,
        f"{plan.scenario} over {trends.axis}s",
        f"scale {plan.scale}, {plan.clock} clock{emulated}",
        (_answer(trends, measures),),
        tuple(line for joined in trends.joined for line in joined.grid.host.unknown),
        (*metrics, Section(f"{where}-runs", "The runs", tuple(notes))),
    )


def _answer(trends: OverTime, measures: Sequence[Measure]) -> Answer:
    changed = change_points(trends, measures)
    more = len(changed) - MOST_NAMED
    because = (*changed[:MOST_NAMED], *([f"{more} more, in the tables below"] if more > 0 else []))
    return Answer("What changed, and where?", count_words(trends, measures), because)


def count_words(trends: OverTime, measures: Sequence[Measure]) -> str:
    """Say how many change points there are, and what is known of the other neighbours."""
    judged = [pair[-1] for joined in trends.joined for pair in _all_changes(joined, measures)]
    changed, alike = sum(change.differs for change in judged), sum(change.alike for change in judged)
    pairs = f"{len(judged)} pair{'s' * (len(judged) != 1)} of neighbours"
    points = f"{changed} change point{'s' * (changed != 1)}"
    about = about_files(judged)
    sentence = f"{points} among {pairs}; {alike} the same, {len(judged) - changed - alike} not known."
    return f"{sentence} {capital(about)}." if about else sentence


def change_points(trends: OverTime, measures: Sequence[Measure]) -> list[str]:
    """Say of each change point what changed, in one line."""
    return [
        _change_words(joined, *pair)
        for joined in trends.joined
        for pair in _all_changes(joined, measures)
        if pair[-1].differs
    ]


def _all_changes(
    joined: JoinedRuns, measures: Sequence[Measure]
) -> Iterator[tuple[Measure, Row, int, ComparedSeries]]:
    """Yield each judged pair of neighbours, metric by metric."""
    for measure in measures:
        for (row, column), change in joined.changes(measure).items():
            yield measure, row, column, change


def _change_words(joined: JoinedRuns, measure: Measure, row: Row, column: int, change: ComparedSeries) -> str:
    """Say what changed in one line."""
    heads = joined.grid.names
    before = heads[joined.before(row, column, measure)]
    whose = f"{_origin(joined)}: " if joined.runs[0].origin else ""
    times = ""
    if change.ratio is not None and change.interval is not None:
        ends = " to ".join(format_decimal(end, 3) for end in (change.interval.low, change.interval.high))
        times = f", {format_decimal(change.ratio, 3)} times ({ends})"
    what = measure_words([joined], measure)
    return f"{whose}{row[0]}: {what}: {change.reader_word} on {heads[column]} than on {before}{times}"


def measure_words(joined: Sequence[JoinedRuns], measure: Measure) -> str:
    """Name step and metric for a reader."""
    titles = (runs.grid.title(measure) for runs in joined)
    return f"{next(filter(None, titles), measure.step)}, {measure.metric.replace('_', ' ')}"


def _origin(joined: JoinedRuns) -> str:
    return f"capsules of {joined.runs[0].origin}" if joined.runs[0].origin else OURS


def _metric(trends: OverTime, measure: Measure, table: str) -> Iterator[Block]:
    """Yield the charts and the table of one metric; nothing where it was not measured."""
    subjects = dict.fromkeys(row[0] for joined in trends.joined for row in joined.grid.entries)
    colours = {name: number for number, name in enumerate(subjects)}
    drawn = [(title, joined, _lines(joined, measure, colours)) for title, joined in _titled(trends)]
    drawn = [(title, joined, lines) for title, joined, lines in drawn if lines]
    if not drawn:
        return
    ends = [
        end for *_, lines in drawn for line in lines.values() for point in line.points for end in point.ends
    ]
    charts, rows = [], []
    for title, joined, lines in drawn:
        unit = unit_name(_unit(joined, measure))
        draw = partial(
            _draw_lines, [*lines.values()], joined.grid.names, trends.axis, unit, (min(ends), max(ends))
        )
        own = [*_rows(joined, measure, title)]
        words = "; ".join(
            f"{cells[1].text} {cells[2].text} {cells[3].text}: {cells[6].text}" for cells in own
        )
        charts.append(Chart(title, f"{measure_words(trends.joined, measure)}, {title}: {words}", draw))
        rows += own
    shown = dict.fromkeys(row[0] for *_, lines in drawn for row in lines)
    marks = tuple(Mark(name, *line_style(colours[name])) for name in shown)
    yield Charts(f"Over {trends.axis}s", tuple(charts), marks, MARKS)
    several = len(charts) > 1
    numbers = ("median", "interval", "seeds", "times", "from, to")
    columns = ("runs", "subject", trends.axis.value, *numbers[:3], "against the one before", *numbers[3:])
    yield Table(
        headings(*columns[not several :], numbers=numbers),
        tuple(row[not several :] for row in rows),
        measure_words(trends.joined, measure),
        id=table,
    )


def _titled(trends: OverTime) -> Iterator[tuple[str, JoinedRuns]]:
    """Yield the runs on each chart with its title: whose they are, and a number where a chart is not enough."""
    whose = [_origin(joined) for joined in trends.joined]
    for at, (title, joined) in enumerate(zip(whose, trends.joined, strict=True)):
        many = whose.count(title)
        yield title if many == 1 else f"{title}, {whose[: at + 1].count(title)} of {many}", joined


def _lines(joined: JoinedRuns, measure: Measure, colours: Mapping[str, int]) -> dict[Row, TimeLine]:
    """Return the lines that have a point."""
    lines = {
        row: TimeLine(_points(joined, row, measure), *line_style(colours[row[0]]))
        for row in joined.grid.entries
    }
    return {row: line for row, line in lines.items() if line.points}


def _unit(joined: JoinedRuns, measure: Measure) -> str:
    """Return the unit of the metric's values."""
    grid = joined.grid
    all_series = (grid.series(row, at, measure) for row in grid.entries for at in range(len(grid.names)))
    return next((series.unit for series in all_series if series), "1")


def _points(joined: JoinedRuns, row: Row, measure: Measure) -> list[ChartPoint]:
    points = []
    for column in range(len(joined.grid.names)):
        series = joined.grid.series(row, column, measure)
        if series is None or series.summary is None:
            continue
        divisor = unit_scale(series.unit).divisor
        summary = series.summary
        ends = [
            float(end / divisor) if summary.n > 1 else None
            for end in (summary.interval.low, summary.interval.high)
        ]
        mark = _point_mark(joined.changes(measure).get((row, column)))
        points.append(ChartPoint(column, float(summary.median / divisor), ends[0], ends[1], mark))
    return points


def _point_mark(change: ComparedSeries | None) -> PointMark:
    """Return the mark of a point by what the judge says of it: up and down are the value's, not better and worse."""
    if change is None:
        return PointMark.FIRST
    if change.differs:
        return PointMark(change.verdict.value)
    return PointMark.ALIKE if change.alike else PointMark.UNKNOWN


def _rows(joined: JoinedRuns, measure: Measure, title: str) -> Iterator[tuple[TableCell, ...]]:
    changes = joined.changes(measure)
    for row in joined.grid.entries:
        for column, head in enumerate(joined.grid.names):
            series = joined.grid.series(row, column, measure)
            if series is None or series.summary is None:
                continue
            change, summary = changes.get((row, column)), series.summary
            scale = unit_scale(series.unit)
            ends = [
                format_decimal(end / scale.divisor, 4)
                for end in (summary.interval.low, summary.interval.high)
            ]
            yield (
                TableCell(title),
                TableCell(row[0]),
                TableCell(head, column),
                TableCell(
                    f"{text(summary, series.unit, 4)} {unit_name(series.unit)}".strip(), float(summary.median)
                ),
                TableCell(" to ".join(ends) if summary.n > 1 else "\N{EN DASH}"),
                TableCell(str(summary.n), summary.n),
                TableCell(change.word_and_reason if change else "the first"),
                number_cell(change.ratio if change else None, 3),
                interval_cell(change.interval if change else None, 3),
            )
