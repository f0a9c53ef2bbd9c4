"""The answer of docs/aging.md to what ages a filesystem, fullness or usage: scenario ``fullness-or-usage``."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

from agelab import vega
from agelab.results.run_directory import RunDirectory
from agelab.stats.order_statistics import Summary
from bench.aging import Variant, figure, headed, variants
from bench.curve import ONE, points_of
from bench.page import line
from bench.tables.catalogue import Table
from bench.tables.made import Made

METRICS = {
    "slowdown of a scan": ("then/scan", "slowdown", 3),
    "layout score": ("aged/map", "layout_score", 4),
    "dynamic layout score": ("then/aged/scan", "dynamic_layout_score", 3),
}
SCAN = METRICS["slowdown of a scan"]
Grid = Mapping[tuple[str, int], Summary]
"""Fullness (a history) and usage (a point) to what was measured there."""


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make each filesystem's grid and the factor that matters more. Raises InputError for runs of different tables."""
    found = variants(runs)
    histories = list(runs[0].plan().histories)
    usages = range(1, 1 + points_of(found))
    head = ["filesystem", "full, %"]
    head += [f"{name}, {usage}" for name in METRICS for usage in usages]
    lines = [
        *headed(runs),
        "Usage 1, 2, 3: so many disks of bytes were written. Medians, and "
        "in brackets the spread over run seeds.",
        "",
        line(head),
        line(["---"] * len(head)),
    ]
    for filesystem in _filesystems(found, histories):
        for history in histories:
            variant = _variant(found, filesystem, history)
            cells = [
                figure(variant, (step, usage, metric), ONE, decimals)
                for step, metric, decimals in METRICS.values()
                for usage in usages
            ]
            lines.append(line([filesystem, history.removeprefix("full"), *cells]))
    lines += ["", *_answers(found, histories)]
    lines += [f"- {variant.name}: {variant.why}" for variant in found if variant.why]
    for filesystem in _filesystems(found, histories):
        lines += [
            "",
            f"![slowdown of a scan by usage and fullness, {filesystem}]({table.pictures}/usage-{filesystem}.svg)",
        ]
    return Made("\n".join(lines), _plots(found, histories, Path(table.pictures)))


SEEDS = 5
"""Run seeds from which on the spread says anything."""


def _answers(found: Sequence[Variant], histories: Sequence[str]) -> Iterator[str]:
    """Say how much each of the two factors changes the slowdown of a scan, averaged over the other, and the spread."""
    yield "By how much the slowdown of a scan moves, from the least to the most, the other averaged away:"
    yield ""
    yield line(["filesystem", "by fullness", "by usage", "spread", "more of it comes of"])
    yield line(["---"] * 5)
    for filesystem in _filesystems(found, histories):
        grid = _grid(found, filesystem, histories)
        if not grid:
            continue
        fullness, usage = (_moved(grid, axis) for axis in (0, 1))
        enough = min(summary.n for summary in grid.values()) >= SEEDS
        spread = max(float(summary.spread) for summary in grid.values())
        more = "fullness" if fullness > usage else "usage"
        if not enough:
            said = f"{more}; too few seeds"
        elif abs(fullness - usage) > spread:
            said = more
        else:
            said = "neither: they differ by less than seeds do"
        yield line([filesystem, f"{fullness:.3f}", f"{usage:.3f}", f"{spread:.3f}" if enough else "-", said])


def _moved(grid: Grid, axis: int) -> float:
    """Return the range of the means along one axis."""
    levels = dict.fromkeys(place[axis] for place in grid)
    means = [
        mean(float(summary.median) for place, summary in grid.items() if place[axis] == level)
        for level in levels
    ]
    return max(means) - min(means)


def _grid(found: Sequence[Variant], filesystem: str, histories: Sequence[str]) -> Grid:
    step, metric, _ = SCAN
    return {
        (history, usage): summary
        for history in histories
        for usage in range(1, 1 + points_of(found))
        if (summary := _variant(found, filesystem, history).summary((step, usage, metric)))
    }


def _variant(found: Sequence[Variant], filesystem: str, history: str) -> Variant:
    name = f"{filesystem}-{history}"
    return next((one for one in found if one.name == name), Variant(name, {}, ""))


def _filesystems(found: Sequence[Variant], histories: Sequence[str]) -> list[str]:
    names = (one.name.removesuffix(f"-{history}") for one in found for history in histories)
    return list(dict.fromkeys(name for name in names if f"{name}-{histories[0]}" in {v.name for v in found}))


def _plots(found: Sequence[Variant], histories: Sequence[str], directory: Path) -> dict[Path, bytes]:
    """Draw a plot of each filesystem, with a line for each degree of fullness."""
    drawn = {}
    for filesystem in _filesystems(found, histories):
        grid = _grid(found, filesystem, histories)
        series = {
            f"{history.removeprefix('full')} % full": [
                (usage, float(summary.median)) for (one, usage), summary in grid.items() if one == history
            ]
            for history in histories
        }
        picture = vega.plot(
            f"{filesystem}: slowdown of a scan, by usage and fullness",
            "bytes written, in disks",
            "time on the aged disk / on its control",
            {name: points for name, points in series.items() if points},
        )
        drawn[directory / f"usage-{filesystem}.svg"] = picture.encode()
    return drawn
