"""Write the pages of a track: an overview, and a page for each line, with its values as JSON beside it."""

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import exp
from pathlib import Path
from statistics import median
from typing import Any

from agelab import __version__
from agelab.analysis import vega
from agelab.base import atomic
from agelab.base.hashing import key_of
from agelab.bisect.track.journal import Followed, LineId
from agelab.bisect.track.lines import Known, Line, Step
from agelab.bisect.track.night import passed_over_lines, step_words
from agelab.evaluate.layout import svg
from agelab.present.report.blocks import (
    Answer,
    Block,
    Chart,
    Charts,
    Facts,
    Page,
    Part,
    Prose,
    Section,
    Table,
    TableCell,
    headings,
)
from agelab.present.report.html import render
from agelab.present.report.numbers import number_cell, unit_name
from agelab.present.view import sparkline
from agelab.stats.formatting import decimals_for_spread, unit_scale
from agelab.stats.phrasing import several

INDEX = "index"
LABELS = 10
"""Names below the axis at most."""
WIDTH, HEIGHT = 860, 260
WIDE = 24
"""Characters of a sparkline at most, which a telephone has room for."""
CHANCE = 1.96
"""Standard deviations to both sides of a level between which 95 % of single values lie by chance."""
NAME = 60
"""Characters of a page's name."""


def write_site(known: Known, directory: Path, now: str, *, whole: bool = True) -> None:
    """Write the overview, which says what is done ``now``, and unless it is not the ``whole`` all other pages."""
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / INDEX, _overview(known, now), _overview_json(known, now))
    for line in known.lines if whole else ():
        page = _line_page(known, line, directory)
        _write(directory / page_name(known, line.id), page, _line_json(known, line))


def _write(path: Path, page: Page, content: dict[str, Any]) -> None:
    atomic.write(path.with_suffix(".html"), render(page).encode())
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    atomic.write(path.with_suffix(".json"), f"{text}\n".encode())


def page_name(known: Known, line: LineId) -> str:
    """Name the files of a line, without their endings."""
    words = f"{_scenario(known, line)} {line.label} {line.metric}".lower()
    return f"{re.sub('[^a-z0-9]+', '-', words)[:NAME].strip('-')}-{key_of(line.model_dump())[:6]}"


def _scenario(known: Known, line: LineId) -> str:
    return Path(known.track.watched(line.watch).scenario).stem


def _title(known: Known, line: LineId) -> str:
    return f"{_scenario(known, line)}, {line.label}: {line.metric.replace('_', ' ')}"


# ---- the overview ----


def _overview(known: Known, now: str) -> Page:
    steps = [row for row in known.followed if row.differs]
    steps.sort(key=lambda row: known.places[row.after], reverse=True)
    measured = {row.point for row in known.measured}
    facts = {
        "now": now or "nothing runs",
        "points": f"{len(measured)} of {len(known.points)} measured, {len(known.measured)} cells",
        "oldest": known.points[0].words,
        "newest": known.points[-1].words,
    }
    sections = [Section("lines", "The lines", (_lines_table(known),))] if known.lines else []
    sections.append(Section("now", "How far it is", (Facts(tuple(facts.items())),)))
    if lost := [*passed_over_lines(known)]:
        sections.append(Section("skipped", "Skipped", (Prose(lost, listed=True),)))
    verdict = f"{several(len(steps), 'step')} on {several(len(known.lines), 'line')}."
    answer = Answer(
        "What changed, and since when?",
        verdict if known.lines else "No point has a value yet.",
        tuple(step_words(known, row) for row in steps),
    )
    part = Part("track", known.track.name, f"{len(known.points)} points", (answer,), (), tuple(sections))
    return Page(f"agelab: {known.track.name}", (part,), __version__)


def _lines_table(known: Known) -> Table:
    rows = []
    for line in known.lines:
        scale = unit_scale(line.unit)
        last = Fraction(median(line.values[-1].seeds.values())) / scale.divisor
        spread = Fraction(line.noise) * (last if line.is_ratio else Fraction(1, scale.divisor))
        firsts = [value.first for value in line.values]
        steps = sum(row.differs for row in known.followed if row.line == line.id)
        rows.append(
            (
                TableCell(_title(known, line.id), href=f"{page_name(known, line.id)}.html"),
                TableCell(sparkline.row(_thinned(firsts), "utf-8"), code=True),
                number_cell(last, decimals_for_spread(scale.decimals, spread, last)),
                unit_name(line.unit),
                str(len(line.values)),
                str(steps),
            )
        )
    numbers = ("oldest to newest", "last", "points", "steps")  # in one row, as the picture is
    names = headings("line", *numbers[:2], "unit", *numbers[2:], numbers=numbers)
    return Table(names, rows, "All lines", id="table-lines")


