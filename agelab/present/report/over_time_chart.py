"""The chart of one metric over kernels or dates: a line for each subject, its medians, intervals and change points."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agelab.analysis import vega
from agelab.evaluate.layout import svg

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


def draw(
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
    told = f"datum.m != '{PointMark.UNKNOWN}'"
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
            "transform": [{"filter": told}],
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {**place, **looks},
        },
        {
            "transform": [{"filter": f"!({told})"}],
            "mark": {**hollow, "size": SIZES[PointMark.UNKNOWN]},
            "encoding": {"x": x, "y": {"field": "y", **y}},
        },
        {
            "transform": [{"filter": f"!({told})"}],
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
