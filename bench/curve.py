"""The tables and plots of docs/aging.md on scenario ``aging-curve``: what two histories do to every filesystem.

    .venv/bin/python -m bench.curve [--seeds 1] [--jobs 2] [--run RUN,RUN] [--write]

Runs the scenario with every variant (or takes runs that are there), prints the tables, and with --write puts them into
docs/aging.md and the plots beside it.
"""

import sys
from collections.abc import Sequence
from fractions import Fraction

from agelab import vega
from agelab.results.run_directory import RunDirectory
from agelab.stats.series import Place
from bench.aging import PAGE, PICTURES, Variant, figure, headed, variants
from bench.page import command, line, put

Column = tuple[str, Place, Fraction, int]
"""Heading, what it is, a factor, decimals."""
ONE, PERCENT = Fraction(1), Fraction(100)
SCAN = ("then/scan", "slowdown")
SCORE = ("aged/map", "layout_score")
PLOTS = {
    "scan": ("slowdown of a scan, on the drive of then", "time on the aged disk / on its control", SCAN),
    "layout": ("layout score", "layout score", SCORE),
}


def report(runs: Sequence[RunDirectory]) -> str:
    """Write a table for each history, in Markdown. Raises InputError for runs of different tables."""
    found = variants(runs)
    lines = headed(runs)
    for history in runs[0].plan().histories:
        points = points_of(_of(found, history))
        columns = list(_columns(points))
        lines += [
            "",
            f"History `{history}`; points 1 to {points}, each after as many bytes:",
            "",
            line(["variant", *(heading for heading, *_ in columns)]),
            line(["---"] * (1 + len(columns))),
            *(_row(variant, history, columns) for variant in _of(found, history)),
            "",
            f"![slowdown of a scan over history {history}](aging/curve-{history}-scan.svg)",
            "",
            f"![layout score over history {history}](aging/curve-{history}-layout.svg)",
        ]
    lines += ["", *(f"- {variant.name}: {variant.why}" for variant in found if variant.why)]
    return "\n".join(lines).rstrip() + "\n"


def _columns(points: int) -> list[Column]:
    each = range(1, points + 1)
    found: list[Column] = [(f"scan, then, {n}", ("then/scan", n, "slowdown"), ONE, 2) for n in each]
    for drive, test in (("then", "search"), ("today", "scan"), ("today", "search")):
        found.append((f"{test}, {drive}, {points}", (f"{drive}/{test}", points, "slowdown"), ONE, 2))
    found += [(f"layout score, {n}", ("aged/map", n, "layout_score"), ONE, 4) for n in each]
    found.append((f"of control, {points}", ("control/map", points, "layout_score"), ONE, 4))
    found.append((f"dynamic, then, {points}", ("then/aged/scan", points, "dynamic_layout_score"), ONE, 3))
    found.append(
        (f"free in runs >= 1 MiB, %, {points}", ("aged/map", points, "free_usable_1mib"), PERCENT, 1)
    )
    found.append((f"full, %, {points}", ("replay", points, "fullness"), PERCENT, 1))
    return found


def _row(variant: Variant, history: str, columns: Sequence[Column]) -> str:
    cells = [figure(variant, place, factor, decimals) for _, place, factor, decimals in columns]
    return line([variant.name.removesuffix(f"-{history}"), *cells])


def _of(found: Sequence[Variant], history: str) -> list[Variant]:
    return [variant for variant in found if variant.name.endswith(f"-{history}")]


def points_of(found: Sequence[Variant]) -> int:
    """Count the points of the history that these variants have reached."""
    places = (place for variant in found for place in variant.measured)
    return max((number for step, number, _ in places if step == "replay"), default=0)


def write(runs: Sequence[RunDirectory], text: str) -> None:
    """Put the tables into the page, and the plots beside it."""
    put(PAGE, "python -m bench.curve --write", text)
    found = variants(runs)
    for history in runs[0].plan().histories:
        for name, (title, label, (step, metric)) in PLOTS.items():
            series = {
                variant.name.removesuffix(f"-{history}"): [
                    (number, _median(variant, (step, number, metric)))
                    for number in range(1, points_of(_of(found, history)) + 1)
                ]
                for variant in _of(found, history)
                if variant.measured
            }
            picture = vega.plot(f"history {history}: {title}", "point of the history", label, series)
            (PICTURES / f"curve-{history}-{name}.svg").write_text(picture)


def _median(variant: Variant, place: Place) -> float | None:
    summary = variant.summary(place)
    return float(summary.median) if summary else None


if __name__ == "__main__":
    sys.exit(command(__doc__, "aging-curve", "1", report, write))
