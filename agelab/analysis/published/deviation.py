"""How far our figures are from the study's, cell by cell, and how much of that is the step's and the filesystem's.

The step's part is what all filesystems have in common: data, state, machine, drive. What remains is the filesystem's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log
from statistics import median
from typing import NamedTuple

from agelab.analysis.published.claims import Claims, TableUse
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
    """The cells of a table for one side."""

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
        parts: dict[str, list[float]] = {}
        for step in self.steps:
            for name, rest in step.rest.items():
                parts.setdefault(name, []).append(log(rest))
        return {name: exp(median(logs)) for name, logs in parts.items() if len(logs) >= SPLIT}


def _bands(ratios: Iterable[Fraction]) -> Bands:
    found = list(ratios)
    near = sum(abs(one - 1) <= NEAR for one in found)
    fair = sum(Fraction(1, FAR) <= one <= FAR for one in found)
    return Bands(near, fair - near, len(found) - fair)


def _typical(factors: Iterable[float]) -> float | None:
    found = [abs(log(one)) for one in factors]
    return exp(median(found)) if found else None


class RowValues(NamedTuple):
    """A step's values: the study's, in each reading, and ours."""

    step: str
    circle: str
    theirs: Sequence[Mapping[str, Series]]
    ours: Mapping[str, Series]


def table_deviation(
    rows: Sequence[RowValues], unit: str, use: TableUse, claims: Claims, shrink: int | None
) -> TableDeviation:
    """Compare the cells of a table; a sum of its other rows has none of its own.

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
        base = row.ours.get(relative_to) if relative_to else None
        ratios: dict[str, Fraction] = {}
        left_out: dict[str, str] = {}
        for name, value in row.ours.items():
            theirs = [reading[name].median for reading in row.theirs]
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
            ratios[name] = _nearest([ours / one for one in theirs])
        if ratios or left_out:
            steps.append(StepDeviation(row.step, ratios, left_out))
    return TableDeviation(times, tuple(steps))


def _left_out(row: RowValues, variant: str, times: int | None, claims: Claims) -> str:
    if claims.stand_ins:
        return "another system"
    if row.circle:
        return f"in a circle: {row.circle}"
    if times is None:
        return "at this scale the data are not the study's"
    return claims.out_of_proportion(row.step, variant) if times > 1 else ""


def _nearest(ratios: Sequence[Fraction]) -> Fraction:
    """Return 1 where the readings lie on either side of ours, else the ratio to the nearest."""
    if min(ratios) <= 1 <= max(ratios):
        return Fraction(1)
    return min(ratios, key=lambda ratio: abs(log(ratio)))