def _thinned(values: Sequence[float]) -> list[float]:
    """Return so many values that a sparkline has room for them: of several the median."""
    each = -(-len(values) // WIDE)
    return [median(values[at : at + each]) for at in range(0, len(values), each)]


def _overview_json(known: Known, now: str) -> dict[str, Any]:
    return {
        "schema": 1,
        "track": known.track.name,
        "now": now,
        "points": [
            {"name": point.name, "date": point.date, "subject": point.subject, "id": point.id} for point in known.points
        ],
        "lines": [{"page": page_name(known, line.id), **line.id.model_dump()} for line in known.lines],
        "steps": [row.model_dump(mode="json", exclude={"kind"}) for row in known.followed],
        "passed_over": [*passed_over_lines(known)],
    }


# ---- a line ----


def _line_page(known: Known, line: Line, directory: Path) -> Page:
    followed = [row for row in known.followed if row.line == line.id]
    scale = unit_scale(line.unit)
    title = _title(known, line.id)
    draw = partial(_draw, known, line, [row for row in followed if row.differs])
    words = f"{title}: {len(line.values)} points; {'; '.join(step_words(known, row) for row in followed)}"
    share = f"{100 * line.noise:.2g} %" if line.is_ratio else f"{line.noise / scale.divisor:.3g} {scale.name}"
    note = (
        f"A point is one value, of the first run seed; the pointer over it shows its name. The strip is the level "
        f"between two steps, with the {share} by which chance moves a value, twice to each side. A thin line spans "
        "the run seeds of a point that has several. The broken line is a step that was found; the scale need not "
        "begin at 0."
    )
    blocks: list[Block] = [Charts("Over the points", (Chart(title, words, draw),), note=note, wide=True)]
    if followed:
        blocks.append(Prose([step_words(known, row) for row in followed], listed=True, title="Steps looked at"))
    if waiting := [step for step in known.open_steps if isinstance(step, Step) and step.line == line.id]:
        names = [f"between {step.last.point.name} and {step.first.point.name}" for step in waiting]
        blocks.append(Prose(names, listed=True, title="Seen, and not looked at yet"))
    section = Section("values", "Its values", tuple(blocks))
    answer = Answer("What changed, and since when?", f"{several(sum(row.differs for row in followed), 'step')}.")
    files = {"all lines": f"{INDEX}.html", "these values": f"{page_name(known, line.id)}.json"}
    files |= {row.capsule: row.capsule for row in followed if row.capsule and (directory / row.capsule).is_file()}
    rows = [(TableCell(name, href=file),) for name, file in files.items()]
    beside = Section("beside", "Beside this page", (Table(headings("file"), rows, "Files", id="files"),))
    part = Part("line", title, known.track.name, (answer,), (), (section, beside))
    return Page(f"agelab: {title}", (part,), __version__)


def _draw(known: Known, line: Line, steps: Sequence[Followed]) -> str:
    """Draw the values over the points that were measured, in equal steps."""
    scale = unit_scale(line.unit)

    def shown(value: float) -> float:
        return float(value / scale.divisor)

    points = [
        {
            "x": at,
            "y": shown(value.first),
            "l": shown(min(value.seeds.values())) if len(value.seeds) > 1 else None,
            "h": shown(max(value.seeds.values())),
            "t": svg.plain(f"{value.point.words}: {shown(value.first):.6g} {unit_name(line.unit)}"),
        }
        for at, value in enumerate(line.values)
    ]
    levels = []
    for start, end in line.levels:
        level = median(value.first for value in line.values[start:end])
        reach = CHANCE * line.noise
        ends = (level * exp(-reach), level * exp(reach)) if line.is_ratio else (level - reach, level + reach)
        levels.append({"x": start - 0.4, "e": end - 0.6, "y": shown(ends[0]), "h": shown(ends[1])})
    found = []
    for row in steps:
        first = known.places[row.culprit] if row.culprit in known.places else known.places[row.after]
        at = sum(value.place < first for value in line.values)
        found.append({"x": at - 0.5})
    every = -(-len(points) // LABELS)
    names = json.dumps([svg.plain(value.point.name) for value in line.values])
    x = {
        "field": "x",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [-0.6, len(points) - 0.4], "nice": False},
        "axis": {
            "values": list(range(0, len(points), every)),
            "labelExpr": f"{names}[datum.value]",
            "labelAngle": -30,
            "grid": False,
        },
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": unit_name(line.unit) or None,
        "scale": {"zero": False},
    }
    words = {"field": "t", "type": "nominal"}
    place = {"x": x, "y": y}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": levels},
            "mark": {"type": "rect", "color": vega.colour(0), "opacity": 0.16},
            "encoding": {**place, "x2": {"field": "e"}, "y2": {"field": "h"}},
        },
        {"mark": {"type": "line", "color": vega.colour(0), "strokeWidth": 1.2}, "encoding": place},
        {
            "transform": [{"filter": "isValid(datum.l)"}],
            "mark": {"type": "rule", "color": "currentColor", "strokeWidth": 1.4},
            "encoding": {"x": x, "y": {**y, "field": "l"}, "y2": {"field": "h"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 34, "opacity": 1, "color": vega.colour(0), "aria": True},
            "encoding": {**place, "description": words},
        },
        {
            "data": {"values": found},
            "mark": {"type": "rule", "color": vega.colour(1), "strokeWidth": 2, "strokeDash": [5, 3]},
            "encoding": {"x": x},
        },
    ]  # fmt: skip
    return vega.page_svg({"data": {"values": points}, "width": WIDTH, "height": HEIGHT, "layer": layers})


def _line_json(known: Known, line: Line) -> dict[str, Any]:
    return {
        "schema": 1,
        **line.id.model_dump(),
        "unit": line.unit,
        "noise": line.noise,
        "noise_is_a_share": line.is_ratio,
        "values": [[value.place, {str(seed): number for seed, number in value.seeds.items()}] for value in line.values],
        "levels": [[line.values[start].place, line.values[end - 1].place] for start, end in line.levels],
    }  # fmt: skip
