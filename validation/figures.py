"""The figures of docs/validation.md, drawn with Vega-Lite: drives by their profiles, flash, processor time by step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, Protocol

import vl_convert

from agelab.analysis.vega import INK_COLOURS, VERSION
from agelab.machine.drive import geometry
from agelab.scenario.drive import RotatingDisk
from validation.validate_report import Curve

SHOWN = {
    "hitachi-ic25n040atmr04": "Travelstar 80GN",
    "hitachi-hds722525vlat80": "Deskstar 7K250",
    "samsung-hd501lj": "SpinPoint HD501LJ",
    "wd-hus726t6tale6l4": "Ultrastar HC310",
}
"""The disks of the figure: a few different ones of 2003 to 2018."""
LOW, HIGH = 0.02, 10.0
"""Seconds of a processor at the ends of both axes; what lies beyond stands at the end."""
Spec = dict[str, Any]
Points = Iterable[tuple[float, float]]


class Mark(Protocol):
    """What is drawn of a step on a filesystem."""

    @property
    def step(self) -> str: ...
    @property
    def theirs(self) -> float: ...
    @property
    def ours(self) -> float: ...


def drives(curves: Sequence[Curve]) -> str:
    """Draw seek times and rates: lines of the model, rings of the profile, dots that were measured in the guest."""
    known = {curve.drive.name: curve for curve in curves}
    shown = {label: known[name] for name, label in SHOWN.items() if name in known}
    seeks, rates = [], []
    for label, curve in shown.items():
        seeks += _rows(label, _seek_time(curve.disk), _seek_sheet(curve.disk), curve.seeks)
        outer, inner = curve.disk.outer_mb_s.value, curve.disk.inner_mb_s.value
        rates += _rows(label, _rate(outer, inner), [(0, outer), (1, inner)], curve.rates)
    return _drawn(
        {
            "title": "Modelled disks: the model (lines), their profiles (rings), measured in a guest (dots)",
            "hconcat": [
                _panel(seeks, "cylinders crossed, share of the full stroke", "seek time, ms", {}),
                _panel(
                    rates,
                    "position, share of the sectors",
                    "sustained rate, MB/s",
                    {"type": "log", "nice": False},
                ),
            ],
        }
    )


def amplification(known: Points, steady: Points, new: Mapping[int, Points]) -> str:
    """Draw write amplification by over-provisioning, known and the model's, and how a new drive comes to it."""
    x = _axis("x", "over-provisioning, %", {"type": "log", "domain": [5, 60]})
    y = _axis("y", "write amplification", {"type": "log", "domain": [1, 12]})
    of_known = {"data": {"values": _places(known)}, "mark": {"type": "line", "color": "#222222"}}
    of_model = {"data": {"values": _places(steady)}, "mark": {"type": "point", "filled": True, "size": 60}}
    named = [row | {"n": f"{percent} %"} for percent, points in new.items() for row in _places(points)]
    written = _axis("x", "random writes to a new drive, in its capacities", {})
    lines = {"x": written, "y": y, "color": _colour([f"{percent} %" for percent in new])}
    return _drawn(
        {
            "title": "Random writes of 4 KiB: what is known of greedy collection (line), the model (dots and colours)",
            "hconcat": [
                {
                    "width": 340,
                    "height": 290,
                    "layer": [{**part, "encoding": {"x": x, "y": y}} for part in (of_known, of_model)],
                },
                {"width": 340, "height": 290, "data": {"values": named}, "mark": "line", "encoding": lines},
            ],
        }
    )


def _places(points: Points) -> list[Spec]:
    return [{"x": x, "y": y} for x, y in points]


def processor(marks: Iterable[Mark], kinds: Mapping[str, Sequence[str]]) -> str:
    """Draw seconds of ours over those of the studies, each step on each filesystem a mark."""
    kind_of = {step: kind for kind, steps in kinds.items() for step in steps}
    rows = [{"x": mark.theirs, "y": mark.ours, "n": kind_of.get(mark.step, "others")} for mark in marks]
    scale = {"type": "log", "domain": [LOW, HIGH], "clamp": True}
    x = _axis("x", "processor seconds of the study", scale)
    y = _axis("y", "ours", scale)
    corners = (LOW, LOW / 0.75, HIGH / 1.25, HIGH)  # where the band reaches the ends of an axis
    ends = [{"x": end, "y": end, "low": end * 0.75, "high": end * 1.25} for end in corners]
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return _drawn(
        {
            "title": {
                "text": "Processor seconds: ours over the study's",
                "subtitle": "line: equal; band: within 25 %",
            },
            "width": 420,
            "height": 420,
            "layer": [
                {
                    "data": {"values": ends},
                    "mark": {"type": "area", "color": "#dfe9f1"},
                    "encoding": band,
                },
                {
                    "data": {"values": ends},
                    "mark": {"type": "line", "color": "#222222"},
                    "encoding": {"x": x, "y": y},
                },
                {
                    "data": {"values": rows},
                    "mark": {"type": "point", "filled": True, "opacity": 0.75},
                    "encoding": {"x": x, "y": y, "color": _colour([*kinds, "others"])},
                },
            ],
        }
    )


def _seek_time(disk: RotatingDisk) -> Callable[[float], float]:
    seek = geometry.seek_curve(disk)
    return lambda x: (seek.minimum + seek.root * sqrt(x) + seek.linear * x) / 1e6


def _seek_sheet(disk: RotatingDisk) -> Points:
    """Return the profile's seek times. The average is over all distances; it stands where the curve has it."""
    time = _seek_time(disk)
    typical = next(x / 1000 for x in range(1001) if time(x / 1000) >= disk.average_ms.value)
    return [
        (0, disk.track_to_track_ms.value),
        (typical, disk.average_ms.value),
        (1, disk.full_stroke_ms.value),
    ]


def _rate(outer: float, inner: float) -> Callable[[float], float]:
    """Return the rate over a disk: it falls linearly with the track, and a track holds as much as its rate says."""
    return lambda x: sqrt(outer**2 - (outer**2 - inner**2) * x)


def _rows(label: str, model: Callable[[float], float], sheet: Points, measured: Points) -> list[Spec]:
    line = [(x, model(x)) for x in ((n / 120) ** 2 for n in range(121))]  # more points where it may be steep
    kinds = {"model": line, "profile": sheet, "measured": measured}
    return [{"n": label, "k": kind, "x": x, "y": y} for kind, points in kinds.items() for x, y in points]


def _panel(rows: Sequence[Spec], below: str, beside: str, scale: Spec) -> Spec:
    marks = {
        "model": {"type": "line", "strokeWidth": 1.4},
        "measured": {"type": "point", "filled": True, "size": 16},
        "profile": {"type": "point", "size": 90},
    }
    place = {
        "x": _axis("x", below, {}),
        "y": _axis("y", beside, scale),
        "color": _colour(list(SHOWN.values())),
    }
    layer = [
        {"transform": [{"filter": f"datum.k == '{kind}'"}], "mark": mark, "encoding": place}
        for kind, mark in marks.items()
    ]
    return {"data": {"values": rows}, "width": 340, "height": 290, "layer": layer}


def _axis(field: str, title: str, scale: Spec) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def _colour(names: Sequence[str]) -> Spec:
    scale = {"domain": names, "range": INK_COLOURS[: len(names)]}
    return {"field": "n", "type": "nominal", "title": None, "scale": scale}


def _drawn(spec: Spec) -> str:
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    whole = {"$schema": schema, "background": "white", "padding": 12, **spec}
    return f"{vl_convert.vegalite_to_svg(whole, vl_version=VERSION)}\n"
