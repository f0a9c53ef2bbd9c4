"""One night of a track: measure what is new, follow up what has changed, end when the time is used up.

What was found out is in the journal before the next thing begins: a night that is killed loses the cell that ran.
"""

import time
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil, log2
from operator import itemgetter
from statistics import median
from typing import Protocol

from agelab.base.errors import Notify, silent
from agelab.bisect.rules import SEEDS_NEEDED
from agelab.bisect.track.journal import Followed, Journal, Measured, PassedOver, Row, measured_points
from agelab.bisect.track.lines import CLEAR, FIRST, REPEATED, SURE, Known, Line, Step, judged_words
from agelab.bisect.track.points import Point, next_point
from agelab.bisect.track.question import Track, Watch
from agelab.debian import PackagesVanished

ALL_SEEDS = tuple(range(FIRST, FIRST + SEEDS_NEEDED))
MOST_SEEDS = 8
"""Run seeds of a side of a step that five do not make sure."""
LAST_CELLS = 20
"""Cells whose median time is what another one is expected to take."""


class Measurer(Protocol):
    """Measures points, and finds what made a step."""

    def measure(self, point: Point, watch: Watch, seeds: Sequence[int]) -> Sequence[Measured | PassedOver]: ...

    def find(self, row: Followed, watch: Watch, line: Line, keep: Callable[[Sequence[Row]], None]) -> Followed: ...


@dataclass(frozen=True)
class Task:
    """Run seeds of a watch that are to be run at a point."""

    point: Point
    watch: Watch
    seeds: tuple[int, ...]


