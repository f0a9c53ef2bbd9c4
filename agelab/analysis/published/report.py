"""Report on a study: its rankings and figures beside ours, and a verdict on each of its claims."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import exp, log
from statistics import median
from typing import NamedTuple

from agelab.analysis.cells import RunResult
from agelab.analysis.published.claim_verdict import (
    COUNTED,
    KINDS,
    ClaimVerdict,
    JudgedClaim,
    judge_claim,
    stand_ins_run,
    within_band,
)
from agelab.analysis.published.claims import Claim, Claims, Place, PublishedFigure, PublishedTables, TableUse, Uncounted
from agelab.analysis.published.run_columns import RunColumn, run_columns
from agelab.analysis.published.study import Study, study_of_scenario
from agelab.analysis.published.values import READINGS, OurValues, PrintedValues, sum_values
from agelab.base.gathered import gathered
from agelab.stats.formatting import letter
from agelab.stats.kendall import competition_ranks, tau_b, tau_b_chance
from agelab.stats.series import Series

NEAR, FAR = Fraction(1, 4), 2
"""A cell is near within a quarter of the study's figure, and far beyond a factor of two."""
SPLIT = 3
"""Filesystems of a step that tell what they have in common from what they have not."""
GROWING = ("s", "B")
"""Units of figures that grow with the size of the data; shares and ratios do not."""


class Bands(NamedTuple):
    """Numbers of cells by their distance from the study's figure."""

    near: int
    """Within NEAR of it."""
    fair: int
    """The others within a factor of FAR."""
    far: int
    """Beyond."""

    @property
    def cells(self) -> int:
        return sum(self)


@dataclass(frozen=True)
class StepDeviation:
    """The cells of a step."""

    step: str
    ratios: Mapping[str, Fraction]
    """Variant to ours over theirs, in sizes of the study."""
    left_out: Mapping[str, str]
    """Variant to the reason why nothing is said of its cell, though both have a figure."""

    @property
    def bands(self) -> Bands:
        return _bands(self.ratios.values())

    @property
    def common(self) -> float | None:
        """The step's part, a factor: exp of the median of log(ours / theirs); None of fewer than SPLIT filesystems."""
        return exp(median(map(log, self.ratios.values()))) if len(self.ratios) >= SPLIT else None

    @property
    def rest(self) -> dict[str, float]:
        """Variant to its own part, a factor: its ratio over the step's part."""
        common = self.common
        return {name: float(ratio) / common for name, ratio in self.ratios.items()} if common else {}

    @property
    def typical_rest(self) -> float | None:
        """The factor, 1 or more, by which half of the filesystems' own parts are off, or by more."""
        return _typical(self.rest.values())

    @property
    def farthest(self) -> str | None:
        """The variant whose own part is the largest, either way; None where nothing is split."""
        rest = self.rest
        return max(rest, key=lambda name: abs(log(rest[name])), default=None)


@dataclass(frozen=True)
class TableDeviation:
    """How far the cells of a table are from the study's, for one side.

    A step's part is what all filesystems have in common: data, state, machine, drive. What remains is the filesystem's.
    """

    times: int | None
    """The factor that brings ours to the study's size; None where the side has no scale of the study's."""
    steps: tuple[StepDeviation, ...]

    def step(self, name: str) -> StepDeviation | None:
        """Return the cells of a step; None where the side has none."""
        return next((step for step in self.steps if step.step == name), None)

    @property
    def bands(self) -> Bands:
        return _bands(ratio for step in self.steps for ratio in step.ratios.values())

    @property
    def typical(self) -> float | None:
        """The factor, 1 or more, by which half of the cells are off, or by more."""
        return _typical(float(ratio) for step in self.steps for ratio in step.ratios.values())

    @property
    def typical_step(self) -> float | None:
        """The same of the steps' parts."""
        return _typical(step.common for step in self.steps if step.common)

    @property
    def typical_rest(self) -> float | None:
        """The same of the filesystems' parts."""
        return _typical(rest for step in self.steps for rest in step.rest.values())

    @property
    def own(self) -> dict[str, float]:
        """Variant to the median of its own parts over the steps, where it has SPLIT of them."""
        parts = gathered((name, log(rest)) for step in self.steps for name, rest in step.rest.items())
        return {name: exp(median(logs)) for name, logs in parts.items() if len(logs) >= SPLIT}


