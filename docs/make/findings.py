"""The figures of docs/aging.md: for each finding, ratios of two measures with the interval that the seeds leave.

And how many cells meet a condition, with the interval of a share.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated

from pydantic import StringConstraints
from scipy.stats import binomtest

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import RunSet, SeedGroup, load
from agelab.analysis.judge import judge
from agelab.base.errors import InputError, unknown
from agelab.base.types import Frozen
from agelab.results.measure import Measure
from agelab.results.run_directory import RunDirectory
from agelab.scenario import toml_files
from agelab.scenario.seeds import seeds_text
from agelab.stats.formatting import format_ratio
from agelab.stats.series import Series, SeriesPair
from agelab.stats.shift import Interval
from agelab.stats.verdict import ComparedSeries
from docs.make.catalogue import Made, Table
from docs.make.page import DOCS, grid
from docs.make.printed import environment

FIGURES = DOCS / "findings.toml"
SIDE = r"^(?:(\d+): )?(.+) ([^ ]+)$"

Side = Annotated[str, StringConstraints(pattern=SIDE)]
"""[RUN: ]VARIANT[ LAYOUT] STEP[:REPETITION]:METRIC; RUN counts the table's runs from 1, each on each of its kernels."""


class Ratio(Frozen):
    """A line of a finding's table: how many times as much ``of`` is as ``to``."""

    what: str
    of: Side
    to: Side


class Count(Frozen):
    """A line of a finding's table: in how many cells of these variants ``less`` is below ``than``."""

    what: str
    run: int = 1
    variants: tuple[str, ...]
    less: str
    than: str


class Figures(Frozen):
    """The lines of each finding's table, by its name in docs/tables.toml."""

    findings: Mapping[str, tuple[Ratio | Count, ...]]


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the table of one finding. Raises InputError for a side that no cell has measured."""
    figures = toml_files.read(FIGURES, Figures).findings
    if table.name not in figures:
        raise unknown("finding", table.name, list(figures))
    groups = [RunSet((load(run),)).groups for run in runs]
    rows = figures[table.name]
    ratios = [row for row in rows if isinstance(row, Ratio)]
    pairs = [SeriesPair(_series(row.to, groups), _series(row.of, groups)) for row in ratios]
    judged = dict(zip(ratios, judge(pairs, HostNoise()), strict=True))
    interval = "95 %; of one corpus 99 %" if any(map(depends, judged.values())) else "95 %"
    seeds = [result.seeds for run in groups for group in run for result in group.results]
    lines = [
        *grid(
            ["", f"times as much ({interval}), verdict"],
            (
                [row.what, _judged_text(judged[row]) if isinstance(row, Ratio) else _counted(row, groups)]
                for row in rows
            ),
        ),
        "",
        f"`{table.command}`: run {seeds_text(seeds)}. {environment(runs)}",
    ]
    return Made("\n".join(lines))


def _judged_text(judged: ComparedSeries) -> str:
    words = ratio_text(judged, lambda corpus: f"corpus {corpus}")
    return f"{words}, {judged.word}" if depends(judged) else words


def _counted(row: Count, groups: Sequence[Sequence[SeedGroup]]) -> str:
    sides = [[_series(f"{row.run}: {variant} {of}", groups) for of in (row.less, row.than)] for variant in row.variants]
    return share(sides)


def share(sides: Iterable[Sequence[Series]]) -> str:
    """Return in how many cells the first series of two is below the second, with the interval (95 %) of that share.

    The interval is that of C. Clopper and E. Pearson (Biometrika 26, 1934): it takes the cells as independent.
    """
    below = []
    for less, than in sides:
        limits = dict(than.values)
        below += [value < limits[seeds] for seeds, value in less.values]
    ends = binomtest(sum(below), len(below)).proportion_ci(0.95)
    return f"{sum(below)} of {len(below)} ({100 * ends.low:.0f} to {100 * ends.high:.0f} %)"


def _series(side: str, groups: Sequence[Sequence[SeedGroup]]) -> Series:
    match = re.fullmatch(SIDE, side)
    assert match, "the edge has checked it"
    run, name, measure = match.groups()
    if not 1 <= int(run or 1) <= len(groups):
        raise InputError(f"{FIGURES}: {side}: its table has {len(groups)} runs")
    there = {group.name: group for group in groups[int(run or 1) - 1]}
    if name not in there:
        raise unknown("variant", name, list(there))
    series = there[name].measured(Measure.parse(measure, f"{FIGURES}:"))
    if series is None or not series.values:
        raise InputError(f"{FIGURES}: {side}: no cell has measured it")
    return series


# ---- one comparison in words ----


def depends(judged: ComparedSeries) -> bool:
    """Return True if no one ratio fits all corpora."""
    return judged.shift is not None and judged.shift.depends


def ratio_text(judged: ComparedSeries, corpus: Callable[[int], str]) -> str:
    """Return B/A with its interval (95 %) and the verdict.

    Where no one ratio fits all corpora each has its own, with its interval (99 %); ``corpus`` names one by its seed.
    """
    shift = judged.shift
    if shift is None:
        return "not measured"
    if depends(judged):
        return ", ".join(
            f"{corpus(of_corpus.corpus)}: {_ratio(of_corpus.value, of_corpus.interval)}" for of_corpus in shift.corpora
        )
    if shift.interval is None:
        return f"{_ratio(shift.value, None)}, not known"
    return f"{_ratio(shift.value, shift.interval, apart=judged.differs)}, {judged.word}"


def _ratio(value: Fraction, interval: Interval | None, *, apart: bool = True) -> str:
    ends = (interval.low, interval.high) if interval else ()
    shown, *between = format_ratio(value, ends, apart)
    return f"{shown} ({' to '.join(between)})" if between else shown
