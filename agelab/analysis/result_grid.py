"""A grid of results: subjects in rows, what they are compared over in columns, each judged against the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agelab.analysis.cells import CellResult, SeedGroup
from agelab.analysis.host_noise import HostNoise
from agelab.analysis.judge import judge
from agelab.analysis.main_measures import main_measures
from agelab.base.errors import unknown
from agelab.results.measure import ALL_STEPS, MEAN, Measure
from agelab.results.result import Status
from agelab.scenario.metrics import METRICS
from agelab.scenario.step import AGED_MAP
from agelab.stats.series import Series, SeriesPair
from agelab.stats.verdict import ComparedSeries

LAYOUT = Measure(AGED_MAP, MEAN, "layout_score")
"""What is shown unasked of the layout, beside the slowdowns and the sum."""

Row = tuple[str, ...]
"""Variant, layout, and what else tells a subject from the others."""


@dataclass(frozen=True)
class GridCell:
    """A subject in one column: on a kernel, or at a date."""

    group: SeedGroup

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

    def every(self) -> list[Measure]:
        """List what was measured: each step's mean, and the sum of all steps."""
        groups = [entry.group for row in self.entries.values() for entry in row if entry]
        means = dict.fromkeys(Measure(step, MEAN, metric) for group in groups for step, metric in group.steps)
        return [*means, *([ALL_STEPS] if any(group.measured(ALL_STEPS) for group in groups) else [])]

    def measures(self) -> list[Measure]:
        """List what is shown unasked, of what was measured."""
        every = self.every()
        groups = [entry.group for row in self.entries.values() for entry in row if entry]
        slowdowns = [at for at in main_measures(groups) if at.metric == "slowdown"]
        shown = [*([LAYOUT] if LAYOUT in every else []), *slowdowns]
        shown += [at for at in every if at.metric not in METRICS]
        return [*shown, *([ALL_STEPS] if ALL_STEPS in every else [])]

    def title(self, measure: Measure) -> str:
        """Name the step of a measure as tables do; nothing where nobody has it."""
        found = (entry.group.measured(measure) for row in self.entries.values() for entry in row if entry)
        return next((one.title for one in found if one), "")

    def series(self, row: Row, column: int, measure: Measure) -> Series | None:
        """Return what was measured there, or None."""
        entry = self.entries[row][column]
        found = entry.group.measured(measure) if entry else None
        return found if found and found.values else None

    def changes(self, measure: Measure) -> dict[tuple[Row, int], ComparedSeries]:
        """Judge each cell of a table against the last column before that has a value; all are one family."""
        found: dict[tuple[Row, int], SeriesPair] = {}
        for row in self.entries:
            before: Series | None = None
            for column in range(len(self.names)):
                now = self.series(row, column, measure)
                if now and before:
                    found[row, column] = SeriesPair(before, now)
                before = now or before
        return dict(zip(found, judge([*found.values()], self.host), strict=True))


def chosen_measures(grids: Sequence[ResultGrid], asked: Sequence[str]) -> list[Measure]:
    """Return the measures that the words ask for, or those shown unasked.

    Raises InputError for one that none of the grids has.
    """
    if not asked:
        return list(dict.fromkeys(measure for grid in grids for measure in grid.measures()))
    groups = [entry.group for grid in grids for row in grid.entries.values() for entry in row if entry]
    chosen = list(dict.fromkeys(Measure.parse(words) for words in asked))
    for measure in chosen:
        if not any(group.measured(measure) for group in groups):
            raise unknown("metric", str(measure), [str(at) for grid in grids for at in grid.every()])
    return chosen