def _bands(ratios: Iterable[Fraction]) -> Bands:
    factors = list(ratios)
    near = sum(abs(factor - 1) <= NEAR for factor in factors)
    fair = sum(Fraction(1, FAR) <= factor <= FAR for factor in factors)
    return Bands(near, fair - near, len(factors) - fair)


def _typical(factors: Iterable[float]) -> float | None:
    logs = [abs(log(factor)) for factor in factors]
    return exp(median(logs)) if logs else None


FACTORS = ("slower_percent", "more_percent")
"""Metrics that compare one value with another: a ranking takes them as that factor."""


@dataclass(frozen=True)
class RankedColumn:
    """One side's values of one row."""

    values: Mapping[str, Series]
    """The value of each variant of the study's table."""
    tau: float | None
    """The agreement with the study, over the variants that both have."""
    common: int
    """The number of those variants."""
    chance: Fraction | None = None
    """The share of all orders of its values that agree with the study at least as well."""

    @cached_property
    def medians(self) -> Mapping[str, Fraction]:
        """The value of each variant that has one."""
        return {name: value.median for name, value in self.values.items() if value.values}

    def ratio(self, variant: str) -> Fraction | None:
        """Return the variant's value over the lowest one."""
        lowest = min(self.medians.values(), default=Fraction())
        return self.medians[variant] / lowest if variant in self.medians and lowest else None

    def rank(self, variant: str) -> int | None:
        """Return its place among the variants that have a value, 1 for the lowest."""
        ranks = competition_ranks(list(self.medians.values()))
        return dict(zip(self.medians, ranks, strict=True)).get(variant)


@dataclass(frozen=True)
class RankedRow:
    """A step of a table, or the sum of its steps: the study's ranking and ours."""

    step: str
    theirs: tuple[RankedColumn, ...]
    """One; of percentages that can be read in two ways, two."""
    ours: tuple[RankedColumn, ...]
    """One for each side."""
    uncounted: Uncounted | None = None
    """Why the study's row says nothing of ours, if so."""

    @property
    def name(self) -> str:
        """The step, with its mark where it is not counted."""
        return f"{self.step} ({self.uncounted.mark})" if self.uncounted else self.step


@dataclass(frozen=True)
class Overall:
    """Sums over the steps that both a side and the study have for every variant of the side."""

    steps: tuple[str, ...]
    theirs: RankedColumn
    ours: RankedColumn


@dataclass(frozen=True)
class Ranking:
    """One published table, in one layout and one metric."""

    table: str
    layout: str
    metric: str
    unit: str
    variants: tuple[str, ...]
    rows: tuple[RankedRow, ...]
    overall: tuple[Overall | None, ...]
    """One for each side; None where fewer than two steps or two variants are common."""
    deviations: tuple[TableDeviation, ...]
    """One for each side: how far its figures are from the study's."""

    @property
    def measured_rows(self) -> tuple[RankedRow, ...]:
        """The rows of which a run has a value."""
        return tuple(row for row in self.rows if any(column.medians for column in row.ours))


def measured(rankings: Iterable[Ranking]) -> Iterator[Ranking]:
    """Yield the tables and steps of which a run has a value."""
    for ranking in rankings:
        if rows := ranking.measured_rows:
            yield replace(ranking, rows=rows)


