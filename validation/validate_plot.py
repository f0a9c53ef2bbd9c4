"""The figure of docs/validation.md: seek times and rates of some disks, measured and as their profiles have them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import log10, sqrt

from agelab.machine.drive import geometry
from validation.validate_report import Curve

SHOWN = {
    "hitachi-ic25n040atmr04": "#b3478f",
    "hitachi-hds722525vlat80": "#0072b2",
    "samsung-hd501lj": "#d55e00",
    "wd-hus726t6tale6l4": "#00805c",
}
"""The plotted disks and their colours: a few different ones of 2003 to 2018."""
LABELS = ("Travelstar 80GN", "Deskstar 7K250", "SpinPoint HD501LJ", "Ultrastar HC310")
INK, PALE = "#222222", "#dddddd"
WIDTH, HEIGHT = 1016, 452
TOP, BOTTOM = 64, 350
PANEL = 320


@dataclass
class Panel:
    """A plot with its axes; x is a share of 1."""

    left: int
    title: str
    below: str
    y: Callable[[float], float]
    """The share of the height at which a value stands."""
    ticks: Sequence[float]
    drawn: list[str] = field(default_factory=list)

    def at(self, x: float, value: float) -> tuple[float, float]:
        """Where in the figure."""
        return self.left + x * PANEL, BOTTOM - self.y(value) * (BOTTOM - TOP)

    def frame(self) -> None:
        """Title, grid and ticks."""
        self.text(self.left, TOP - 18, self.title, weight="600")
        self.text(self.left + PANEL / 2, BOTTOM + 38, self.below, anchor="middle")
        for tick in self.ticks:
            _, y = self.at(0, tick)
            self.line(self.left, y, self.left + PANEL, y, PALE)
            self.text(self.left - 8, y + 4, f"{tick:g}", anchor="end")
        for percent in range(0, 101, 25):
            x, _ = self.at(percent / 100, self.ticks[0])
            self.line(x, BOTTOM, x, BOTTOM + 5, INK)
            self.text(x, BOTTOM + 19, f"{percent} %", anchor="middle")
        self.line(self.left, BOTTOM, self.left + PANEL, BOTTOM, INK)

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "start", colour: str = INK, weight: str = "400"
    ) -> None:
        """Words at a place of the figure."""
        self.drawn.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">'
            f"{escape(words)}</text>"
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, colour: str) -> None:
        """Draw a thin line."""
        self.drawn.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'
        )

    def curve(self, function: Callable[[float], float], colour: str) -> None:
        """Draw a function on 0 to 1, with more points where it may be steep."""
        points = [self.at(x, function(x)) for x in ((n / 120) ** 2 for n in range(121))]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.4"/>')

    def dots(self, values: Sequence[tuple[float, float]], colour: str) -> None:
        """Draw the measured values."""
        for place in values:
            x, y = self.at(*place)
            self.drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.3" fill="{colour}"/>')

    def rings(self, values: Sequence[tuple[float, float]], colour: str) -> None:
        """Draw the values of the profile."""
        for place in values:
            self.ring(*self.at(*place), colour)

    def ring(self, x: float, y: float, colour: str) -> None:
        """One of them, at a place of the figure."""
        self.drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        )


def figure(curves: Sequence[Curve]) -> str:
    """Draw the figure as SVG."""
    seeks = Panel(
        56,
        "Seek time, ms",
        "cylinders crossed, share of the full stroke",
        lambda ms: ms / 24,
        (0, 4, 8, 12, 16, 20, 24),
    )
    rates = Panel(
        566,
        "Sustained rate, MB/s (logarithmic)",
        "position on the drive, share of its sectors",
        lambda mb: (log10(mb) - 1) / (log10(300) - 1),
        (10, 20, 50, 100, 200, 300),
    )
    for panel in (seeks, rates):
        panel.frame()
    known = {curve.drive.name: curve for curve in curves}
    for (name, colour), label in zip(SHOWN.items(), LABELS, strict=True):
        if name in known:
            _seeks(seeks, known[name], colour, label)
            _rates(rates, known[name], colour, label)
    _legend(seeks)
    style = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" {style}>',
            "<title>Seek times and rates of modelled disks, measured in a guest</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            *seeks.drawn,
            *rates.drawn,
            "</svg>\n",
        ]
    )


def _seeks(panel: Panel, curve: Curve, colour: str, label: str) -> None:
    disk, seek = curve.disk, geometry.seek_curve(curve.disk)

    def time(x: float) -> float:
        return (seek.minimum + seek.root * sqrt(x) + seek.linear * x) / 1e6

    # The average is over all distances; it stands where the curve has it.
    typical = next(x / 1000 for x in range(1001) if time(x / 1000) >= disk.average_ms.value)
    sheet = [
        (0, disk.track_to_track_ms.value),
        (typical, disk.average_ms.value),
        (1, disk.full_stroke_ms.value),
    ]
    panel.curve(time, colour)
    panel.dots(curve.seeks, colour)
    panel.rings(sheet, colour)
    x, y = panel.at(1, disk.full_stroke_ms.value)
    panel.text(x + 12, y + 4, label, colour=colour)


def _rates(panel: Panel, curve: Curve, colour: str, label: str) -> None:
    outer, inner = curve.disk.outer_mb_s.value, curve.disk.inner_mb_s.value

    def rate(x: float) -> float:
        # It falls linearly with the track, and a track holds as much as its rate says.
        return sqrt(outer**2 - (outer**2 - inner**2) * x)

    panel.curve(rate, colour)
    panel.dots(curve.rates, colour)
    panel.rings([(0, outer), (1, inner)], colour)
    x, y = panel.at(1, inner)
    panel.text(x + 12, y + 4, label, colour=colour)


def _legend(panel: Panel) -> None:
    y, x = HEIGHT - 26, panel.left
    panel.ring(x + 6, y - 4, INK)
    panel.text(x + 20, y, "its profile")
    panel.line(x + 120, y - 4, x + 146, y - 4, INK)
    panel.text(x + 154, y, "what the model makes of it")
    panel.drawn.append(f'<circle cx="{x + 370}" cy="{y - 4}" r="2.3" fill="{INK}"/>')
    panel.text(x + 382, y, "measured in the guest")
