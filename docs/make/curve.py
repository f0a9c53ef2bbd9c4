"""The tables and plots of docs/aging-numbers.md on scenario ``aging-curve``: two histories on every filesystem."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

from agelab.analysis import vega
from agelab.results.cell_samples import Place
from agelab.results.run_directory import RunDirectory
from docs.make.aging import Variant, figure, headed, variants_of
from docs.make.catalogue import Made, Table
from docs.make.page import grid

Column = tuple[str, Place, Fraction, int]
"""Heading, what it is, a factor, decimals."""
ONE, PERCENT = Fraction(1), Fraction(100)
SCAN = ("then/scan", "slowdown")
SCORE = ("aged/map", "layout_score")
PLOTS = {
    "scan": ("slowdown of a scan, on the drive of then", "time on the aged disk / on its control", SCAN),
    "layout": ("layout score", "layout score", SCORE),
}


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make a table and two plots for each history. Raises InputError for runs of different tables."""
    variants = variants_of(runs)
    lines = headed(runs)
    for history in runs[0].plan().histories:
        points = points_of(_of(variants, history))
        columns = list(_columns(points))
        lines += [
            "",
            f"History `{history}`; points 1 to {points}, each after as many bytes:",
            "",
            *grid(
                ["variant", *(heading for heading, *_ in columns)],
                (_row(variant, history, columns) for variant in _of(variants, history)),
            ),
            "",
            f"![slowdown of a scan over history {history}]({table.pictures}/curve-{history}-scan.svg)",
            "",
            f"![layout score over history {history}]({table.pictures}/curve-{history}-layout.svg)",
        ]
    lines += ["", *(f"- {variant.name}: {variant.why}" for variant in variants if variant.why)]
    return Made("\n".join(lines), _plots(runs[0].plan().histories, variants, Path(table.pictures)))


def _columns(points: int) -> list[Column]:
    each = range(1, points + 1)
    columns: list[Column] = [(f"scan, then, {n}", ("then/scan", n, "slowdown"), ONE, 2) for n in each]
    for drive, test in (("then", "search"), ("today", "scan"), ("today", "search")):
        columns.append((f"{test}, {drive}, {points}", (f"{drive}/{test}", points, "slowdown"), ONE, 2))
    columns += [(f"layout score, {n}", ("aged/map", n, "layout_score"), ONE, 4) for n in each]
    columns.append((f"of control, {points}", ("control/map", points, "layout_score"), ONE, 4))
    columns.append((f"dynamic, then, {points}", ("then/aged/scan", points, "dynamic_layout_score"), ONE, 3))
    columns.append((f"free in runs >= 1 MiB, %, {points}", ("aged/map", points, "free_usable_1mib"), PERCENT, 1))
    columns.append((f"full, %, {points}", ("replay", points, "fullness"), PERCENT, 1))
    return columns


def _row(variant: Variant, history: str, columns: Sequence[Column]) -> list[str]:
    cells = [figure(variant, place, factor, decimals) for _, place, factor, decimals in columns]
    return [variant.name.removesuffix(f"-{history}"), *cells]


def _of(variants: Sequence[Variant], history: str) -> list[Variant]:
    return [variant for variant in variants if variant.name.endswith(f"-{history}")]


def points_of(variants: Sequence[Variant]) -> int:
    """Count the points of the history that these variants have reached."""
    places = (place for variant in variants for place in variant.measured)
    return max((number for step, number, _ in places if step == "replay"), default=0)


def _plots(histories: Iterable[str], variants: Sequence[Variant], directory: Path) -> dict[Path, bytes]:
    drawn = {}
    for history in histories:
        for name, (title, label, (step, metric)) in PLOTS.items():
            series = {
                variant.name.removesuffix(f"-{history}"): [
                    (number, _median(variant, (step, number, metric)))
                    for number in range(1, points_of(_of(variants, history)) + 1)
                ]
                for variant in _of(variants, history)
                if variant.measured
            }
            picture = vega.plot(f"history {history}: {title}", "point of the history", label, series)
            drawn[directory / f"curve-{history}-{name}.svg"] = picture.encode()
    return drawn


def _median(variant: Variant, place: Place) -> float | None:
    summary = variant.summary(place)
    return float(summary.median) if summary else None
