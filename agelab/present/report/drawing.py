"""Draw the page's small charts as SVG in its colours, light or dark: bars, bars made of parts, and lines.

A page has hundreds of them, for which Vega (agelab.analysis.vega) takes seconds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10

from agelab.evaluate.layout.svg import number, words

WIDTH = 340
"""Pixels that fit a phone's screen."""
ROW, TOP, BELOW, TITLE = 19, 3, 22, 15
"""Pixels: a row of one bar, what is above the rows, below them, and for the title below that."""
WIDEST, LETTER = 140, 6.9
"""Pixels: the widest name of a bar, and a letter of it, with room for fonts that are wider than most."""
LONGEST = 24
"""Letters of the longest name."""
HEIGHT = 220
"""Pixels of lines."""
DIGIT = 6.2
"""Pixels: a digit of a label."""
COLOURS = 8
"""Colours of the page's style: var(--c0), ..."""
DASHES = ("", "6 3", "2 3")
ROOM = 1.22
"""Length of an axis over that of its longest bar: the figure stands behind the bar."""
MOST_X = 8
"""Labels below lines."""


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
    points: Sequence[tuple[float, float | None]]
    colour: int
    dash: int = 0


def bars(figures: Sequence[Bar], axis: str, *, base: float | None = None, side_by_side: bool = True) -> str:
    """Draw horizontal bars with their figures; ``base`` draws a line where a value means no change.

    Bars of several kinds stand below one another, or, if not ``side_by_side``, each in a name's one place.
    """
    names = list(dict.fromkeys(bar.name for bar in figures))
    kinds = list(dict.fromkeys(bar.kind for bar in figures if side_by_side)) or [0]
    reach = max([0, *(end for bar in figures for end in (bar.value, bar.high) if end)]) or 1
    frame = _Rows(names, axis, ROOM * max(reach, base or 0), len(kinds))
    several = len(kinds) > 1
    thick = frame.thick(0.86 if several else 0.72)
    drawn: dict[int, list[str]] = {}
    ranges, texts = [], []
    for bar in figures:
        y = frame.middle(bar.name, kinds.index(bar.kind) if several else None)
        drawn.setdefault(bar.kind, []).append(_box(0, y, frame.x(bar.value or 0), thick))
        if bar.low is not None and bar.high is not None:
            ranges.append(f"M{number(frame.x(bar.low))} {number(y)}H{number(frame.x(bar.high))}")
        end = frame.x(max(bar.value or 0, bar.high or 0))
        texts.append(f'<text x="{number(end + 4)}" y="{number(y + 3)}">{words(bar.shown)}</text>')
    parts = [_path(boxes, fill=_colour(kind)) for kind, boxes in drawn.items()]
    parts.append(_path(ranges, stroke="currentColor", stroke_width="1.5"))
    parts.append(f'<g font-size="{10 if several else 11}">{"".join(texts)}</g>')
    if base is not None:
        line = [f"M{number(frame.x(base))} 0V{number(frame.height)}"]
        parts.append(_path(line, stroke="currentColor", stroke_dasharray="3 3"))
    return frame.drawn(parts)


def stacked(amounts: Mapping[str, Mapping[int, float]], axis: str) -> str:
    """Draw horizontal bars made of parts: name to number of a colour to amount; an axis in % ends at 100."""
    longest = max((sum(parts.values()) for parts in amounts.values()), default=0)
    frame = _Rows(list(amounts), axis, 100 if axis == "%" else longest or 1)
    drawn: dict[int, list[str]] = {}
    for name, parts in amounts.items():
        begin = 0.0
        for kind, amount in sorted(parts.items()):
            x = frame.x(begin)
            begin = min(frame.reach, begin + amount)
            drawn.setdefault(kind, []).append(_box(x, frame.middle(name), frame.x(begin) - x, frame.thick(0.76)))
    edge = {"stroke": "var(--paper)", "stroke_width": "0.6"}
    return frame.drawn(_path(drawn[kind], fill=_colour(kind), **edge) for kind in sorted(drawn))


