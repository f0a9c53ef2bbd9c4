"""The lines of a track: single values in the order of the points, their segments, and the steps between these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import copysign, inf, log
from statistics import fmean, median

from agelab.analysis.judge import judge
from agelab.base.gathered import gathered
from agelab.bisect.rules import SEEDS_NEEDED
from agelab.bisect.track.journal import Followed, LineId, Measured, PassedOver, Row, measured_points
from agelab.bisect.track.points import Point
from agelab.bisect.track.question import Track, Watch
from agelab.results.measure import Measure
from agelab.scenario.seeds import Seeds
from agelab.stats import segments
from agelab.stats.series import Series, SeriesPair, exact
from agelab.stats.verdict import ComparedSeries

REPEATED = 2
"""Points of a line with SEEDS_NEEDED run seeds each, which tell its noise."""
CLEAR, SURE = 2.25, 3.0
"""Standard deviations of run seeds between both sides: with fewer no step is one, with more five run seeds suffice."""
FIRST = 1
"""The run seed that every point has."""


@dataclass(frozen=True)
class Value:
    """What a line has at a point."""

    place: int
    """Of its point among all points."""
    point: Point
    seeds: Mapping[int, float]

    @property
    def first(self) -> float:
        """The value of the lowest run seed."""
        return self.seeds[min(self.seeds)]


@dataclass(frozen=True)
class Step:
    """A change of a line's level, as its segments have it."""

    line: LineId
    last: Value
    """The last of the old level, and"""
    first: Value
    """the first of the new."""
    around: tuple[Value, Value]
    """The one but last and the second: a step may seem to be one point off."""
    change: float
    """Of the levels' medians, as a share of the old one; of a level of 0 in the metric's unit."""


@dataclass(frozen=True)
class Line:
    """One metric of one variant over the points."""

    id: LineId
    unit: str
    values: tuple[Value, ...]

    @cached_property
    def is_ratio(self) -> bool:
        """True where all values are above 0: steps and noise are shares of the value."""
        return min((seed for value in self.values for seed in value.seeds.values()), default=0) > 0

    @cached_property
    def _drawn(self) -> list[list[float]]:
        """The values of all points, the first run seed's first, as logarithms where all are above 0."""
        return [[self._scaled(value.seeds[seed]) for seed in sorted(value.seeds)] for value in self.values]

    def _scaled(self, value: float) -> float:
        return log(value) if self.is_ratio else value

    @cached_property
    def noise(self) -> float:
        """The standard deviation of chance: a share of the value, or where one is not above 0 in its unit."""
        return segments.noise([seeds[0] for seeds in self._drawn], [seeds for seeds in self._drawn if len(seeds) > 1])

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """The segments: first value and the one behind the last."""
        ends = [0, *segments.change_points(self._drawn, self.noise), len(self.values)]
        return list(pairwise(ends))

    @cached_property
    def steps(self) -> list[Step]:
        """The steps between the segments."""
        found = []
        for (start, at), (_, end) in pairwise(self.levels):
            old, new = (median(value.first for value in self.values[slice(*ends)]) for ends in ((start, at), (at, end)))
            around = self.values[at - 2], self.values[at + 1]
            found.append(Step(self.id, self.values[at - 1], self.values[at], around, _change(old, new)))
        return found

    def value_at(self, point: str) -> Value | None:
        return next((value for value in self.values if value.point.id == point), None)

    def lead(self, step: Step, since: int = FIRST) -> float:
        """Return how far the run seeds from ``since`` on bear a step out: their means' distance, in units of chance."""
        apart = segments.noise([], [seeds for seeds in self._drawn if len(seeds) > 1])
        before, after = (
            fmean(
                map(
                    self._scaled,
                    [value.seeds[seed] for seed in value.seeds if seed >= since] or [value.first],
                )
            )
            for value in (step.last, step.first)
        )
        way = copysign(1, step.change) * (after - before)
        return way / apart if apart else copysign(inf, way) if way else 0.0

    def judge(self, before: str, after: str) -> ComparedSeries:
        """Let the one judge compare two points by all of their run seeds."""
        sides = [self._series(self.value_at(point)) for point in (before, after)]
        [judged] = judge([SeriesPair(*sides)], lambda _: None)
        return judged

    def _series(self, value: Value | None) -> Series:
        seeds = value.seeds if value else {}
        values = tuple((Seeds(1, seed), exact(number)) for seed, number in sorted(seeds.items()))
        return Series(*Measure.parse(self.id.metric), self.unit, values, ())


def _change(old: float, new: float) -> float:
    return (new - old) / abs(old) if old else new - old


