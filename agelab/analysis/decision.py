"""A question about variants, and whether their values decide it: which is worst or best, or A against B."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from agelab.analysis.cells import SeedGroup, main_measures
from agelab.analysis.comparison import matches
from agelab.analysis.judge import judge, rank_by_median
from agelab.base.errors import InputError, unknown
from agelab.results.measure import ALL_STEPS, Measure
from agelab.results.result import Cell
from agelab.scenario.metrics import METRICS, Metric
from agelab.stats import phrasing
from agelab.stats.series import Series, SeriesPair
from agelab.stats.verdict import ComparedSeries, DifferenceVerdict

EXTREMES = ("worst", "best")
FORM = "worst:STEP:METRIC, best:STEP:METRIC or A:B:STEP:METRIC, like ext4:xfs:copy:elapsed"


@dataclass(frozen=True)
class Question:
    """What is asked of the variants of a run."""

    measure: Measure
    extreme: str = ""
    """``worst`` or ``best``; empty for two sides."""
    sides: tuple[str, ...] = ()
    """The choices of A and of B, as ``agelab compare`` has them behind a run's name."""
    better: str | None = None
    """The metric's better direction: ``higher`` or ``lower``."""

    def __str__(self) -> str:
        return ":".join([*([self.extreme] if self.extreme else self.sides), str(self.measure)])


@dataclass(frozen=True)
class Look:
    """What the values say."""

    decided: bool
    said: str
    """In one line."""


def require_form(text: str) -> None:
    """Raise InputError for what is no question, whatever metrics there are."""
    _words(text)


def parse_question(text: str, own: Mapping[str, Metric] | None = None) -> Question:
    """Parse a question about a metric of agelab's, or of a scenario's own. Raises InputError."""
    words, measure = _words(text)
    metrics = {**METRICS, **(own or {})}
    known = metrics.get(measure.metric)
    if known is None:
        raise unknown("metric", measure.metric, list(metrics))
    if len(words) == 1 and known.better is None:
        raise InputError(f"--ask {text}: of {measure.metric} neither much nor little is worse; ask A:B:{measure}")
    extreme, sides = (words[0], ()) if len(words) == 1 else ("", tuple(words))
    return Question(measure, extreme, sides, known.better)


def _words(text: str) -> tuple[list[str], Measure]:
    """Return the words before the measure, and this. Raises InputError."""
    words = text.split(":")
    count = 1 if words[0] in EXTREMES else 2
    if len(words) < count + 2 or not all(words):
        raise InputError(f"--ask {text}: it is {FORM}")
    return words[:count], Measure.parse(":".join(words[count:]), f"--ask {text}:")


def require_sides(question: Question | None, cells: Sequence[Cell]) -> None:
    """Raise InputError where the cells have nothing to ask about: one variant alone, or a side that fits none."""
    labels = list(dict.fromkeys(cell.label for cell in cells))
    for side in question.sides if question else ():
        fitting = {cell.label for cell in cells if _fits(cell, side)}
        if len(fitting) != 1:
            what = f"names {len(fitting)} of" if fitting else "is none of"
            raise InputError(f"--ask {question}: {side} {what} what is run: {'; '.join(labels)}")
    if len(labels) < 2:
        raise InputError(f"--seeds auto: {labels[0]} alone is run: there is nothing to compare it with")


def main_question(groups: Sequence[SeedGroup]) -> Question:
    """Return what a scenario is about: what aged worst, held the most, or was the quickest."""
    measures = main_measures(groups)
    measured = (at for at in measures for group in groups if (series := group.measured(at)) and series.values)
    measure = next(measured, ALL_STEPS)
    extreme = "worst" if measure.metric == "slowdown" else "best"
    return Question(measure, extreme, better=METRICS[measure.metric].better)


def decide(question: Question, groups: Sequence[SeedGroup], level: Fraction) -> Look:
    """Say whether the values decide the question at that level. Raises InputError where nothing has its metric."""
    measured = [(group, group.measured(question.measure)) for group in groups]
    if not any(series for _, series in measured):
        metrics = dict.fromkeys(":".join(at) for group in groups for at in group.steps)
        raise unknown("metric of this run", str(question.measure), [*metrics])
    if question.sides:
        sides = [next(pair for pair in measured if _fits(pair[0].cell, side)) for side in question.sides]
        return _of_two(sides, level)
    return _of_all(question, measured, level)


def _of_two(sides: Sequence[tuple[SeedGroup, Series | None]], level: Fraction) -> Look:
    (left_group, left_series), (right_group, right_series) = sides
    if not (left_series and left_series.values and right_series and right_series.values):
        empty = right_group if left_series and left_series.values else left_group
        return Look(False, f"{empty.cell.short_label} has no value")
    [judged] = judge([SeriesPair(left_series, right_series)], left_group.host, correct=False, level=level)
    names = f"{right_group.cell.short_label} against {left_group.cell.short_label}"
    files = f" {judged.files}" if judged.differs else ""
    line = f"{names}: {_ratio(judged)}{judged.word_and_reason}{files}"
    return Look(judged.differs or judged.alike, line)


def _of_all(question: Question, measured: Sequence[tuple[SeedGroup, Series | None]], level: Fraction) -> Look:
    highest = (question.better == "higher") == (question.extreme == "best")
    order = rank_by_median(measured, highest=highest, level=level)
    if len(order.order) < 2:
        return Look(False, "fewer than two have a value")
    first, *names = (group.cell.short_label for group, _ in order.order)
    against = list(zip(names, order.compared, strict=True))
    verdict = DifferenceVerdict.HIGHER if highest else DifferenceVerdict.LOWER
    tied = [(name, compared) for name, compared in against if compared.verdict is not verdict]
    if not tied:
        from_others = phrasing.distinguishable(len(against))
        return Look(True, f"{question.extreme} is {first}, {from_others} {order.on_these_files}")
    if all(compared.alike for _, compared in tied):
        same = ", ".join(name for name, _ in tied)
        return Look(True, f"no single one is {question.extreme}: {first} is the same as {same}")
    reasons = (f"{name}: {compared.word_and_reason}" for name, compared in tied if not compared.alike)
    end = "highest" if highest else "lowest"
    return Look(False, f"{first} has the {end} median, but against {'; '.join(reasons)}")


def _ratio(judged: ComparedSeries) -> str:
    return f"{float(judged.ratio):.3f} times, " if judged.ratio is not None else ""


def _fits(cell: Cell, side: str) -> bool:
    """Return whether a cell is of a side: a variant or layout by its name alone, other fields by AXIS=VALUE."""
    for word in filter(None, side.split(",")):
        axis, equals, value = word.partition("=")
        if not (matches(cell, axis, value) if equals else word in (cell.variant, cell.layout)):
            return False
    return True
