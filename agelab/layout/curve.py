"""A metric over the time of aging, for one filesystem or several, as SVG. docs/pictures.md says how to read it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10

from agelab.layout import svg

WIDTH, HEIGHT = 1000, 480
LEFT, TOP, BOTTOM = 76, 80, 410
NAMES = 196
"""Room at the right for the names of the lines."""
LINE_HEIGHT = 15
# Colours of like strength that differ to colour-blind eyes; the shapes of the points tell them apart in grey, and
# from the eighth series on, dashes tell them from the first.
COLOURS = ("#0072b2", "#c8500a", "#00805c", "#b3478f", "#8a6d00", "#222222", "#3f8fc4")
SHAPES = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
    "M-3.3-3.3h6.6v6.6h-6.6z",
    "M0-4.4L4.2 3.2H-4.2z",
    "M0-4.6L4.6 0L0 4.6L-4.6 0z",
    "M0 4.4L4.2-3.2H-4.2z",
)
DASHES = ("", "6 3", "2 3")
Point = tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class Axis:
    """Values along an axis."""

    low: float
    high: float
    start: float
    """Where the lowest value stands in the picture, and"""
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Where a value stands."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def plot(
    title: str, x_label: str, y_label: str, series: Mapping[str, Sequence[Point]], names: Sequence[str] = ()
) -> str:
    """A line for each series, with a gap where its value is None (not measured); y is 0 to 1 for shares.

    With ``names`` x counts these, from 0 on, and they stand below the axis.
    """
    points = [point for line in series.values() for point in line]
    values = [y for _, y in points if y is not None]
    for value in [*values, *(x for x, _ in points)]:
        if not isfinite(value):
            raise ValueError(f"{value} is not a figure that can be drawn; what was not measured is None")
    headings = svg.folded(title, 84)
    lower = 24 * (len(headings) - 1)
    x = _scale([x for x, _ in points], LEFT, WIDTH - NAMES)
    if names:
        x = Axis(0, max(1, len(names) - 1), LEFT, WIDTH - NAMES, tuple(range(len(names))))
    # All values between 0 and 1 are shares: drawn on the whole scale, so that two pictures compare.
    shares = all(0 <= value <= 1 for value in values)
    y = _scale([0, 1] if shares else values, BOTTOM + lower, TOP + lower)
    parts = [svg.text(LEFT, 34 + 24 * row, words, size=18, weight=600) for row, words in enumerate(headings)]
    parts += _axes(x, y, x_label, y_label, names)
    ends: list[tuple[float, str, int]] = []
    gaps = []
    for index, (name, line) in enumerate(series.items()):
        drawn, end = _line(index, line, x, y)
        parts += drawn
        if end is not None:
            ends.append((end, name, index))
        missing = sum(1 for _, value in line if value is None)
        if missing or not line:
            gaps.append(
                f"{name} at {missing} of {len(line)} points" if end is not None else f"{name} at all points"
            )
    parts += _names(ends, y)
    height = HEIGHT + lower
    notes = [f"not measured (×, and a gap in the line): {', '.join(gaps)}"] if gaps else []
    for note in notes if series else ["nothing was measured"]:
        for words in svg.folded(note, 130):
            parts.append(svg.text(LEFT, height, words, size=11, fill=svg.FAINT))
            height += 15
    return svg.document(WIDTH, height + 6, title, " ".join(_in_words(y_label, series)), parts)


def _scale(values: Sequence[float], start: float, end: float) -> Axis:
    """An axis with round ticks that holds all values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    whole = bool(values) and all(value == int(value) for value in values)
    if low == high:
        margin = 1 if whole else abs(low) / 2
        low, high = low - margin, high + margin
    step = _round_step((high - low) / 5)
    if whole and (low, high) != (0, 1):
        step = max(step, 1.0)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(number * step for number in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, the next one to a rough step."""
    power = 10.0 ** floor(log10(rough))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough * 0.999), 10 * power)


def _axes(x: Axis, y: Axis, x_label: str, y_label: str, names: Sequence[str]) -> Iterator[str]:
    """Grid, ticks and what they are of; a power of a thousand that all ticks share goes into the words."""
    unit, suffix = _unit(y)
    yield svg.text(LEFT - 48, y.end - 14, y_label + suffix, fill=svg.FAINT)
    for tick in y.ticks:
        yield svg.line(LEFT, y.at(tick), x.end, y.at(tick), svg.GRID)
        yield svg.text(LEFT - 8, y.at(tick) + 4, f"{tick / unit:.6g}", anchor="end")
    unit, suffix = _unit(x)
    for tick in x.ticks:
        yield svg.line(x.at(tick), y.start, x.at(tick), y.start + 5, svg.INK)
        words = names[int(tick)] if names else f"{tick / unit:.6g}"
        yield svg.text(x.at(tick), y.start + 31, words, anchor="middle")
    yield svg.line(LEFT, y.start, x.end, y.start, svg.INK)
    yield svg.text((LEFT + x.end) / 2, y.start + 51, x_label + suffix, anchor="middle", fill=svg.FAINT)


def _unit(scale: Axis) -> tuple[float, str]:
    largest = max(abs(scale.low), abs(scale.high))
    power = 3 * floor(log10(largest) / 3) if largest >= 10000 or largest < 0.001 else 0
    digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return 10.0**power, f" (×10{digits})" if power else ""


def _line(index: int, line: Sequence[Point], x: Axis, y: Axis) -> tuple[list[str], float | None]:
    """A series, and at what height it ends; None when nothing of it was measured."""
    colour = COLOURS[index % len(COLOURS)]
    dash = DASHES[index // len(COLOURS) % len(DASHES)]
    more = f' stroke-dasharray="{dash}"' if dash else ""
    runs: list[list[tuple[float, float]]] = [[]]
    missing = []
    for time, value in line:
        if value is None:
            missing.append(x.at(time))
            runs.append([])
        else:
            runs[-1].append((x.at(time), y.at(value)))
    measured = [place for run in runs for place in run]
    if not measured:
        return [], None
    parts = []
    for run in runs:
        if len(run) > 1:
            path = " ".join(f"{svg.number(at)},{svg.number(height)}" for at, height in run)
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{more}/>'
            )
    shape = SHAPES[index % len(SHAPES)]
    parts += [
        f'<path d="{shape}" transform="translate({svg.number(at)} {svg.number(height)})" fill="{colour}"'
        ' stroke="#ffffff" stroke-width="0.8"/>'
        for at, height in measured
    ]
    parts += [svg.text(at, y.start + 16, "×", anchor="middle", fill=colour) for at in missing]
    return parts, measured[-1][1]


def _names(ends: Sequence[tuple[float, str, int]], y: Axis) -> Iterator[str]:
    """The name of each line beside its end, with a thin line to it where they had to be moved apart."""
    ordered = sorted(ends, key=lambda end: end[0])
    x = WIDTH - NAMES
    places = _apart([height for height, _, _ in ordered], y.end, y.start)
    for place, (height, name, index) in zip(places, ordered, strict=True):
        colour = COLOURS[index % len(COLOURS)]
        yield svg.line(x + 6, height, x + 22, place, colour, 'stroke-width="0.7"')
        shown = name if len(name) <= 22 else f"{name[:21]}…"
        yield (
            f'<path d="{SHAPES[index % len(SHAPES)]}" transform="translate({x + 29} {svg.number(place)})"'
            f' fill="{colour}"/>'
        )
        yield svg.text(x + 38, place + 4, shown, fill=colour)


def _apart(wanted: Sequence[float], top: float, bottom: float) -> list[float]:
    """Places in rising order, a line apart; those that crowd are centred on where they would be."""
    # Each block: the first place of its lines, were it free, summed over its lines; and how many they are.
    blocks: list[tuple[float, int]] = []

    def start(block: tuple[float, int]) -> float:
        total, lines = block
        return max(top, min(total / lines, bottom - (lines - 1) * LINE_HEIGHT))

    for place in wanted:
        blocks.append((place, 1))
        while len(blocks) > 1 and start(blocks[-1]) < start(blocks[-2]) + blocks[-2][1] * LINE_HEIGHT:
            (total, lines), (more, others) = blocks[-2], blocks[-1]
            blocks[-2:] = [(total + more - others * lines * LINE_HEIGHT, lines + others)]
    return [start(block) + line * LINE_HEIGHT for block in blocks for line in range(block[1])]


def _in_words(y_label: str, series: Mapping[str, Sequence[Point]]) -> Iterator[str]:
    """The picture for whoever does not see it."""
    for name, line in series.items():
        values = [value for _, value in line if value is not None]
        if not values:
            yield f"{name}: not measured."
        else:
            rises = sum(1 for before, after in pairwise(values) if after > before)
            yield (
                f"{name}: {y_label} from {values[0]:.4g} to {values[-1]:.4g} in {len(values)} points,"
                f" {rises} of them above the one before."
            )
