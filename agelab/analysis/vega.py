"""Draw charts with Vega-Lite on this host, as SVG without a script.

``plot`` is a picture of its own, ``timeline`` a part of a page, in its colours, light or dark. A report's many small
charts need no library: agelab.present.report.drawing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

import vl_convert

from agelab.evaluate.layout import svg

VERSION = "5.20"
WIDTH = 340
"""Pixels that fit a phone's screen."""
BAR = 19
WIDEST = 140
"""Pixels of the widest name of a bar."""
COLOURS = 8
"""Colours of the page's style: var(--c0), ..."""
DASHES = ([1, 0], [6, 3], [2, 3])
INK_COLOURS = ("#0072b2", "#c8500a", "#00805c", "#b3478f", "#8a6d00", "#222222", "#3f8fc4")
"""Colours of a picture of its own, of like strength, that differ to colour-blind eyes; in grey the shapes differ."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down")
PLOT_HEIGHT = 360
_DESCRIBED = re.compile(r' aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="symbol mark"([^>]*)/>')
"""A point with a description, as Vega writes it."""
LINE = {"type": "line", "strokeWidth": 1.8, "invalid": "break-paths-show-domains"}
Point = tuple[float, float | None]
FONT = "system-ui, sans-serif"
CONFIG: dict[str, Any] = {
    "aria": False,  # the page says in words what a chart shows
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelLimit": WIDEST,
    },
    "text": {"fontSize": 11, "color": "currentColor"},
}


def colour(number: int) -> str:
    """Name a colour of the page."""
    return f"var(--c{number % COLOURS})"


@dataclass(frozen=True)
class Span:
    """Something that took its time, in the order of a timeline's moments."""

    name: str
    begin: int
    end: int
    shown: str
    """What stands behind it."""
    kind: int
    """The number of its colour."""