@dataclass(frozen=True)
class Known:
    """What the rows of a journal say of the points that there are now."""

    track: Track
    points: Sequence[Point]
    rows: Sequence[Row]

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {point.id: place for place, point in enumerate(self.points)}

    @cached_property
    def gone(self) -> list[str]:
        """Points that were measured and are none any more."""
        return [point for point in measured_points(self.rows) if point not in self.places]

    @cached_property
    def under(self) -> Mapping[tuple[str, str], str]:
        """Watch and variant to the conditions of its newest value: values of others are on no line."""
        return {(row.watch, row.label): row.under for row in self.rows if isinstance(row, Measured)}

    @cached_property
    def measured(self) -> list[Measured]:
        """The values that count, in the order in which they were measured."""
        return [
            row
            for row in self.rows
            if isinstance(row, Measured) and row.point in self.places and row.under == self.under[row.watch, row.label]
        ]

    @cached_property
    def passed_over(self) -> list[PassedOver]:
        return [row for row in self.rows if isinstance(row, PassedOver) and row.point in self.places]

    @cached_property
    def spans(self) -> Mapping[str, range]:
        """Each watch to the places at which it can run: kernels of older points, or of younger ones, may lack it."""
        return {watch.key: self._span(watch.key) for watch in self.track.watch}

    def _span(self, watch: str) -> range:
        places = [self.places[point] for key, point in self._cells if key == watch]
        rows = [row for row in self.passed_over if row.unsupported and row.watch == watch]
        lacking = [self.places[row.point] for row in rows]
        if not places:
            return range(len(self.points))
        oldest = max((place + 1 for place in lacking if place < min(places)), default=0)
        return range(oldest, min((place for place in lacking if place > max(places)), default=len(self.points)))

    def seeds(self, watch: Watch, point: str) -> set[int]:
        """Return the run seeds with which all metrics of a watch are known at a point, of all variants."""
        whole = {*watch.metrics}
        asked = self._cells.get((watch.key, point), [])
        known = [row.seed for row in asked if whole <= row.values.keys()]
        return {seed for seed in known if known.count(seed) >= len(asked) / len({row.seed for row in asked})}

    @cached_property
    def _cells(self) -> Mapping[tuple[str, str], list[Measured]]:
        return gathered(((row.watch, row.point), row) for row in self.measured)

    @cached_property
    def _passed(self) -> set[tuple[str, str]]:
        return {(row.watch, row.point) for row in self.passed_over}

    def is_done(self, watch: Watch, point: str) -> bool:
        """Return whether nothing is to be measured at a point, but for more run seeds."""
        if self.places[point] not in self.spans[watch.key] or self.seeds(watch, point):
            return True
        return (watch.key, point) in self._passed

    def repeats(self, watch: Watch) -> int:
        """Return how many points of a watch have been measured with more than one run seed."""
        points = (point for key, point in self._cells if key == watch.key)
        return sum(len(self.seeds(watch, point)) >= SEEDS_NEEDED for point in points)

    @cached_property
    def lines(self) -> list[Line]:
        """All lines, those of each watch together, metric by metric."""
        found = []
        for watch in self.track.watch:
            rows = [row for row in self.measured if row.watch == watch.key]
            for metric in watch.metrics:
                for label in dict.fromkeys(row.label for row in rows):
                    own = [row for row in rows if row.label == label and metric in row.values]
                    if own:
                        found.append(self._line(LineId(watch=watch.key, label=label, metric=metric), own))
        return found

    def _line(self, name: LineId, rows: Sequence[Measured]) -> Line:
        seeds: dict[int, dict[int, float]] = {}
        for row in rows:
            seeds.setdefault(self.places[row.point], {})[row.seed] = row.values[name.metric]
        values = (Value(place, self.points[place], seeds[place]) for place in sorted(seeds))
        return Line(name, rows[-1].units[name.metric], tuple(values))

    def line(self, name: LineId) -> Line:
        return next(line for line in self.lines if line.id == name)

    @cached_property
    def followed(self) -> list[Followed]:
        """The last word on each step that was followed up, as far as its points are there."""
        last = {row.key: row for row in self.rows if isinstance(row, Followed)}
        return [row for row in last.values() if {row.before, row.after} <= self.places.keys()]

    @property
    def open_steps(self) -> list[Step | Followed]:
        """What is to be followed up: what was begun first, then the largest step that nobody has looked at."""
        there = {line.id: line for line in self.lines}
        begun = [row for row in self.followed if not row.ended and row.line in there]
        begun = [row for row in begun if all(map(there[row.line].value_at, (row.before, row.after)))]
        least = self.track.percent / 100
        seen = [step for line in self.lines for step in line.steps if abs(step.change) >= least]
        new = [step for step in seen if not any(self._is_known(step, row) for row in self.followed)]
        return [*begun, *sorted(new, key=lambda step: -abs(step.change))]

    def _is_known(self, step: Step, row: Followed) -> bool:
        """Return whether a step that is seen is one that was followed up."""
        if step.line != row.line:
            return False
        if row.culprit:
            before, after = (value.place for value in step.around)
            return before < self.places.get(row.culprit, -1) <= after
        return self.places[row.before] <= step.last.place and step.first.place <= self.places[row.after]


def judged_words(judged: ComparedSeries) -> str:
    """Say by how much the level changed: ``1.052 times (1.041 to 1.063)``."""
    if judged.ratio is None or judged.interval is None:
        return judged.reader_word
    low, high = (float(end) for end in (judged.interval.low, judged.interval.high))
    return f"{judged.reader_word}, {float(judged.ratio):.3f} times ({low:.3f} to {high:.3f})"
