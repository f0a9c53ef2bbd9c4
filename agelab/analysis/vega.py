"""Draw charts with Vega-Lite on this host, as SVG without a script.

``bars``, ``stacked`` and ``lines`` are parts of a report, in the page's colours, light or dark; ``plot`` is a picture
of its own.
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
WIDEST, LETTER = 140, 6.9
"""Pixels: the widest name of a bar, and a letter of it."""
COLOURS = 8
"""Colours of the page's style: var(--c0), ..."""
DASHES = ([1, 0], [6, 3], [2, 3])
INK_COLOURS = ("#0072b2", "#c8500a", "#00805c", "#b3478f", "#8a6d00", "#222222", "#3f8fc4")
"""Colours of a picture of its own, of like strength, that differ to colour-blind eyes; in grey the shapes differ."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down")
PLOT_HEIGHT = 360
_DESCRIBED = re.compile(
    r' aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="symbol mark"([^>]*)/>'
)
"""A point with a description, as Vega writes it."""
INTERVAL = {"color": "currentColor", "strokeWidth": 1.5}
LINE = {"type": "line", "strokeWidth": 1.8, "invalid": "break-paths-show-domains"}
Point = tuple[float, float | None]
FONT = "system-ui, sans-serif"
ROOM = 1.22
"""Length of an axis over that of its longest bar: the figure stands behind the bar."""
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


@dataclass(frozen=True)
class Bar:
    """A bar with its figure."""

    name: str
    value: float | None
    """None where it was not measured."""
    shown: str
    low: float | None = None
    """The interval of the median: both ends or none."""
    high: float | None = None
    kind: int = 0
    """The number of its colour; bars of one name and several kinds stand side by side."""


@dataclass(frozen=True)
class ChartLine:
    """A line with the numbers of its colour and its dash."""

    name: str
    points: Sequence[Point]
    colour: int
    dash: int = 0


def colour(number: int) -> str:
    """Name a colour of the page."""
    return f"var(--c{number % COLOURS})"


def bars(figures: Sequence[Bar], axis: str, *, base: float | None = None, side_by_side: bool = True) -> str:
    """Draw horizontal bars with their figures; ``base`` draws a line where a value means no change.

    Bars of several kinds stand below one another, or, if not ``side_by_side``, each in a name's one place.
    """
    names = list(dict.fromkeys(bar.name for bar in figures))
    kinds = list(dict.fromkeys(bar.kind for bar in figures))
    rows = [
        {"n": bar.name, "v": bar.value or 0, "t": bar.shown, "l": bar.low, "h": bar.high, "k": str(bar.kind)}
        for bar in figures
    ]
    reach = max((max(bar.value or 0, bar.high or 0) for bar in figures), default=0) or 1
    several = side_by_side and len(kinds) > 1
    y = _names(names)
    offset: dict[str, Any] = (
        {"yOffset": {"field": "k", "type": "nominal", "sort": [str(kind) for kind in kinds]}}
        if several
        else {}
    )
    x = {
        "type": "quantitative",
        "title": axis or None,
        "scale": {"domain": [0, ROOM * max(reach, base or 0)], "nice": False},
        "axis": {"tickCount": 4},
    }
    place = {"y": y, **offset}
    value = {
        "type": "text",
        "align": "left",
        "dx": 4,
        "baseline": "middle",
        "fontSize": 10 if several else 11,
    }
    end = {"calculate": "max(datum.v, isValid(datum.h) ? datum.h : 0)", "as": "e"}
    bar = {"type": "bar", "height": {"band": 0.86 if several else 0.72}}
    layers = [
        _layer(bar, place, x, "v", color=_by_kind(kinds)),
        {
            "transform": [{"filter": "isValid(datum.l)"}],
            **_layer({"type": "rule", **INTERVAL}, place, x, "l", x2={"field": "h"}),
        },
        {"transform": [end], **_layer(value, place, x, "e", text={"field": "t"})},
    ]
    if base is not None:
        rule = {"type": "rule", "color": "currentColor", "strokeDash": [3, 3]}
        layers.append({"data": {"values": [{"b": base}]}, **_layer(rule, {}, x, "b")})
    return page_svg(
        {"data": {"values": rows}, "height": _rows(len(kinds) if several else 1), "layer": layers}
    )


def stacked(amounts: Mapping[str, Mapping[int, float]], axis: str) -> str:
    """Draw horizontal bars made of parts: name to number of a colour to amount; an axis in % ends at 100."""
    rows = [
        {"n": name, "v": value, "k": str(kind), "o": kind}
        for name, parts in amounts.items()
        for kind, value in parts.items()
    ]
    kinds = sorted({kind for parts in amounts.values() for kind in parts})
    spec = {
        "data": {"values": rows},
        "height": _rows(1),
        "mark": {
            "type": "bar",
            "clip": axis == "%",
            "height": {"band": 0.76},
            "stroke": "var(--paper)",
            "strokeWidth": 0.6,
        },
        "encoding": {
            "y": _names(list(amounts)),
            "x": {
                "field": "v",
                "type": "quantitative",
                "title": axis or None,
                "axis": {"tickCount": 4},
                "scale": {"nice": False, **({"domain": [0, 100]} if axis == "%" else {})},
            },
            "order": {"field": "o"},
            "color": _by_kind(kinds),
        },
    }
    return page_svg(spec)


def lines(curves: Sequence[ChartLine], x_axis: str, y_axis: str, *, shares: bool = False) -> str:
    """Draw a line for each, broken where it was not measured; shares have the whole scale, so that charts compare."""
    xs = sorted({x for line in curves for x, _ in line.points})
    x = {
        "title": x_axis,
        "scale": {"zero": False, "nice": False},
        "axis": {"values": xs[:: -(-len(xs) // 8)], "grid": False, "format": "d"},
    }
    y = {
        "title": y_axis or None,
        "axis": {"tickCount": 5},
        "scale": {"domain": [0, 1]} if shares else {"zero": True},
    }
    names = [str(number) for number in range(len(curves))]
    colours = [colour(line.colour) for line in curves]
    dashes = [list(DASHES[line.dash % len(DASHES)]) for line in curves]
    which = {"field": "n", "type": "nominal", "legend": None}
    encoding = {
        "x": {"field": "x", "type": "quantitative", **x},
        "y": {"field": "y", "type": "quantitative", **y},
        "color": {**which, "scale": {"domain": names, "range": colours}},
    }
    dash = {**which, "scale": {"domain": names, "range": dashes}}
    rows = [{"n": str(number), "x": x, "y": y} for number, line in enumerate(curves) for x, y in line.points]
    return page_svg(
        {
            "data": {"values": rows},
            "height": 220,
            "layer": [
                {"mark": LINE, "encoding": {**encoding, "strokeDash": dash}},
                {"mark": {"type": "point", "filled": True, "size": 18, "opacity": 1}, "encoding": encoding},
            ],
        }
    )


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
    y = _names([str(row["n"]) for row in rows])
    y["axis"] |= {
        "labelExpr": "substring(datum.value, 5)",
        "labelLimit": 2 * WIDEST,
        "minExtent": 1.4 * WIDEST,
    }
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
    return page_svg({"data": {"values": rows}, "width": 2 * WIDTH, "height": _rows(1), "layer": layers})


def plot(
    title: str,
    x_axis: str,
    y_axis: str,
    series: Mapping[str, Sequence[Point]],
    names: Sequence[str] = (),
) -> str:
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
    place = {
        "x": {"field": "x", "type": "quantitative", "title": svg.plain(x_axis), **x},
        "color": scales["color"],
    }
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
            "subtitle": svg.folded(note if series else "nothing was measured", 120)
            if note or not series
            else [],
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
    described = (
        f"<title>{svg.words(title)}</title><desc>{svg.words(' '.join(_in_words(y_axis, series)))}</desc>"
    )
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


def _layer(
    mark: dict[str, Any], place: dict[str, Any], x: dict[str, Any], field: str, **more: Any
) -> dict[str, Any]:
    """A mark at a field's value."""
    return {"mark": mark, "encoding": {**place, "x": {"field": field, **x}, **more}}


def _by_kind(kinds: Sequence[int]) -> dict[str, Any]:
    """The colours of kinds, which have no legend: the page names them."""
    scale = {"domain": [str(kind) for kind in kinds], "range": [colour(kind) for kind in kinds]}
    return {"field": "k", "type": "nominal", "legend": None, "scale": scale}


def _rows(bars_each: int) -> dict[str, Any]:
    """The height of a name's bars together."""
    return {"step": max(BAR, 14 * bars_each + 5), "for": "position"}


def _names(names: Sequence[str]) -> dict[str, Any]:
    """The axis of names in their order, with room for fonts that are wider than this host's."""
    room = min(WIDEST, LETTER * max(map(len, names), default=0))
    axis = {"ticks": False, "domain": False, "minExtent": room}
    return {"field": "n", "type": "nominal", "sort": list(names), "title": None, "axis": axis}


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
