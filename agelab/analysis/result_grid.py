"""A grid of results: subjects in rows, what they are compared over in columns, each judged against the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agelab.analysis.cells import CellResult, SeedGroup
from agelab.analysis.host_noise import HostNoise
from agelab.analysis.judge import judge
from agelab.errors import unknown
from agelab.model.metrics import METRICS
from agelab.model.result import Sample, Status
from agelab.model.step_id import AGED_MAP
from agelab.stats.order_statistics import exact
from agelab.stats.series import Place, Series, SeriesPair, series
from agelab.stats.verdict import ComparedSeries

TOTAL: Place = ("all steps", 1, "elapsed")
"""The sum of the times of a cell's steps."""
DEFAULT = ((AGED_MAP, "layout_score"), ("", "slowdown"))
"""Step and metric to show unasked, beside the sum; without a step those of every step."""

Row = tuple[str, ...]
"""Variant, layout, and what else tells a subject from the others."""


@dataclass(frozen=True)
class GridCell:
    """A subject in one column: on a kernel, or at a date."""

    group: SeedGroup

    @cached_property
    def measured(self) -> Mapping[Place, Series]:
        """Its series, with the sum of all steps."""
        cells = ((seeds, with_total(one.samples)) for seeds, one in self.group.counted.items())
        return series(cells, self.group.own_metrics)

    @property
    def why(self) -> str:
        """The reasons of cells that are not ok."""
        return "; ".join(dict.fromkeys(one.ended for one in self._left_out))

    @property
    def unsupported(self) -> bool:
        statuses = {one.end.status if one.end else None for one in self._left_out}
        return statuses == {Status.UNSUPPORTED}

    @property
    def _left_out(self) -> list[CellResult]:
        return [one for one in self.group.results if not one.ok]


@dataclass(frozen=True)
class ResultGrid:
    """Subjects in rows, with what was measured of each in every column."""

    names: Sequence[str]
    """The heads of the columns, in their order."""
    entries: Mapping[Row, tuple[GridCell | None, ...]]
    """A subject to what there is in each column; None where it was not asked for."""
    host: HostNoise = field(default_factory=HostNoise)
    """The noise of the hosts; the sum of all steps has the largest floor of any of them."""

    def places(self) -> list[Place]:
        """List what is shown unasked, of what was measured."""
        every = dict.fromkeys(
            place for row in self.entries.values() for entry in row if entry for place in entry.measured
        )
        shown = [at for step, metric in DEFAULT for at in every if at[2] == metric and step in ("", at[0])]
        shown += [at for at in every if at[2] not in METRICS]
        return [*shown, *([TOTAL] if TOTAL in every else [])]

    def series(self, row: Row, column: int, place: Place) -> Series | None:
        """Return what was measured there, or None."""
        entry = self.entries[row][column]
        found = entry.measured.get(place) if entry else None
        return found if found and found.values else None

    def changes(self, place: Place) -> dict[tuple[Row, int], ComparedSeries]:
        """Judge each cell of a table against the last column before that has a value; all are one family."""
        found: dict[tuple[Row, int], SeriesPair] = {}
        for row in self.entries:
            before: Series | None = None
            for column in range(len(self.names)):
                now = self.series(row, column, place)
                if now and before:
                    found[row, column] = SeriesPair(before, now)
                before = now or before
        return dict(zip(found, judge([*found.values()], self.host), strict=True))


def chosen_places(grids: Sequence[ResultGrid], asked: Sequence[str]) -> list[Place]:
    """Return the places of several grids called STEP:METRIC[:REPETITION], or those shown unasked.

    Raises InputError for one that none of them measured.
    """
    if not asked:
        return list(dict.fromkeys(place for grid in grids for place in grid.places()))
    cells = [entry for grid in grids for row in grid.entries.values() for entry in row if entry]
    every: dict[str, Place] = {}
    for place in (place for one in cells for place in one.measured):
        step, repetition, metric = place
        every.setdefault(f"{step}:{metric}", place)
        every.setdefault(f"{step}:{metric}:{repetition}", place)
    for name in asked:
        if name not in every:
            raise unknown("metric", name, list(every))
    return list(dict.fromkeys(every[name] for name in asked))


def with_total(rows: Sequence[Sample]) -> Sequence[Sample]:
    """Return a cell's samples with the sum of the times of its steps."""
    step, repetition, metric = TOTAL
    elapsed = [exact(row.value) for row in rows if row.metric == metric and row.value is not None]
    if not elapsed:
        return rows
    total = round(float(sum(elapsed)), 6)
    return [*rows, Sample(step=step, metric=metric, value=total, unit="s", repetition=repetition)]
