"""How far the cells of a run lie apart that differ in their run seed alone: what a later run can expect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import expm1, log, sqrt

from agelab.analysis.cells import RunResult, SeedGroup, seed_groups
from agelab.results.measure import Measure
from agelab.stats.series import Series

SEEDS_NEEDED = 3
"""Run seeds of one corpus, at least, that say anything of a spread."""


@dataclass(frozen=True)
class MetricSpread:
    """The spread of one measure within a corpus."""

    measure: Measure
    title: str
    """Its step, as tables name it."""
    unit: str
    relative: bool
    """True if it is of the values' logarithms: all are above zero."""
    groups: Mapping[str, float]
    """Group to its standard deviation."""

    @property
    def typical(self) -> float:
        """The standard deviation that stands for all groups: the root of their mean variance."""
        return sqrt(sum(one * one for one in self.groups.values()) / len(self.groups))

    def of_shift(self, deviations: float) -> float:
        """Return a difference of so many standard deviations, as a share where it is relative."""
        return expm1(deviations * self.typical) if self.relative else deviations * self.typical


def measured_groups(run: RunResult) -> list[SeedGroup]:
    """Return the groups of a run that say something of a spread."""
    found = []
    for group in seed_groups(run):
        corpora = [one.corpus for one in group.counted]
        if any(corpora.count(one) >= SEEDS_NEEDED for one in set(corpora)):
            found.append(group)
    return found


def spread(groups: Iterable[SeedGroup], measure: Measure) -> MetricSpread | None:
    """Return the spread of a measure; None where nothing has measured it often enough."""
    known = [(group.cell.short_label, series) for group in groups if (series := group.measured(measure))]
    relative = all(value > 0 for _, series in known for _, value in series.values)
    found = {name: _deviation(series, relative) for name, series in known}
    told = {name: one for name, one in found.items() if one is not None}
    if not told:
        return None
    first = known[0][1]
    return MetricSpread(measure, first.title, first.unit, relative, told)


def _deviation(series: Series, relative: bool) -> float | None:
    """Return the standard deviation within corpora, around each one's own mean."""
    corpora: dict[int, list[float]] = {}
    for seeds, value in series.values:
        corpora.setdefault(seeds.corpus, []).append(log(value) if relative else float(value))
    freedom = sum(len(values) - 1 for values in corpora.values())
    if freedom < SEEDS_NEEDED - 1:
        return None
    squares = ((value - sum(values) / len(values)) ** 2 for values in corpora.values() for value in values)
    return sqrt(sum(squares) / freedom)
