"""Our ranking beside the study's: Kendall's tau-b, and each variant against the fastest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from agelab.analysis.published.claims import Claims, TableUse
from agelab.analysis.published.deviation import RowValues, TableDeviation, table_deviation
from agelab.analysis.published.our_values import OurValues
from agelab.analysis.published.tables import Place, PublishedFigure, PublishedTables
from agelab.analysis.published.value_sources import READINGS, PrintedValues, sum_values
from agelab.stats.kendall import competition_ranks, tau_b, tau_b_chance
from agelab.stats.series import Series

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
    circle: str = ""
    """What of ours was derived from the study's row; empty where nothing was."""


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
    found = []
    printed = [PrintedValues(figures, claims, reading) for reading in READINGS]
    for use in claims.tables:
        # Layout, metric and unit of a table to the figures that are one ranking's.
        groups: dict[tuple[str, str, str], list[PublishedFigure]] = {}
        for figure in figures.of(use.id):
            factor = figure.metric in FACTORS
            metric, unit = (use.compares, "times") if factor else (figure.metric, figure.unit)
            groups.setdefault((figure.layout, metric, unit), []).append(figure)
        for (layout, metric, unit), those in groups.items():
            relative = [use.relative_to] if use.relative_to and unit == "times" else []
            variants = list(dict.fromkeys([*relative, *(figure.variant for figure in those)]))
            rows = []
            for step in dict.fromkeys(figure.step for figure in those):
                places: dict[str, Place] = {name: (use.id, name, layout, step, metric) for name in variants}
                row = replace(_row(step, places, printed, sources), circle=claims.circle(step, metric))
                rows += [row] if len(row.theirs[0].values) > 1 else []
            if rows:
                alone = [row for row in rows if row.step not in claims.sums and not row.circle]
                overall = tuple(_overall(alone, number) for number in range(len(sources)))
                found.append(
                    Ranking(
                        use.id, layout, metric, unit, tuple(variants), tuple(rows), overall,
                        tuple(_deviation(rows, number, unit, use, source) for number, source in enumerate(sources)),
                    )
                )  # fmt: skip
    return found


def _deviation(
    rows: Sequence[RankedRow], side: int, unit: str, use: TableUse, source: OurValues
) -> TableDeviation:
    values = [
        RowValues(row.step, row.circle, [column.values for column in row.theirs], row.ours[side].values)
        for row in rows
    ]
    return table_deviation(values, unit, use, source.claims, source.column.shrink)


def _row(
    step: str, places: Mapping[str, Place], printed: Sequence[PrintedValues], sources: Sequence[OurValues]
) -> RankedRow:
    theirs = [
        {name: value for name, place in places.items() if (value := one.value(place)).values}
        for one in printed
    ]
    if theirs[0] == theirs[1]:
        theirs = theirs[:1]
    ours = [{name: source.value(places[name]) for name in theirs[0]} for source in sources]
    return RankedRow(
        step, tuple(_against(one, one) for one in theirs), tuple(_against(theirs[0], one) for one in ours)
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
    theirs = {name: sum_values("", "", [one[name] for _, one, _ in whole]) for name in variants}
    ours = {name: sum_values("", "", [other[name] for _, _, other in whole]) for name in variants}
    return Overall(tuple(step for step, _, _ in whole), _against(theirs, theirs), _against(theirs, ours))