def timeline(spans: Sequence[Span], moments: Sequence[str], end: str) -> str:
    """Draw each below the one before. Moments, by their texts, lie equally far apart, and then comes the ``end``."""
    kinds = list(dict.fromkeys(span.kind for span in spans))
    rows = [
        {"n": f"{at:04d} {span.name}", "b": span.begin, "e": span.end, "t": span.shown, "k": str(span.kind)}
        for at, span in enumerate(spans)
    ]
    axis = {
        **{"ticks": False, "domain": False, "labelLimit": 2 * WIDEST, "minExtent": 1.4 * WIDEST},
        "labelExpr": "substring(datum.value, 5)",
    }
    names = [row["n"] for row in rows]
    y = {"field": "n", "type": "nominal", "sort": names, "title": None, "axis": axis}
    x = {
        "type": "quantitative",
        "title": "time, ms (not to scale)",
        "scale": {"domain": [0, 1.4 * len(moments)], "nice": False},
        "axis": {
            "values": list(range(0, len(moments), -(-len(moments) // 6))),
            "labelExpr": f"{json.dumps(list(moments))}[datum.value]",
            "grid": False,
        },
    }
    cut = {"data": {"values": [{"c": 1.3 * len(moments), "t": end}]}}
    place, of_kind = {"y": y}, _by_kind(kinds)
    bar = {"type": "bar", "height": {"band": 0.6}, "minBandSize": 3}
    tick = {"type": "tick", "thickness": 3, "bandSize": 12}
    words = {"type": "text", "align": "left", "dx": 5, "baseline": "middle", "fontSize": 10}
    line = {"type": "rule", "color": colour(7), "strokeWidth": 2, "strokeDash": [5, 3]}
    name = {"type": "text", "align": "center", "y": -7, "color": colour(7)}
    layers = [
        _layer(bar, place, x, "b", x2={"field": "e"}, color=of_kind),
        _layer(tick, place, x, "b", color=of_kind),
        _layer(words, place, x, "e", text={"field": "t"}),
        {**cut, **_layer(line, {}, x, "c")},
        {**cut, **_layer(name, {}, x, "c", text={"field": "t"})},
    ]
    return page_svg({"data": {"values": rows}, "width": 2 * WIDTH, "height": {"step": BAR}, "layer": layers})


def plot(title: str, x_axis: str, y_axis: str, series: Mapping[str, Sequence[Point]], names: Sequence[str] = ()) -> str:
    """Draw a picture of its own (docs/measures.md): a line for each series, broken where its value is None.

    With ``names`` x counts these, from 0 on, and they stand below the axis. Values that are all from 0 to 1 have the
    whole scale, so that two pictures compare. Raises ValueError for a figure that is not finite.
    """
    series = {svg.plain(name): points for name, points in series.items()}
    xs = sorted({x for points in series.values() for x, _ in points})
    values = [y for points in series.values() for _, y in points if y is not None]
    for value in (*xs, *values):
        if not isfinite(value):
            raise ValueError(f"{value} is not a figure that can be drawn; what was not measured is None")
    gaps = [
        f"{name} at {missing} of {len(points)} points" if missing < len(points) else f"{name} at all points"
        for name, points in series.items()
        if (missing := sum(y is None for _, y in points)) or not points
    ]
    note = f"not measured (×, and a gap in the line): {', '.join(gaps)}" if gaps else ""
    shares = all(0 <= value <= 1 for value in values)
    x: dict[str, Any] = {"scale": {"zero": False, "nice": False, "padding": 8}, "axis": {"grid": False}}
    if all(value == int(value) for value in xs):
        x["axis"]["tickMinStep"] = 1
    if names:
        words = json.dumps([svg.plain(name) for name in names])
        x["axis"] |= {"values": list(range(len(names))), "labelExpr": f"{words}[datum.value]"}
        x["scale"] |= {"domain": [0, max(1, len(names) - 1)]}
    shown = [*series]
    which = {"field": "n", "type": "nominal", "title": None, "legend": {"symbolSize": 60, "labelLimit": 180}}
    looks = {
        "color": [INK_COLOURS[at % len(INK_COLOURS)] for at in range(len(shown))],
        "strokeDash": [list(DASHES[at // len(INK_COLOURS) % len(DASHES)]) for at in range(len(shown))],
        "shape": [SHAPES[at % len(SHAPES)] for at in range(len(shown))],
    }
    scales = {
        name: {**which, "scale": {"domain": shown, "range": looks[name]}} for name in looks
    }  # what all three share is one legend
    place = {"x": {"field": "x", "type": "quantitative", "title": svg.plain(x_axis), **x}, "color": scales["color"]}
    y = {
        "field": "y",
        "type": "quantitative",
        "title": svg.plain(y_axis),
        "scale": {"domain": [0, 1]} if shares else {"zero": False},
    }
    rows = [{"n": name, "x": x, "y": y} for name, points in series.items() for x, y in points]
    spec = {
        "title": {
            "text": svg.folded(svg.plain(title), 84),
            "subtitle": svg.folded(note if series else "nothing was measured", 120) if note or not series else [],
            "anchor": "start",
            "subtitleColor": svg.FAINT,
        },
        "data": {"values": rows},
        "width": 720,
        "height": PLOT_HEIGHT,
        "autosize": "pad",
        "padding": 12,
        "background": svg.PAPER,
        "layer": [
            {"mark": LINE, "encoding": {**place, "y": y, "strokeDash": scales["strokeDash"]}},
            {
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                "encoding": {**place, "y": y, "shape": scales["shape"]},
            },
            {
                "transform": [{"filter": "!isValid(datum.y)"}],
                "mark": {"type": "text", "text": "×"},
                "encoding": {**place, "y": {"value": PLOT_HEIGHT + 4}},
            },
        ],
    }
    head, _, rest = _drawn(spec).partition(">")
    rest = rest.replace("currentColor", svg.INK).replace("var(--line)", "#dddddd")
    described = f"<title>{svg.words(title)}</title><desc>{svg.words(' '.join(_in_words(y_axis, series)))}</desc>"
    return f'{head} role="img">{described}{rest}\n'


def _in_words(y_axis: str, series: Mapping[str, Sequence[Point]]) -> Iterator[str]:
    """Describe each line for readers who do not see it."""
    for name, points in series.items():
        values = [value for _, value in points if value is not None]
        if not values:
            yield f"{name}: not measured."
        else:
            rises = sum(after > before for before, after in pairwise(values))
            yield (
                f"{name}: {y_axis} from {values[0]:.4g} to {values[-1]:.4g} in {len(values)} points,"
                f" {rises} of them above the one before."
            )


def _layer(mark: dict[str, Any], place: dict[str, Any], x: dict[str, Any], field: str, **more: Any) -> dict[str, Any]:
    """A mark at a field's value."""
    return {"mark": mark, "encoding": {**place, "x": {"field": field, **x}, **more}}


def _by_kind(kinds: Sequence[int]) -> dict[str, Any]:
    """The colours of kinds, which have no legend: the page names them."""
    scale = {"domain": [str(kind) for kind in kinds], "range": [colour(kind) for kind in kinds]}
    return {"field": "k", "type": "nominal", "legend": None, "scale": scale}


def page_svg(spec: dict[str, Any]) -> str:
    """Draw it without a size of its own, which the page gives it; a browser shows what a point's description says."""
    head, _, rest = _drawn(spec).partition(">")
    view = head[head.index("viewBox=") :].split('"')[1]
    # No links are in it, so no namespace of theirs; what a script would need goes, too.
    rest = rest.replace(' pointer-events="none"', "").replace(' aria-hidden="true"', "")
    rest = _DESCRIBED.sub(r"\2><title>\1</title></path>", rest)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" aria-hidden="true" focusable="false">{rest}'


def _drawn(spec: dict[str, Any]) -> str:
    whole = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": WIDTH,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 2,
        "background": None,
        "config": CONFIG,
        **spec,
    }
    return str(vl_convert.vegalite_to_svg(whole, vl_version=VERSION))