@dataclass
class Night:
    """Works on a track until its minutes are over."""

    track: Track
    points: Sequence[Point]
    journal: Journal
    measurer: Measurer
    say: Notify
    show: Callable[[Known, str], None] = lambda known, now: None
    tell: Callable[[str], None] = silent
    clock: Callable[[], float] = time.monotonic
    told: list[Followed] = field(default_factory=list)
    """Steps that this night has come to the end of, and that are ones."""
    _known: Known | None = None
    _asked: set[tuple[str, str, int]] = field(default_factory=set)
    """Points, watches and run seeds that were measured this night, which no night does twice."""
    _waiting: set[tuple[str, str]] = field(default_factory=set)
    """Points and watches whose packages cannot be had this night: a step at one of them is nobody's to judge."""

    def __post_init__(self) -> None:
        self._until = self.clock() + 60 * self.track.minutes

    @property
    def known(self) -> Known:
        """What is known now."""
        if self._known is None:
            self._known = Known(self.track, self.points, self.journal.rows)
        return self._known

    def work(self) -> None:
        """Work until nothing is left to do, or no time for it."""
        for line in passed_over_lines(self.known):
            self.say(line)
        while task := self._next():
            if isinstance(task, Task):
                if not self._has_time(len(task.seeds), f"{task.point.name}, {task.watch.scenario}"):
                    return
                self._measure(task)
            else:
                if not self._has_time(self._cells_of(task), "what made a step"):
                    return
                self._follow(task)

    def _next(self) -> Task | Step | Followed | None:
        """Return what is to be done: the newest point, then steps, then points in their order."""
        newest = self.points[-1]
        for watch in self.track.watch:
            if not self._is_done(watch, newest):
                return self._task(newest, watch)
        for step in self.known.open_steps:
            if self._waiting.isdisjoint((point, step.line.watch) for point in _sides(step)):
                return self._between(step) if isinstance(step, Step) else step
        done = {point.id for point in self.points if all(self._is_done(watch, point) for watch in self.track.watch)}
        point = next_point(self.points, done)
        if point is None:
            return None
        return next(self._task(point, watch) for watch in self.track.watch if not self._is_done(watch, point))

    def _is_done(self, watch: Watch, point: Point) -> bool:
        return (point.id, watch.key, FIRST) in self._asked or self.known.is_done(watch, point.id)

    def _between(self, step: Step) -> Task | Step:
        """Return what a step needs before it is judged, and then the step itself.

        It needs the point in its middle, where there is one without a value; then run seeds of both sides, one by one:
        chance that looked like a step is seen to be none before it has cost all of them.
        """
        watch = self.track.watched(step.line.watch)
        between = self.points[step.last.place + 1 : step.first.place]
        there = [point for point in between if not self._is_done(watch, point)]
        if there:
            return Task(there[len(there) // 2], watch, (FIRST,))
        line = self.known.line(step.line)
        for seed in range(FIRST, FIRST + MOST_SEEDS):
            fresh = seed - FIRST - 1
            if fresh > 0 and line.lead(step, FIRST + 1) < CLEAR * (fresh - 1) / (fresh + 1):
                break
            if seed not in ALL_SEEDS and not CLEAR <= line.lead(step) < SURE:
                break
            for value in (step.last, step.first):
                known = self.known.seeds(watch, value.point.id)
                if seed not in known and (value.point.id, watch.key, seed) not in self._asked:
                    return Task(value.point, watch, (seed,))
        return step

    def _task(self, point: Point, watch: Watch) -> Task:
        """Return the task for a point: the first of a line have more run seeds, which tell its noise."""
        seeds = ALL_SEEDS if self.known.repeats(watch) < REPEATED else (FIRST,)
        return Task(point, watch, seeds)

    def _has_time(self, cells: int, what: str) -> bool:
        """Return whether there is time for so many cells; a night that has done nothing yet begins all the same."""
        took = [row.seconds for row in self.journal.rows if isinstance(row, Measured) and row.seconds]
        each = median(took[-LAST_CELLS:]) if took else 0.0
        left = self._until - self.clock()
        if cells * each <= left:
            return True
        night = 60 * self.track.minutes
        if each > night:
            self.say(f"minutes = {self.track.minutes:g} is too little: one cell takes about {each / 60:.1f} minutes")
        elif cells * each > night and left > 0.9 * night:
            return True
        else:
            self.say(f"the night is over: next is {what}")
        return False

    def _cells_of(self, step: Step | Followed) -> int:
        """Return how many cells it takes to find what made a step, about."""
        before, after = _sides(step)
        between = self.known.places[after] - self.known.places[before]
        return 2 * SEEDS_NEEDED + 2 * ceil(log2(max(2, between)))

    def _measure(self, task: Task) -> None:
        self.show(self.known, f"{task.point.name}, {task.watch.scenario}")
        self.say(f"{task.point.words}: {task.watch.scenario}, run seed{'s' * (len(task.seeds) > 1)} "
                  f"{','.join(map(str, task.seeds))}")  # fmt: skip
        self._asked |= {(task.point.id, task.watch.key, seed) for seed in task.seeds}
        try:
            rows = self.measurer.measure(task.point, task.watch, task.seeds)
        except PackagesVanished as error:  # of one point, or of all: another night may have them
            self._waiting.add((task.point.id, task.watch.key))
            self.say(f"  not this night: {error}")
            return
        for row in rows:
            if isinstance(row, PassedOver):
                self.say(f"  left out: {row.label and f'{row.label}: '}{row.why}")
        self._keep(rows)

    def _keep(self, rows: Sequence[Row]) -> None:
        self.journal.add(rows)
        self._known = None

    def _follow(self, step: Step | Followed) -> None:
        """Look at a step with five run seeds on both sides; where the judge calls it one, find what made it."""
        row = step if isinstance(step, Followed) else self._judge(step)
        if not row.ended:
            self.show(self.known, f"what made the step of {row.line.metric}, {row.line.label}")
            watch = self.track.watched(row.line.watch)
            try:
                found = self.measurer.find(row, watch, self.known.line(row.line), self._keep)
                row = Followed.model_validate(found.model_dump())  # what a commit says of itself is anybody's
            except PackagesVanished as error:
                self._waiting |= {(point, watch.key) for point in _sides(row)}
                self.say(f"  not this night: {error}")
                return
            self._keep([row])
            self.told.append(row)
            self.tell(step_words(self.known, row))
            self.show(self.known, "")

    def _judge(self, step: Step) -> Followed:
        """Let the judge compare both sides of a step by their run seeds."""
        before, after = _sides(step)
        line = self.known.line(step.line)
        judged = line.judge(before, after)
        differs = judged.differs and line.lead(step) >= CLEAR
        row = Followed(
            line=step.line, before=before, after=after,
            differs=differs, said=judged_words(judged), ended=not differs,
        )  # fmt: skip
        self._keep([row])
        if not row.differs:
            self.say(step_words(self.known, row))
        return row


def _sides(step: Step | Followed) -> tuple[str, str]:
    """Return the last point of the old level and the first of the new."""
    if isinstance(step, Followed):
        return step.before, step.after
    return step.last.point.id, step.first.point.id


def step_words(known: Known, row: Followed) -> str:
    """Say what is known of a step, in one line."""
    names = [known.points[known.places[point]].name for point in (row.before, row.after)]
    line = f"{row.line.metric}, {row.line.label}: {row.said}"
    if not row.differs:
        return f"{line}: more run seeds show no step between {names[0]} and {names[1]}"
    if row.culprit:
        parts = [line, f"since {row.culprit_words}", *row.functions, row.capsule, row.command]
    else:
        parts = [
            line,
            f"between {names[0]} and {names[1]}",
            row.why_not or "what made it is being looked for",
        ]
    return "; ".join(filter(None, parts))


def passed_over_lines(known: Known) -> Iterator[str]:
    """Say which points are left out, those that lie side by side and have one reason together."""
    if gone := known.gone:
        whose = "of a history that was rewritten, or of another file of this name"
        yield f"{len(gone)} of {len(measured_points(known.rows))} measured points left out: {whose}"
    for watch in known.track.watch:
        rows = [row for row in known.passed_over if row.watch == watch.key]
        rows.sort(key=lambda row: known.places[row.point])
        span = known.spans[watch.key]
        names = [point.name for point in known.points]
        for lacking, where in ((span.start - 1, "from {} on"), (span.stop, "up to {}")):
            if why := next((row.why for row in rows if known.places[row.point] == lacking), ""):
                there = names[span.start if lacking < span.start else span.stop - 1]
                yield f"{watch.scenario}: runs {where.format(there)}: {why}"
        measured = {(row.label, known.places[row.point]) for row in known.measured if row.watch == watch.key}
        labels = {row.label for row in rows}
        values = {label: sorted(at for name, at in measured if label in ("", name)) for label in labels}
        within = dict.fromkeys((row.label, row.why, known.places[row.point]) for row in rows)
        beside = ((*row, bisect(values[row[0]], row[2])) for row in within if row[2] in span)
        for (label, why, _), some in groupby(beside, itemgetter(0, 1, 3)):
            those = [names[place] for _, _, place, _ in some]
            said = those[0] if len(those) == 1 else f"{those[0]} to {those[-1]} ({len(those)})"
            yield f"{said}: {watch.scenario}{label and f' {label}'} left out: {why}"
