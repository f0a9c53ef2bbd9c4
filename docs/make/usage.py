"""The answer of docs/aging-numbers.md to what ages a filesystem, fullness or usage: scenario ``fullness-or-usage``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

from agelab.analysis import vega
from agelab.analysis.calibration import HostNoise
from agelab.analysis.judge import judge
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series, SeriesPair, Summary
from agelab.stats.verdict import ComparedSeries
from docs.make.aging import Variant, figure, headed, variants_of
from docs.make.catalogue import Made, Table
from docs.make.curve import ONE, points_of
from docs.make.findings import depends, ratio_text
from docs.make.page import grid, line

METRICS = {
    "slowdown of a scan": ("then/scan", "slowdown", 3),
    "layout score": ("aged/map", "layout_score", 4),
    "dynamic layout score": ("then/aged/scan", "dynamic_layout_score", 3),
}
SCAN = METRICS["slowdown of a scan"]
Grid = Mapping[tuple[str, int], Summary]
"""Fullness (a history) and usage (a point) to what was measured there."""


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make each filesystem's grid and the factor that matters more; without pictures that answer alone.

    Raises InputError for runs of different tables.
    """
    variants = variants_of(runs)
    histories = list(runs[0].plan().histories)
    if not table.pictures:
        return Made("\n".join([*answers(variants, histories), "", f"`{table.command}`:", *headed(runs)]))
    usages = range(1, 1 + points_of(variants))
    head = ["filesystem", "full, %"]
    head += [f"{name}, {usage}" for name in METRICS for usage in usages]
    lines = [
        *headed(runs),
        "Usage 1, 2, 3: so many disks of bytes were written. Medians, and in brackets the spread over run seeds.",
        "",
        *grid(head),
    ]
    for filesystem in _filesystems(variants, histories):
        for history in histories:
            variant = _variant(variants, filesystem, history)
            cells = [
                figure(variant, (step, usage, metric), ONE, decimals)
                for step, metric, decimals in METRICS.values()
                for usage in usages
            ]
            lines.append(line([filesystem, history.removeprefix("full"), *cells]))
    lines += ["", *answers(variants, histories)]
    lines += [f"- {variant.name}: {variant.why}" for variant in variants if variant.why]
    for filesystem in _filesystems(variants, histories):
        lines += [
            "",
            f"![slowdown of a scan by usage and fullness, {filesystem}]({table.pictures}/usage-{filesystem}.svg)",
        ]
    return Made("\n".join(lines), _plots(variants, histories, Path(table.pictures)))


@dataclass(frozen=True)
class Effect:
    """How many times as much a scan loses at the last level of one factor as at its first, at each of the other's."""

    judged: ComparedSeries
    levels: Sequence[str]
    """The other factor's, which stand for the corpora of the test, by their numbers."""

    @property
    def text(self) -> str:
        """The ratio with its interval and the verdict, or a ratio for each level where no one ratio fits all."""
        return ratio_text(self.judged, lambda level: self.levels[level])

    @property
    def range(self) -> tuple[float, float] | None:
        """How far from 1 it may lie, either way, as logarithms; None where too few seeds leave it no interval."""
        shift = self.judged.shift
        if shift is None:
            return None
        intervals = [of_corpus.interval for of_corpus in shift.corpora] if shift.depends else [shift.interval]
        known = [interval for interval in intervals if interval]
        if len(known) < len(intervals):
            return None
        ends = [log(end) for interval in known for end in (interval.low, interval.high)]
        least = 0.0 if min(ends) <= 0 <= max(ends) else min(map(abs, ends))
        return least, max(map(abs, ends))


def answers(variants: Sequence[Variant], histories: Sequence[str]) -> Iterator[str]:
    """Say how far usage and fullness each move the slowdown of a scan, and which of them moves it further."""
    usages = [str(usage) for usage in range(1, 1 + points_of(variants))]
    full = [f"{history.removeprefix('full')} %" for history in histories]
    yield (
        "How many times as much a scan loses, with the interval (95 %) that the rank test leaves: by usage at each "
        "fullness, by fullness at each usage. Where no one ratio fits all of them, each has its own, with that of 99 %."
    )
    yield ""
    head = (f"by usage: {usages[-1]} disks / {usages[0]}", f"by fullness: {full[-1]} / {full[0]}")
    yield from grid(["filesystem", *head, "which moves it further"])
    names = _filesystems(variants, histories)
    tables = [
        [[_series(variants, name, history, usage) for usage in map(int, usages)] for history in histories]
        for name in names
    ]
    pairs = [pair for table in tables for pair in (_ends(table), _ends(list(zip(*table, strict=True))))]
    judged = iter(judge(pairs, HostNoise()))
    for name in names:
        usage, fullness = Effect(next(judged), full), Effect(next(judged), usages)
        yield line([name, usage.text, fullness.text, _further(usage, fullness)])


def _further(usage: Effect, fullness: Effect) -> str:
    if depends(usage.judged) and depends(fullness.judged):
        return "each depends on the other"
    if not usage.range or not fullness.range:
        return "not known: too few seeds"
    if usage.range[0] > fullness.range[1]:
        return "usage"
    return "fullness" if fullness.range[0] > usage.range[1] else "not known"


def _ends(table: Sequence[Sequence[Series]]) -> SeriesPair:
    """Pair the first and the last column; each row stands for a corpus, as its values are compared with its own."""
    sides = []
    for column in (0, -1):
        of = [row[column] for row in table]
        values = [(Seeds(at, seeds.run), value) for at, series in enumerate(of) for seeds, value in series.values]
        sides.append(replace(of[0], numbers=tuple(values), missing=()))
    return SeriesPair(*sides)


def _series(variants: Sequence[Variant], filesystem: str, history: str, usage: int) -> Series:
    step, metric, _ = SCAN
    there = _variant(variants, filesystem, history).measured.get((step, usage, metric))
    return there or Series(step, usage, metric, "1", (), ())


def _grid(variants: Sequence[Variant], filesystem: str, histories: Sequence[str]) -> Grid:
    step, metric, _ = SCAN
    return {
        (history, usage): summary
        for history in histories
        for usage in range(1, 1 + points_of(variants))
        if (summary := _variant(variants, filesystem, history).summary((step, usage, metric)))
    }


def _variant(variants: Sequence[Variant], filesystem: str, history: str) -> Variant:
    name = f"{filesystem}-{history}"
    return next((variant for variant in variants if variant.name == name), Variant(name, {}, ""))


def _filesystems(variants: Sequence[Variant], histories: Sequence[str]) -> list[str]:
    names = (variant.name.removesuffix(f"-{history}") for variant in variants for history in histories)
    return list(dict.fromkeys(name for name in names if f"{name}-{histories[0]}" in {v.name for v in variants}))


def _plots(variants: Sequence[Variant], histories: Sequence[str], directory: Path) -> dict[Path, bytes]:
    """Draw a plot of each filesystem, with a line for each degree of fullness."""
    drawn = {}
    for filesystem in _filesystems(variants, histories):
        grid = _grid(variants, filesystem, histories)
        series = {
            f"{history.removeprefix('full')} % full": [
                (usage, float(summary.median)) for (name, usage), summary in grid.items() if name == history
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