def lines(curves: Sequence[ChartLine], x_axis: str, y_axis: str, *, shares: bool = False) -> str:
    """Draw a line for each, broken where it was not measured; shares have the whole scale, so that charts compare."""
    xs = sorted({x for line in curves for x, _ in line.points})
    ys = [y for line in curves for _, y in line.points if y is not None]
    bottom, top = (0.0, 1.0) if shares else _widened(min([0, *ys]), max([0, *ys]))
    digits, ticks = _ticks(bottom, top, 5)
    names = [f"{tick:,.{digits}f}" for tick in ticks]
    margin = 7 + DIGIT * max(map(len, names))
    left = ceil(2 + margin + (16 if y_axis else 0))
    width = WIDTH - 2 - left

    def x(value: float) -> float:
        return width * ((value - xs[0]) / (xs[-1] - xs[0]) if xs[-1] > xs[0] else 0.5)

    def y(value: float) -> float:
        return HEIGHT * (top - value) / (top - bottom)

    grid = [f"M-5 {round(y(tick))}H{width}" for tick in ticks]
    parts = [_path([*grid, f"M0 0V{HEIGHT}"], stroke="var(--line)", fill="none")]
    labels = (f'<text x="-7" y="{number(y(tick) + 3)}">{name}</text>' for tick, name in zip(ticks, names, strict=True))
    parts.append(f'<g text-anchor="end">{"".join(labels)}</g>')
    if y_axis:
        turned = f'transform="translate({number(-margin - 4)} {HEIGHT // 2}) rotate(-90)"'
        parts.append(f'<text text-anchor="middle" {turned}>{words(y_axis)}</text>')
    parts += _below(x_axis, HEIGHT, width, [(x(value), f"{value:.0f}") for value in xs[:: -(-len(xs) // MOST_X)]])
    for line in curves:
        look = {"stroke": _colour(line.colour), "fill": "none"}
        pieces, dots = [], []
        for known, piece in groupby(line.points, lambda point: point[1] is not None):
            if known:
                places = [f"{number(x(at))} {number(y(value or 0))}" for at, value in piece]
                pieces.append("M" + "L".join(places))
                dots += [f"M{place}h0" for place in places]
        dash = DASHES[line.dash % len(DASHES)]
        parts.append(_path(pieces, **look, stroke_width="1.8", **({"stroke_dasharray": dash} if dash else {})))
        parts.append(_path(dots, **look, stroke_width="4.2", stroke_linecap="round"))
    return _drawn(left, HEIGHT, x_axis, parts, top=2 * TOP)


@dataclass(frozen=True)
class _Rows:
    """The places of horizontal bars: a row for each name, which has a bar of each kind."""

    names: Sequence[str]
    axis: str
    reach: float
    """What the axis ends with."""
    kinds: int = 1

    @property
    def left(self) -> int:
        return ceil(2 + min(WIDEST, LETTER * max(map(len, self.names), default=0)))

    @property
    def width(self) -> int:
        return WIDTH - 2 - self.left

    @property
    def step(self) -> int:
        return max(ROW, 14 * self.kinds + 5)

    @property
    def gap(self) -> float:
        """The share of a row that is free; of several bars also half above the first row and below the last."""
        return 0.2 if self.kinds > 1 else 0.1

    @property
    def height(self) -> float:
        return self.step * (len(self.names) + (self.gap if self.kinds > 1 else 0))

    def x(self, value: float) -> float:
        return self.width * value / self.reach

    def thick(self, share: float) -> float:
        """Return the height of a bar that takes this share of its room."""
        return share * self.step * (1 - self.gap) / self.kinds

    def middle(self, name: str, kind: int | None = None) -> float:
        """Return the middle of a name's row, or of its bar of that kind."""
        row = (self.height - self.step * len(self.names)) / 2 + self.step * (self.names.index(name) + 0.5)
        return row if kind is None else row + (kind - (self.kinds - 1) / 2) * self.thick(1)

    def drawn(self, parts: Iterable[str]) -> str:
        """Return the whole with both axes."""
        digits, ticks = _ticks(0, self.reach, 4)
        places = [(self.x(tick), f"{tick:,.{digits}f}") for tick in ticks]
        grid = [f"M{round(x)} 0V{number(self.height)}" for x, _ in places]
        names = (
            f'<text x="-2" y="{number(self.middle(name) + 3)}">{words(_short(name))}</text>' for name in self.names
        )
        axes = [
            _path(grid, stroke="var(--line)"),
            *_below(self.axis, self.height, self.width, places),
            f'<g text-anchor="end">{"".join(names)}</g>',
        ]
        return _drawn(self.left, self.height, self.axis, [*axes, *parts])


def _drawn(left: float, height: float, axis: str, parts: Iterable[str], top: int = TOP) -> str:
    """Return the whole, without a size of its own, which the page gives it."""
    whole = number(top + height + BELOW + (TITLE if axis else 0))
    head = f'viewBox="0 0 {WIDTH} {whole}" aria-hidden="true" focusable="false" font-family="system-ui, sans-serif"'
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {head} font-size="11" fill="currentColor">'
        f'<g transform="translate({left}.5 {top}.5)">{body}</g></svg>'
    )


def _below(axis: str, y: float, width: float, places: Sequence[tuple[float, str]]) -> Iterator[str]:
    """Yield the axis below: its line, ticks, their labels as far as there is room, and its title."""
    yield _path([f"M{round(x)} {number(y)}v5" for x, _ in places] + [f"M0 {number(y)}H{width}"], stroke="var(--line)")
    wide, every = 1.5 * DIGIT * max((len(text) for _, text in places), default=0), 1
    while every < len(places) and places[every][0] - places[0][0] < wide:
        every *= 2
    for x, text in places[::every]:
        anchor = "" if x < 1 else "end" if x > width - 1 else "middle"
        yield f'<text x="{number(x)}" y="{number(y + 16)}"{anchor and f" text-anchor={anchor!r}"}>{text}</text>'
    if axis:
        yield f'<text x="{number(width / 2)}" y="{number(y + 31)}" text-anchor="middle">{words(axis)}</text>'


def _path(pieces: Sequence[str], **look: str) -> str:
    looks = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in look.items())
    return f'<path d="{"".join(pieces)}"{looks}/>' if pieces else ""


def _box(x: float, middle: float, width: float, height: float) -> str:
    return f"M{number(x)} {number(middle - height / 2)}h{number(width)}v{number(height)}h{number(-width)}z"


def _colour(number: int) -> str:
    return f"var(--c{number % COLOURS})"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _step(low: float, high: float, count: int) -> float:
    """Return the distance of about so many ticks: one, two or five of a power of ten."""
    rough = (high - low) / count
    power = 10.0 ** floor(log10(rough))
    return power * next((n for n, most in ((1, 2**0.5), (2, 10**0.5), (5, 50**0.5)) if rough / power < most), 10)


def _ticks(low: float, high: float, count: int) -> tuple[int, list[float]]:
    """Return the decimals of about so many ticks, and their values."""
    step = _step(low, high, count)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return max(0, -floor(log10(step) + 1e-9)), [at * step for at in range(first, last + 1)]


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis, moved out to round numbers."""
    if low == high:
        return low, low + 1
    step = _step(low, high, 10)
    return floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