def rankings(figures: PublishedTables, claims: Claims, sources: Sequence[OurValues]) -> list[Ranking]:
    """Rank every table of the study in which two variants or more can be compared."""
    ranked = []
    printed = [PrintedValues(figures, claims, reading) for reading in READINGS]
    for use in claims.tables:
        # Layout, metric and unit of a table to the figures that are one ranking's.
        groups: dict[tuple[str, str, str], list[PublishedFigure]] = {}
        for figure in figures.of(use.id):
            factor = figure.metric in FACTORS
            metric, unit = (use.compares, "times") if factor else (figure.metric, figure.unit)
            groups.setdefault((figure.layout, metric, unit), []).append(figure)
        for (layout, metric, unit), members in groups.items():
            relative = [use.relative_to] if use.relative_to and unit == "times" else []
            variants = list(dict.fromkeys([*relative, *(figure.variant for figure in members)]))
            rows = []
            for step in dict.fromkeys(figure.step for figure in members):
                places: dict[str, Place] = {name: (use.id, name, layout, step, metric) for name in variants}
                row = _row(step, places, printed, sources)
                row = replace(row, uncounted=claims.why_uncounted(step, metric))
                rows += [row] if len(row.theirs[0].values) > 1 else []
            if rows:
                alone = [row for row in rows if row.step not in claims.sums and not row.uncounted]
                overall = tuple(_overall(alone, number) for number in range(len(sources)))
                ranked.append(
                    Ranking(
                        use.id, layout, metric, unit, tuple(variants), tuple(rows), overall,
                        tuple(
                            table_deviation(rows, side, unit, use, claims, source.column.shrink)
                            for side, source in enumerate(sources)
                        ),
                    )
                )  # fmt: skip
    return ranked


def table_deviation(
    rows: Sequence[RankedRow], side: int, unit: str, use: TableUse, claims: Claims, shrink: int | None
) -> TableDeviation:
    """Compare the cells of a table with a side's; a sum of its other rows has none of its own.

    ``shrink`` is what the side's scale divides every size by; None: it has no scale of the study's.
    """
    grows = unit in GROWING
    times = shrink if grows else 1
    relative_to = use.relative_to if unit == "times" else None
    printed = {row.step for row in rows}
    steps = []
    for row in rows:
        if printed & {*claims.sums.get(row.step, ())} - {row.step}:
            continue
        values = row.ours[side].values
        base = values.get(relative_to) if relative_to else None
        ratios: dict[str, Fraction] = {}
        left_out: dict[str, str] = {}
        for name, value in values.items():
            theirs = [reading.values[name].median for reading in row.theirs]
            if not value.values or name == relative_to:
                continue
            if why := _left_out(row, name, times, claims):
                left_out[name] = why
                continue
            if relative_to and not (base and base.values and base.median):
                continue
            ours = value.median * (times or 1) / (base.median if base else 1)
            if min(*theirs, ours) <= 0:
                left_out[name] = "one figure is 0"
                continue
            ratios[name] = _nearest([ours / figure for figure in theirs])
        if ratios or left_out:
            steps.append(StepDeviation(row.step, ratios, left_out))
    return TableDeviation(times, tuple(steps))


def _left_out(row: RankedRow, variant: str, times: int | None, claims: Claims) -> str:
    if claims.stand_ins:
        return "another system"
    if row.uncounted:
        return str(row.uncounted)
    if times is None:
        return "at this scale the data are not the study's"
    return claims.out_of_proportion(row.step, variant) if times > 1 else ""


def _nearest(ratios: Sequence[Fraction]) -> Fraction:
    """Return 1 where the readings lie on either side of ours, else the ratio to the nearest."""
    if min(ratios) <= 1 <= max(ratios):
        return Fraction(1)
    return min(ratios, key=lambda ratio: abs(log(ratio)))


def _row(
    step: str, places: Mapping[str, Place], printed: Sequence[PrintedValues], sources: Sequence[OurValues]
) -> RankedRow:
    theirs = [
        {name: value for name, place in places.items() if (value := reading.value(place)).values} for reading in printed
    ]
    if theirs[0] == theirs[1]:
        theirs = theirs[:1]
    ours = [{name: source.value(places[name]) for name in theirs[0]} for source in sources]
    return RankedRow(
        step,
        tuple(_against(values, values) for values in theirs),
        tuple(_against(theirs[0], values) for values in ours),
    )


def _against(theirs: Mapping[str, Series], ours: Mapping[str, Series]) -> RankedColumn:
    both = [name for name in theirs if ours[name].values]
    sides = [theirs[name].median for name in both], [ours[name].median for name in both]
    return RankedColumn(ours, tau_b(*sides), len(both), tau_b_chance(*sides))


