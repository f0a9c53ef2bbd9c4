"""Charts, drawn by Vega-Lite on this host as SVG without a script; their colours are the page's, light or dark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import vl_convert

VERSION = "5.20"
WIDTH = 340
"""Pixels: what a phone's screen holds."""
BAR = 19
WIDEST, LETTER = 140, 6.9
"""Pixels: the widest name of a bar, and a letter of it."""
COLOURS = 8
"""Colours that the page's style has: var(--c0), ..."""
DASHES = ([1, 0], [6, 3], [2, 3])
FONT = "system-ui, sans-serif"
ROOM = 1.22
"""How much longer than its longest bar an axis is: the figure stands behind the bar."""
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
    """A bar: whose, of which kind where there are several side by side, and how far it reaches."""

    name: str
    value: float | None
    """None is not measured."""
    shown: str
    low: float | None = None
    """Where the median may lie, both or none."""
    high: float | None = None
    kind: int = 0
    """Which colour."""


@dataclass(frozen=True)
class ChartLine:
    """A curve: its points, and the number of its colour."""

    name: str
    points: Sequence[tuple[float, float | None]]
    colour: int
    dash: int = 0


def colour(number: int) -> str:
    """A colour of the page."""
    return f"var(--c{number % COLOURS})"


def bars(found: Sequence[Bar], axis: str, *, base: float | None = None, side_by_side: bool = True) -> str:
    """Horizontal bars with their figures; ``base`` draws a line where a value means no change.

    Bars of several kinds stand below one another, or, if not ``side_by_side``, each in a name's one place.
    """
    names = list(dict.fromkeys(bar.name for bar in found))
    kinds = list(dict.fromkeys(bar.kind for bar in found))
    rows = [
        {"n": bar.name, "v": bar.value or 0, "t": bar.shown, "l": bar.low, "h": bar.high, "k": str(bar.kind)}
        for bar in found
    ]
    reach = max((max(bar.value or 0, bar.high or 0) for bar in found), default=0) or 1
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
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.86 if several else 0.72}},
            "encoding": {
                "y": y,
                **offset,
                "x": {"field": "v", **x},
                "color": {
                    "field": "k",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": [str(k) for k in kinds], "range": [colour(k) for k in kinds]},
                },
            },
        },
        {
            "transform": [{"filter": "isValid(datum.l)"}],
            "mark": {"type": "rule", "color": "currentColor", "strokeWidth": 1.5},
            "encoding": {"y": y, **offset, "x": {"field": "l", **x}, "x2": {"field": "h"}},
        },
        {
            "transform": [{"calculate": "max(datum.v, isValid(datum.h) ? datum.h : 0)", "as": "e"}],
            "mark": {
                "type": "text",
                "align": "left",
                "dx": 4,
                "baseline": "middle",
                "fontSize": 10 if several else 11,
            },
            "encoding": {"y": y, **offset, "x": {"field": "e", **x}, "text": {"field": "t"}},
        },
    ]
    if base is not None:
        layers.append(
            {
                "data": {"values": [{"b": base}]},
                "mark": {"type": "rule", "color": "currentColor", "strokeDash": [3, 3]},
                "encoding": {"x": {"field": "b", **x}},
            }
        )
    return _svg({"data": {"values": rows}, "height": _rows(len(kinds) if several else 1), "layer": layers})


def stacked(found: Mapping[str, Mapping[int, float]], axis: str) -> str:
    """Horizontal bars made of parts: name to the number of a colour to an amount; percents are of a whole."""
    rows = [
        {"n": name, "v": value, "k": str(kind), "o": kind}
        for name, parts in found.items()
        for kind, value in parts.items()
    ]
    kinds = sorted({kind for parts in found.values() for kind in parts})
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
            "y": _names(list(found)),
            "x": {
                "field": "v",
                "type": "quantitative",
                "title": axis or None,
                "axis": {"tickCount": 4},
                "scale": {"nice": False, **({"domain": [0, 100]} if axis == "%" else {})},
            },
            "order": {"field": "o"},
            "color": {
                "field": "k",
                "type": "nominal",
                "legend": None,
                "scale": {"domain": [str(k) for k in kinds], "range": [colour(k) for k in kinds]},
            },
        },
    }
    return _svg(spec)


def lines(found: Sequence[ChartLine], x_axis: str, y_axis: str, *, shares: bool = False) -> str:
    """A line for each, broken where it was not measured; shares are on the whole scale, so that charts compare."""
    rows = [{"n": str(number), "x": x, "y": y} for number, line in enumerate(found) for x, y in line.points]
    xs = sorted({x for line in found for x, _ in line.points})
    encoding = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "title": x_axis,
            "scale": {"zero": False, "nice": False},
            "axis": {"values": xs[:: -(-len(xs) // 8)], "grid": False, "format": "d"},
        },
        "y": {
            "field": "y",
            "type": "quantitative",
            "title": y_axis or None,
            "axis": {"tickCount": 5},
            "scale": {"domain": [0, 1]} if shares else {"zero": True},
        },
    }
    which = {"field": "n", "type": "nominal", "legend": None}
    numbers = [str(number) for number in range(len(found))]
    stroke = {**which, "scale": {"domain": numbers, "range": [colour(line.colour) for line in found]}}
    dash = {
        **which,
        "scale": {"domain": numbers, "range": [list(DASHES[line.dash % len(DASHES)]) for line in found]},
    }
    spec = {
        "data": {"values": rows},
        "height": 220,
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.8, "invalid": "break-paths-show-domains"},
                "encoding": {**encoding, "color": stroke, "strokeDash": dash},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 18, "opacity": 1},
                "encoding": {**encoding, "color": stroke},
            },
        ],
    }
    return _svg(spec)


def _rows(bars_each: int) -> dict[str, Any]:
    """How high a name's bars are together."""
    return {"step": max(BAR, 14 * bars_each + 5), "for": "position"}


def _names(names: Sequence[str]) -> dict[str, Any]:
    """The axis of names in their order. A reader's letters may be wider than those of this host."""
    room = min(WIDEST, LETTER * max(map(len, names), default=0))
    axis = {"ticks": False, "domain": False, "minExtent": room}
    return {"field": "n", "type": "nominal", "sort": list(names), "title": None, "axis": axis}


def _svg(spec: dict[str, Any]) -> str:
    """Drawn, without a size of its own: the page gives it one."""
    whole = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": WIDTH,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 2,
        "background": None,
        "config": CONFIG,
        **spec,
    }
    svg = vl_convert.vegalite_to_svg(whole, vl_version=VERSION)
    head, _, rest = svg.partition(">")
    view = head[head.index("viewBox=") :].split('"')[1]
    # No links are in it, so no namespace of theirs; what a script would need goes, too.
    rest = rest.replace(' pointer-events="none"', "").replace(' aria-hidden="true"', "")
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" aria-hidden="true" focusable="false">{rest}'
