"""Build the page of results over kernels or dates: a chart and a table for each metric (docs/howto/over-time.md)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from agelab import __version__
from agelab.analysis import vega
from agelab.analysis.over_time import JoinedRuns, OverTime, Row
from agelab.present.report import over_time_chart
from agelab.present.report.model import (
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
from agelab.present.report.numbers import interval_cell, number_cell, text, unit_name
from agelab.present.report.over_time_chart import ChartPoint, PointMark, TimeLine
from agelab.results.conditions import names
from agelab.results.measure import Measure
from agelab.stats.formatting import format_decimal, unit_scale
from agelab.stats.phrasing import capital
from agelab.stats.verdict import ComparedSeries, about_files

MARKS = (
    "Points are medians over the seeds, thin lines the intervals that hold them. Seen from the point before it: "
    "\N{BLACK UP-POINTING TRIANGLE} \N{BLACK DOWN-POINTING TRIANGLE} a difference, a change point; "
    "\N{BLACK CIRCLE} the same within 5 %, or equal, or the first; \N{WHITE CIRCLE} not known, or below "
    "the floor of the host (docs/chance.md). The scale need not begin at 0."
)
OURS = "this store"
MOST_NAMED = 12
"""Change points to name in the answer."""


def build_page(found: OverTime, measures: Sequence[Measure]) -> Page:
    """Build the page: a part for each scenario, in the order of the runs."""
    kinds: dict[tuple[object, ...], list[JoinedRuns]] = {}
    for one in found.joined:
        kinds.setdefault(one.runs[0].conditions[0].question, []).append(one)
    parts = tuple(
        _part(OverTime(found.axis, tuple(those)), measures, f"part{number}")
        for number, those in enumerate(kinds.values(), 1)
    )
    title = ", ".join(dict.fromkeys(part.title for part in parts))
    return Page(f"agelab: {title} over {found.axis}s", parts, __version__)


def _part(found: OverTime, measures: Sequence[Measure], where: str) -> Part:
    plan = found.joined[0].runs[0].plan
    emulated = ", EMULATED" if plan.emulated else ""
    metrics = [
        Section(f"{where}-metric{at}", measure_words(found.joined, measure), blocks)
        for at, measure in enumerate(measures, 1)
        if (blocks := tuple(_metric(found, measure, f"{where}-table{at}")))
    ]
    notes: list[Block] = [Facts(tuple((title, names(one.runs)) for title, one in _titled(found)))]
    if apart := tuple(found.apart):
        notes.append(
            Prose(apart, listed=True, title="Kept on lines of their own, for something else differs")
        )
    if left := tuple(line for one in found.joined for line in one.left_out):
        notes.append(Prose(left, listed=True, title="On no line"))
    return Part(
        where,
        f"{plan.scenario} over {found.axis}s",
        f"scale {plan.scale}, {plan.clock} clock{emulated}",
        (_answer(found, measures),),
        tuple(line for one in found.joined for line in one.grid.host.unknown),
        (*metrics, Section(f"{where}-runs", "The runs", tuple(notes))),
    )


def _answer(found: OverTime, measures: Sequence[Measure]) -> Answer:
    changed = change_points(found, measures)
    more = len(changed) - MOST_NAMED
    because = (*changed[:MOST_NAMED], *([f"{more} more, in the tables below"] if more > 0 else []))
    return Answer("What changed, and where?", count_words(found, measures), because)


def count_words(found: OverTime, measures: Sequence[Measure]) -> str:
    """Say how many change points there are, and what is known of the other neighbours."""
    judged = [one[-1] for joined in found.joined for one in _all_changes(joined, measures)]
    changed, alike = sum(one.differs for one in judged), sum(one.alike for one in judged)
    pairs = f"{len(judged)} pair{'s' * (len(judged) != 1)} of neighbours"
    points = f"{changed} change point{'s' * (changed != 1)}"
    about = about_files(judged)
    said = f"{points} among {pairs}; {alike} the same, {len(judged) - changed - alike} not known."
    return f"{said} {capital(about)}." if about else said


def change_points(found: OverTime, measures: Sequence[Measure]) -> list[str]:
    """Say of each change point what changed, in one line."""
    return [
        _change_words(joined, *one)
        for joined in found.joined
        for one in _all_changes(joined, measures)
        if one[-1].differs
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
    titles = (one.grid.title(measure) for one in joined)
    return f"{next(filter(None, titles), measure.step)}, {measure.metric.replace('_', ' ')}"


def _origin(joined: JoinedRuns) -> str:
    return f"capsules of {joined.runs[0].origin}" if joined.runs[0].origin else OURS


def _metric(found: OverTime, measure: Measure, table: str) -> Iterator[Block]:
    """Yield the charts and the table of one metric; nothing where it was not measured."""
    subjects = dict.fromkeys(row[0] for one in found.joined for row in one.grid.entries)
    colours = {name: number for number, name in enumerate(subjects)}
    drawn = [(title, one, _lines(one, measure, colours)) for title, one in _titled(found)]
    drawn = [(title, one, lines) for title, one, lines in drawn if lines]
    if not drawn:
        return
    ends = [
        end for *_, lines in drawn for line in lines.values() for point in line.points for end in point.ends
    ]
    charts, rows = [], []
    for title, one, lines in drawn:
        unit = unit_name(_unit(one, measure))
        draw = partial(
            over_time_chart.draw, [*lines.values()], one.grid.names, found.axis, unit, (min(ends), max(ends))
        )
        own = [*_rows(one, measure, title)]
        words = "; ".join(
            f"{cells[1].text} {cells[2].text} {cells[3].text}: {cells[6].text}" for cells in own
        )
        charts.append(Chart(title, f"{measure_words(found.joined, measure)}, {title}: {words}", draw))
        rows += own
    shown = dict.fromkeys(row[0] for *_, lines in drawn for row in lines)
    marks = tuple(Mark(name, *_style(colours[name])) for name in shown)
    yield Charts(f"Over {found.axis}s", tuple(charts), marks, MARKS)
    several = len(charts) > 1
    numbers = ("median", "interval", "seeds", "times", "from, to")
    columns = ("runs", "subject", found.axis.value, *numbers[:3], "against the one before", *numbers[3:])
    yield Table(
        table,
        measure_words(found.joined, measure),
        headings(*columns[not several :], numbers=numbers),
        tuple(row[not several :] for row in rows),
    )


def _titled(found: OverTime) -> Iterator[tuple[str, JoinedRuns]]:
    """Yield the runs on each chart with its title: whose they are, and a number where a chart is not enough."""
    whose = [_origin(one) for one in found.joined]
    for at, (title, one) in enumerate(zip(whose, found.joined, strict=True)):
        many = whose.count(title)
        yield title if many == 1 else f"{title}, {whose[: at + 1].count(title)} of {many}", one


def _lines(joined: JoinedRuns, measure: Measure, colours: Mapping[str, int]) -> dict[Row, TimeLine]:
    """Return the lines that have a point."""
    lines = {
        row: TimeLine(_points(joined, row, measure), *_style(colours[row[0]])) for row in joined.grid.entries
    }
    return {row: line for row, line in lines.items() if line.points}


def _style(number: int) -> tuple[int, int]:
    """Return colour and dash of the subject with that number."""
    return number % vega.COLOURS, number // vega.COLOURS


def _unit(joined: JoinedRuns, measure: Measure) -> str:
    """Return the unit of the metric's values."""
    grid = joined.grid
    found = (grid.series(row, at, measure) for row in grid.entries for at in range(len(grid.names)))
    return next((one.unit for one in found if one), "1")


