"""Statistics of each step on each subject: estimates, effect sizes, verdicts, outliers."""

from collections.abc import Iterator, Sequence

from agelab.analysis.cells import RunSet, SeedGroup
from agelab.analysis.judge import judge
from agelab.present.report.answer.all_tests import describe_test
from agelab.present.report.model import Heading, Table, TableCell
from agelab.present.report.numbers import MAX_DECIMALS, interval_cell, number, number_cell, text
from agelab.present.report.step_selection import aged_and_control
from agelab.scenario.seeds import seeds_text
from agelab.stats.formatting import decimals_for_spread
from agelab.stats.series import Place, Series, SeriesPair, exact
from agelab.stats.shift import Interval
from agelab.stats.spread import outliers, spread_shares
from agelab.stats.verdict import ComparedSeries

OUTLIER_METRICS = ("elapsed", "slowdown")
"""Metrics whose outliers are listed: among all metrics chance alone would produce some."""
MAX_OUTLIERS = 40
"""Outliers listed by name."""
STEP = (
    Heading("step"), Heading("filesystem"), Heading("seeds", True), Heading("median, s", True),
    Heading("mean, s", True),
    Heading("median’s interval, s", True), Heading("times the quickest", True), Heading("its interval", True),
    Heading("Cliff’s delta", True), Heading("p", True), Heading("against the quickest"),
)  # fmt: skip
TEST = (
    Heading("test"), Heading("filesystem"), Heading("seeds", True), Heading("aged, s", True), Heading("mean, s", True),
    Heading("unaged, s", True), Heading("mean, s", True), Heading("slowdown", True), Heading("its interval", True),
    Heading("Cliff’s delta", True), Heading("p", True), Heading("aged against unaged"),
)  # fmt: skip
SAID = (
    "Medians and means over the seeds. A ratio is the median of the ratios of all pairs of values of one corpus, its "
    "interval (95 %) what the rank test does not exclude; where the corpora differ in it, it holds the interval (99 %) "
    "of each. p is the test’s, corrected for all rows of the table (Benjamini and Hochberg). All of it is about the "
    "files that were run, unless it says that it holds for others. The same: the whole interval lies within 5 %."
)

RATIO = (
    "The slowdown is the median of the run seeds' own: of each seed its time on the aged disk over its time on the "
    "unaged one. It need not be the ratio of the two medians."
)


def step_tables(group: RunSet, steps: Sequence[str], where: str) -> Iterator[Table]:
    """Return a row for each step and subject, compared with the step's quickest."""
    found: list[tuple[str, SeedGroup, Series, Series]] = []
    for step in steps:
        mine = [(one, one.steps.get((step, "elapsed"))) for one in group.groups]
        known = [(one, series, series.summary) for one, series in mine if series and series.summary]
        if known:
            best = min(known, key=lambda one: one[2].median)[1]
            found += [(step, one, best, series) for one, series, _ in known]
    if not found:
        return
    against = [at for at, (_, _, best, series) in enumerate(found) if series is not best]
    pairs = [SeriesPair(found[at][2], found[at][3]) for at in against]
    judged = dict(zip(against, judge(pairs, group.host), strict=True))
    rows = []
    for at, (_, subject, _, series) in enumerate(found):
        one = judged.get(at)
        rows.append(
            (
                TableCell(series.title), TableCell(subject.name),
                TableCell(str(len(series.values)), len(series.values)),
                *_both(series),
                _between(series),
                *(_effect(one) if one else (TableCell("1", 1), TableCell("–"), TableCell("–"), TableCell("–"))),
                TableCell(_said(one) if one else "lowest median"),
            )
        )  # fmt: skip
    yield Table(
        f"{where}-compared", "Step by step, each filesystem against the quickest", STEP, tuple(rows), SAID
    )


def test_tables(group: RunSet, places: Sequence[Place], where: str) -> Iterator[Table]:
    """Return a row for each test and subject: aged disk compared with the unaged one."""
    found: list[tuple[SeedGroup, Series, SeriesPair]] = []
    for place in places:
        step, repetition, _ = place
        for subject in group.groups:
            if slowdown := subject.series.get(place):
                empty = Series(step, repetition, "elapsed", "s", (), ())
                old, new = (
                    subject.series.get((one, repetition, "elapsed"), empty) for one in aged_and_control(step)
                )
                found.append((subject, slowdown, SeriesPair(new, old)))
    judged = judge([row for *_, row in found], group.host)
    rows = []
    for (subject, slowdown, row), one in zip(found, judged, strict=True):
        n, summary = len(slowdown.values), slowdown.summary
        rows.append(
            (
                TableCell(slowdown.title), TableCell(subject.name), TableCell(str(n), n),
                *_both(row.right), *_both(row.left),
                TableCell(text(summary), float(summary.median)) if summary else TableCell("?"),
                _between(slowdown), *_effect(one)[2:], TableCell(_said(one)),
            )
        )  # fmt: skip
    if rows:
        caption = "Every test on the aged disk and on the unaged one"
        notes = " ".join(filter(None, (SAID, RATIO, _described([step for step, *_ in places]))))
        yield Table(f"{where}-slowdowns", caption, TEST, tuple(rows), notes)