def _overall(rows: Sequence[RankedRow], side: int) -> Overall | None:
    """Sum the steps of a side; a step counts where every variant that the side has is in both."""
    columns = [(row.step, row.theirs[0].values, row.ours[side].values) for row in rows]
    variants = dict.fromkeys(name for _, _, ours in columns for name, value in ours.items() if value.values)
    whole = [
        (step, theirs, ours)
        for step, theirs, ours in columns
        if all(name in theirs and ours[name].values for name in variants)
    ]
    if len(whole) < 2 or len(variants) < 2:
        return None
    theirs = {name: sum_values("", "", [values[name] for _, values, _ in whole]) for name in variants}
    ours = {name: sum_values("", "", [values[name] for _, _, values in whole]) for name in variants}
    return Overall(tuple(step for step, _, _ in whole), _against(theirs, theirs), _against(theirs, ours))


@dataclass(frozen=True)
class StudyColumn:
    """A column of the rankings: a side, with the filesystem that stands in for the study's, if any."""

    letter: str
    side: RunColumn
    stand_in: str = ""

    @property
    def name(self) -> str:
        return f"{self.letter} {self.stand_in}".rstrip()


@dataclass(frozen=True)
class ClaimCounts:
    """How many claims replicated, and how many of them filesystems that are all alike would replicate."""

    judged: tuple[JudgedClaim, ...]

    @cached_property
    def kinds(self) -> dict[str, int]:
        """The number of claims of each of KINDS."""
        kinds = [claim.kind for claim in self.judged]
        return {kind: kinds.count(kind) for kind in KINDS}

    @property
    def counted(self) -> int:
        return sum(self.kinds[kind] for kind in COUNTED)

    @cached_property
    def rated(self) -> "ClaimCounts":
        """Those that are counted and have a base rate."""
        return ClaimCounts(tuple(claim for claim in self.judged if claim.rate and claim.kind in COUNTED))

    @property
    def replicated(self) -> int:
        return self.kinds[ClaimVerdict.REPLICATED]

    @property
    def alike(self) -> tuple[float, ...]:
        """How many of the rated ones filesystems that are all alike would replicate, at each of NOISES."""
        return tuple(
            sum(rates) for rates in zip(*(claim.rate for claim in self.rated.judged if claim.rate), strict=True)
        )


@dataclass(frozen=True)
class StudyReport:
    """One study and the runs beside it."""

    study: Study
    sides: tuple[tuple[str, RunColumn], ...]
    """The sides, each with its letter."""
    columns: tuple[StudyColumn, ...]
    rankings: tuple[Ranking, ...]
    claims: tuple[tuple[Claim, tuple[tuple[str, JudgedClaim], ...]], ...]
    """Each claim with its verdicts, and the letter of the side that each is of."""

    def counts(self, letter: str) -> ClaimCounts:
        """Return the counts of a side; each stand-in has verdicts of its own."""
        return ClaimCounts(tuple(claim for _, judged in self.claims for side, claim in judged if side == letter))


def study_reports(runs: Iterable[RunResult]) -> list[StudyReport]:
    """Report on each study that the runs belong to, in their order. Raises InputError for a run of none."""
    by_study: dict[str, tuple[Study, list[RunResult]]] = {}
    for run in runs:
        study = study_of_scenario(run.plan.scenario)
        by_study.setdefault(study.name, (study, []))[1].append(run)
    return [_report(study, these) for study, these in by_study.values()]


def _report(study: Study, runs: Iterable[RunResult]) -> StudyReport:
    lettered = tuple((letter(at), column) for at, column in enumerate(run_columns(runs)))
    columns = tuple(
        StudyColumn(side_letter, side, name)
        for side_letter, side in lettered
        for name in (stand_ins_run(study, side) if study.claims.stand_ins else ("",))
    )
    sources = [OurValues(study.figures, study.claims, column.side, column.stand_in) for column in columns]
    sides = dict(lettered)
    claims = tuple(
        (
            claim,
            within_band(
                [(name, verdict) for name, side in lettered for verdict in judge_claim(study, claim, side)], sides
            ),
        )
        for claim in study.claims.claims
    )
    return StudyReport(study, lettered, columns, tuple(rankings(study.figures, study.claims, sources)), claims)
