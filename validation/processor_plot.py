"""The figure of the processor test: seconds of ours over those of the studies, each step on each filesystem a mark."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import log10
from typing import Protocol

COLOURS = ("#0072b2", "#c8500a", "#00805c", "#b3478f", "#8a6d00")
INK, PALE, BAND = "#222222", "#dddddd", "#eef3f7"
LEFT, TOP, SIDE = 64, 58, 420
WIDTH, HEIGHT = 700, 540
LOW, HIGH = 0.02, 10.0
"""Seconds at the ends of both axes; what lies beyond stands at the end."""


class Mark(Protocol):
    """What is drawn of a comparison."""

    @property
    def step(self) -> str: ...
    @property
    def theirs(self) -> float: ...
    @property
    def ours(self) -> float: ...


def _share(seconds: float) -> float:
    return log10(min(max(seconds, LOW), HIGH) / LOW) / log10(HIGH / LOW)


def _at(theirs: float, ours: float) -> tuple[float, float]:
    return LEFT + _share(theirs) * SIDE, TOP + (1 - _share(ours)) * SIDE


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{INK}" {more}>{escape(words)}</text>'


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    (x, y), (to_x, to_y) = start, end
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'


def _frame() -> Iterable[str]:
    low, high = LOW, HIGH
    corners = [_at(low, low), _at(low, low * 1.25), _at(high / 1.25, high), _at(high, high)]
    corners += [_at(high, high * 0.75), _at(low / 0.75, low)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    yield f'<polygon points="{points}" fill="{BAND}"/>'
    for seconds in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10):
        yield _line(_at(seconds, low), _at(seconds, high), PALE)
        yield _line(_at(low, seconds), _at(high, seconds), PALE)
        x, y = _at(seconds, low)
        yield _text(x, y + 18, f"{seconds:g}", 'text-anchor="middle"')
        x, y = _at(low, seconds)
        yield _text(x - 8, y + 4, f"{seconds:g}", 'text-anchor="end"')
    yield _line(_at(low, low), _at(high, high), INK)
    yield _text(LEFT + SIDE / 2, TOP + SIDE + 40, "processor seconds of the study", 'text-anchor="middle"')
    yield _text(LEFT, TOP - 32, "Processor seconds: ours over the study's", 'font-weight="600"')
    yield _text(LEFT, TOP - 12, "the line: equal; the band: within 25 %")


def figure(found: Sequence[Mark], kinds: Mapping[str, Sequence[str]]) -> str:
    """Draw the figure as SVG."""
    colour_of = {
        step: colour for colour, steps in zip(COLOURS, kinds.values(), strict=True) for step in steps
    }
    drawn = list(_frame())
    for one in found:
        x, y = _at(one.theirs, one.ours)
        colour = colour_of.get(one.step, INK)
        drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}" fill-opacity="0.75"/>')
    for number, (kind, colour) in enumerate(zip(kinds, COLOURS, strict=True)):
        x, y = LEFT + SIDE + 30, TOP + 20 + 24 * number
        drawn.append(f'<circle cx="{x}" cy="{y - 4}" r="4.5" fill="{colour}"/>')
        drawn.append(_text(x + 12, y, kind))
    style = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" {style}>',
            f"<title>Processor seconds of {len(found)} steps, ours beside the studies'</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            *drawn,
            "</svg>\n",
        ]
    )