def _described(steps: Sequence[str]) -> str:
    """Say what the tests are, of those whose names do not; nothing where all of them do."""
    words = {step: describe_test(step) for step in steps}
    told = "; ".join(f"{step} is {word}" for step, word in words.items() if word != f"test {step}")
    return f"Of the tests {told}." if told else ""


def share_tables(group: RunSet, places: Sequence[Place], where: str) -> Iterator[Table]:
    """Return a row for each subject whose corpora and run seeds were varied: where its slowdown's spread comes from."""
    found = [
        (series, subject, shares)
        for place in places
        for subject in group.groups
        if (series := subject.series.get(place)) and (shares := spread_shares(series.values))
    ]
    rows = []
    for series, subject, shares in found:
        parts = (shares.corpus, shares.run, shares.rest)
        percents = (None if part is None else 100 * part for part in parts)
        rows.append(
            (
                TableCell(f"{series.title}, {series.metric}"),
                TableCell(subject.name),
                *(number_cell(part, 0) for part in percents),
            )
        )
    if rows:
        columns = (
            Heading("what"), Heading("filesystem"), Heading("corpus seed, %", True), Heading("run seed, %", True),
            Heading("both together, %", True),
        )  # fmt: skip
        caption = (
            "Where the spread comes from: shares of the variance, of another corpus and another run seed"
        )
        yield Table(f"{where}-shares", caption, columns, tuple(rows), SHARES)


SHARES = (
    "Analysis of variance, of logarithms; a share that comes out negative is zero. Both together: what a run seed does "
    "on one corpus and not on another; without a share of the run seed, all that run seeds do. Of few corpora a share "
    "is rough."
)


def _both(series: Series) -> tuple[TableCell, TableCell]:
    """Format median and mean."""
    if (summary := series.summary) is None:
        return TableCell("?"), TableCell("?")
    mean = sum((value for _, value in series.values), exact(0)) / summary.n
    places = decimals_for_spread(MAX_DECIMALS, summary.spread, mean)
    return TableCell(text(summary), float(summary.median)), number_cell(mean, places)


def _between(series: Series) -> TableCell:
    """Format the interval that holds the median."""
    if (summary := series.summary) is None or summary.n < 2:
        return TableCell("–")
    places = decimals_for_spread(MAX_DECIMALS, summary.spread, summary.median)
    return interval_cell(Interval(summary.interval.low, summary.interval.high), places)


def _effect(one: ComparedSeries) -> tuple[TableCell, TableCell, TableCell, TableCell]:
    """Format ratio, its interval, Cliff's delta and the corrected p."""
    test = one.test
    p = test.p_corrected if test else None
    return (
        number_cell(one.ratio, 3, "?"),
        interval_cell(one.interval, 3),
        number_cell(test.delta if test else None, 2),
        TableCell("–") if p is None else TableCell(f"{p:.2g}", p),
    )


def _said(one: ComparedSeries) -> str:
    """Say the verdict, its reason, which files it is about, and whether it holds for others."""
    if one.too_few:
        return "not known: too few seeds"
    if not one.differs or not one.shift or len(one.shift.corpora) < 2:
        return one.word_and_reason
    return "; ".join(filter(None, (f"{one.reader_word} {one.files}", one.others)))


def list_outliers(group: RunSet) -> list[str]:
    """List the values far from the others of their series: seed, value, median."""
    found = []
    for subject in group.groups:
        for (step, metric), series in subject.steps.items():
            if metric in OUTLIER_METRICS and (summary := series.summary):
                unit = "" if metric == "slowdown" else " s"
                found += [
                    f"{subject.name}, {step}, {metric}: {seeds_text([at])} has {number(value, 3)}{unit}, the median is "
                    f"{number(summary.median, 3)}{unit}"
                    for at, value in outliers(series)
                ]
    more = [f"and {len(found) - MAX_OUTLIERS} more"] if len(found) > MAX_OUTLIERS else []
    return [*found[:MAX_OUTLIERS], *more]
