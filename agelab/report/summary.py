"""The summary of each step on each subject, and what may be said of it: estimates, effect sizes, verdicts, outliers."""

from collections.abc import Iterator, Sequence

from agelab.report.across import does
from agelab.report.gather import Group, Subject
from agelab.report.model import Cell, Column, Table
from agelab.report.numbers import MOST, number, text
from agelab.report.steps import sides
from agelab.stats.bootstrap import Between, estimates
from agelab.stats.compared import Compared, compared
from agelab.stats.digits import decimals
from agelab.stats.order import exact
from agelab.stats.outliers import outliers
from agelab.stats.series import MEAN, Place, Row, Series

WORD = {"higher": "slower", "lower": "faster"}
"""What a higher time is."""
TIMED = ("elapsed", "slowdown")
"""The metrics of which outliers are named: of all there are some would be named by chance alone."""
NAMED = 40
"""Outliers to name."""
STEP = (
    Column("step"), Column("filesystem"), Column("seeds", True), Column("median, s", True), Column("mean, s", True),
    Column("median’s interval, s", True), Column("times the quickest", True), Column("its interval", True),
    Column("Cliff’s delta", True), Column("p", True), Column("against the quickest"),
)  # fmt: skip
TEST = (
    Column("test"), Column("filesystem"), Column("seeds", True), Column("aged, s", True), Column("mean, s", True),
    Column("unaged, s", True), Column("mean, s", True), Column("slowdown", True), Column("its interval", True),
    Column("Cliff’s delta", True), Column("p", True), Column("aged against unaged"),
)  # fmt: skip
SAID = (
    "Medians and means over run seeds; intervals are bootstrap intervals (95 % by name) of run seeds drawn again; "
    "p is Mann and Whitney’s, corrected for all rows of the table (Benjamini and Hochberg). "
    "Slower and faster are said above the floor alone."
)

RATIO = (
    "The slowdown is the median of the run seeds' own: of each seed its time on the aged disk over its time on the "
    "unaged one. It need not be the ratio of the two medians."
)


def by_step(group: Group, steps: Sequence[str], where: str) -> Iterator[Table]:
    """A row for each step and subject, held against the step's quickest."""
    found: list[tuple[str, Subject, Series, Series]] = []
    for step in steps:
        mine = [(one, one.step(step, "elapsed")) for one in group.subjects]
        known = [(one, series, series.summary) for one, series in mine if series and series.summary]
        if known:
            best = min(known, key=lambda one: one[2].median)[1]
            found += [(step, one, best, series) for one, series, _ in known]
    if not found:
        return
    against = [at for at, (_, _, best, series) in enumerate(found) if series is not best]
    judged = dict(
        zip(against, compared([Row(found[at][2], found[at][3]) for at in against], group.chance), strict=True)
    )
    told = estimates({at: series for at, (_, _, _, series) in enumerate(found)})
    rows = []
    for at, (step, subject, _, series) in enumerate(found):
        name = f"{step}, mean of a repetition" if series.repetition == MEAN else step
        one = judged.get(at)
        rows.append(
            (
                Cell(name), Cell(subject.name), Cell(str(len(series.values)), len(series.values)), *_both(series),
                _between(told[at].median_interval, series),
                *(_effect(one) if one else (Cell("1", 1), Cell("–"), Cell("–"), Cell("–"))),
                Cell(_word(one) if one else "lowest median"),
            )
        )  # fmt: skip
    yield Table(
        f"{where}-compared", "Step by step, each filesystem against the quickest", STEP, tuple(rows), SAID
    )


def by_test(group: Group, places: Sequence[Place], where: str) -> Iterator[Table]:
    """A row for each test and subject: the aged disk held against the unaged one."""
    found: list[tuple[str, Subject, Series, Row]] = []
    for place in places:
        step, repetition, _ = place
        name = step if repetition == 1 else f"{step} {repetition}"
        for subject in group.subjects:
            if slowdown := subject.series.get(place):
                empty = Series(step, repetition, "elapsed", "s", (), ())
                old, new = (subject.series.get((one, repetition, "elapsed"), empty) for one in sides(step))
                found.append((name, subject, slowdown, Row(new, old)))
    judged = compared([row for *_, row in found], group.chance)
    told = estimates({at: slowdown for at, (_, _, slowdown, _) in enumerate(found)})
    rows = []
    for at, ((name, subject, slowdown, row), one) in enumerate(zip(found, judged, strict=True)):
        n, summary = len(slowdown.values), slowdown.summary
        rows.append(
            (
                Cell(name), Cell(subject.name), Cell(str(n), n), *_both(row.right), *_both(row.left),
                Cell(text(summary), float(summary.median)) if summary else Cell("?"),
                _between(told[at].median_interval, slowdown) if at in told else Cell("–"),
                *_effect(one)[2:], Cell(_word(one)),
            )
        )  # fmt: skip
    if rows:
        what = "; ".join(f"{place[0]} is {does(place[0])}" for place in places)
        caption = "Every test on the aged disk and on the unaged one"
        yield Table(f"{where}-slowdowns", caption, TEST, tuple(rows), f"{SAID} {RATIO} Of the tests {what}.")


def _both(series: Series) -> tuple[Cell, Cell]:
    """Median and mean."""
    if (summary := series.summary) is None:
        return Cell("?"), Cell("?")
    mean = sum((value for _, value in series.values), exact(0)) / summary.n
    places = min(MOST, decimals(MOST, summary.spread, mean))
    return Cell(text(summary), float(summary.median)), Cell(number(mean, places), float(mean))


def _between(interval: Between | None, series: Series) -> Cell:
    if interval is None or (summary := series.summary) is None:
        return Cell("–")
    places = min(MOST, decimals(MOST, summary.spread, summary.median))
    return Cell(f"{number(interval.low, places)} to {number(interval.high, places)}", interval.low)


def _effect(one: Compared) -> tuple[Cell, Cell, Cell, Cell]:
    """Ratio, its interval, Cliff's delta and the corrected p."""
    ratio, interval, test = one.ratio, one.interval, one.test
    return (
        Cell("?") if ratio is None else Cell(number(ratio, 3), float(ratio)),
        Cell("–")
        if interval is None
        else Cell(f"{number(interval.low, 3)} to {number(interval.high, 3)}", interval.low),
        Cell("–") if test is None else Cell(number(test.delta, 2), float(test.delta)),
        Cell("–") if test is None else Cell(f"{test.corrected:.2g}", test.corrected),
    )


def _word(one: Compared) -> str:
    """The verdict; of what is above the floor but may be chance, and of too few seeds, the reason."""
    return one.word if one.differs else one.reason or one.word


def named(group: Group) -> list[str]:
    """The values that lie far from the others of their series: seed, value, median."""
    found = []
    for subject in group.subjects:
        for step, metric in subject.steps:
            series = subject.step(step, metric) if metric in TIMED else None
            for seed, value in outliers(series) if series else ():
                summary = series.summary if series else None
                if summary:
                    unit = "" if metric == "slowdown" else " s"
                    found.append(
                        f"{subject.name}, {step}, {metric}: seed {seed} has {number(value, 3)}{unit}, the median is "
                        f"{number(summary.median, 3)}{unit}"
                    )
    more = [f"and {len(found) - NAMED} more"] if len(found) > NAMED else []
    return [*found[:NAMED], *more]