def _points(joined: JoinedRuns, row: Row, measure: Measure) -> list[ChartPoint]:
    points = []
    for column in range(len(joined.grid.names)):
        series = joined.grid.series(row, column, measure)
        if series is None or series.summary is None:
            continue
        divisor = unit_scale(series.unit).divisor
        found = series.summary
        ends = [
            float(end / divisor) if found.n > 1 else None for end in (found.interval.low, found.interval.high)
        ]
        mark = _point_mark(joined.changes(measure).get((row, column)))
        points.append(ChartPoint(column, float(found.median / divisor), ends[0], ends[1], mark))
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
            change, found = changes.get((row, column)), series.summary
            scale = unit_scale(series.unit)
            ends = [
                format_decimal(end / scale.divisor, 4) for end in (found.interval.low, found.interval.high)
            ]
            yield (
                TableCell(title),
                TableCell(row[0]),
                TableCell(head, column),
                TableCell(
                    f"{text(found, series.unit, 4)} {unit_name(series.unit)}".strip(), float(found.median)
                ),
                TableCell(" to ".join(ends) if found.n > 1 else "\N{EN DASH}"),
                TableCell(str(found.n), found.n),
                TableCell(change.word_and_reason if change else "the first"),
                number_cell(change.ratio if change else None, 3),
                interval_cell(change.interval if change else None, 3),
            )
