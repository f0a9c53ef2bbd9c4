"""Statistics of each step on each subject: estimates, effect sizes, verdicts, outliers."""

from collections.abc import Iterator, Sequence

from agelab.analysis.cells import RunSet, SeedGroup
from agelab.analysis.judge import judge
from agelab.evaluate.derived_samples import WAITING
from agelab.present.report import charts
from agelab.present.report.answer.all_tests import describe_test
from agelab.present.report.blocks import Block, Column, Results, Row, Table, TableCell, headings
from agelab.present.report.charts import aged_and_control, traced_steps
from agelab.present.report.numbers import MAX_DECIMALS, interval_cell, median_cell, number, number_cell, text, unit_name
from agelab.results.cell_samples import Place
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import seeds_text
from agelab.scenario.step import AGED, AGED_MAP, CONTROL, CONTROL_MAP, StepId
from agelab.stats.formatting import decimals_for_spread, json_number, unit_scale
from agelab.stats.series import Series, SeriesPair, exact
from agelab.stats.shift import Interval
from agelab.stats.spread import outliers, spread_shares
from agelab.stats.verdict import ComparedSeries

LAYOUT = (
    ("layout_score", "layout score"),
    ("fragmented_files", "files in pieces, share"),
    ("extents_per_file", "extents a file"),
    ("locality_score", "files that follow the one before, share"),
    ("locality_distance", "distance to the file before, MB"),
    ("free_extents", "pieces of free space"),
    ("free_usable_1mib", "free in runs of 1 MiB and more, share"),
)
MIN_SHARE = 0.005
"""Smallest share of time of a system call; smaller ones are only in the table of all results."""
MAX_COLOURED_CALLS = 7
"""System calls with a colour of their own."""


def layout_tables(group: RunSet, where: str) -> Iterator[Table]:
    """Return a row for each subject: measures of the map at the history's end, aged and control."""
    last = max((at[1] for at in group.places if at[0] == AGED_MAP), default=None)
    if last is None:
        return
    there = {at[2] for at in group.places if at[0] == AGED_MAP}
    measures = [(metric, name) for metric, name in LAYOUT if metric in there]
    columns = (Column("filesystem"), Column("disk"), *(Column(name, "right") for _, name in measures))
    rows: list[Row] = [
        (subject.name, disk, *(median_cell(subject.series.get((step, last, metric)), 4) for metric, _ in measures))
        for subject in group.groups
        if subject.counted
        for step, disk in ((AGED_MAP, "aged"), (CONTROL_MAP, "unaged"))
    ]
    caption = "Where things lie: medians, in brackets the spread over the seeds (docs/measures.md)"
    yield Table(columns, tuple(rows), caption, id=f"{where}-layouts")


def syscall_tables(group: RunSet, where: str) -> Iterator[Block]:
    """Return the system calls of each step under strace: shares as charts, times and counts as a table."""
    rows: list[Row] = []
    parts: dict[str, dict[str, dict[str, float]]] = {}
    for step in traced_steps(group):
        for subject in group.groups:
            for place, series in subject.series.items():
                traced_step = StepId.parse(place[0])
                call = traced_step.name
                if traced_step.group != step or place[2] != "syscall_seconds":
                    continue
                share = subject.series.get((place[0], place[1], "syscall_share"))
                known = share.summary if share else None
                if known:
                    parts.setdefault(step, {}).setdefault(subject.name, {})[call] = float(known.median)
                    if known.median < MIN_SHARE:
                        continue
                elif call not in WAITING:
                    continue
                counts = ("syscall_calls", "syscall_errors")
                others = (subject.series.get((place[0], place[1], metric)) for metric in counts)
                rows.append(
                    (
                        step, subject.name, TableCell(call, code=True), median_cell(series, 6),
                        TableCell(f"{100 * float(known.median):.1f}", float(known.median))
                        if known else "waits",
                        *(median_cell(count) for count in others),
                    )
                )  # fmt: skip
    if not rows:
        return
    note = (
        "Shares of the time of all calls but those that wait for another process. strace counts the processor's time "
        "in the kernel, strace -w (pass strace-w) the time from a call's begin to its end."
    )
    yield from charts.share_charts("System calls of each traced step", parts, MAX_COLOURED_CALLS, note)
    numbers = ("s", "%", "calls", "errors")
    columns = headings("pass and step", "filesystem", "call", *numbers, numbers=numbers)
    caption = f"System calls with {100 * MIN_SHARE:g} % of their step's time and more"
    yield Table(columns, tuple(rows), caption, id=f"{where}-traced")


def all_results(group: RunSet, where: str) -> Results:
    """Return a row for each series: every number of the runs."""
    rows: list[tuple[str | float | None, ...]] = []
    for subject in group.groups:
        for (step, repetition, metric), series in subject.series.items():
            summary, unit = series.summary, "" if series.unit == "1" else series.unit
            if summary is None:
                why = series.missing[0][1] if series.missing else "not measured"
                rows.append((subject.name, step, repetition, metric, None, None, None, None, 0, unit, why))
                continue
            several = summary.n > 1
            numbers = (summary.median, summary.interval.low, summary.interval.high, summary.spread)
            shown = [json_number(figure) for figure in numbers]
            rows.append(
                (
                    subject.name, step, repetition, metric, shown[0],
                    shown[1] if several else None, shown[2] if several else None,
                    shown[3] if several else None, summary.n, unit, "",
                )
            )  # fmt: skip
    columns = headings(
        "filesystem", "step", "repetition", "metric", "median", "from", "to", "spread", "seeds", "unit", "reason",
        numbers=("repetition", "median", "from", "to", "spread", "seeds"),
    )  # fmt: skip
    caption = "Every result: the median over the seeds, the interval that holds it, the spread (largest less smallest)"
    return Results(f"{where}-results", caption, columns, tuple(rows))


def cell_table(group: RunSet, where: str) -> Table:
    """Return status, key and digest of each cell."""
    rows: list[Row] = []
    for subject, entry in group.cells:
        end, corpus = entry.end, entry.seeds.corpus
        rows.append(
            (
                subject.name, TableCell(str(entry.seed), entry.seed), TableCell(str(corpus), corpus),
                entry.status,
                end.why if end else "",
                TableCell((end and end.inputs_key) or "–", code=True),
                TableCell((end and end.digest) or "–", code=True),
                f"{entry.run} {entry.number}",
            )
        )  # fmt: skip
    names = ("filesystem", "seed", "corpus", "status", "reason", "inputs_key", "digest", "run and cell")
    caption = "Every cell: equal inputs_key, equal digest, on any host"
    return Table(headings(*names, numbers=("seed", "corpus")), tuple(rows), caption, id=f"{where}-cells")


FIGURES = 5
"""Figures of a value to show."""
CAPTION = "What programs, and the scenario's own metrics, have measured: medians over the seeds"


def program_tables(group: RunSet, where: str) -> Iterator[Table]:
    """Return a row for each metric that the registry does not have, of each subject; nothing where there is none."""
    rows = []
    any_aged = False
    for subject in group.groups:
        for (step, repetition, metric), series in subject.series.items():
            step_id = StepId.parse(step)
            if metric in METRICS or step_id.disk == CONTROL:
                continue
            control = None
            if step_id.disk == AGED:
                any_aged = True
                control = subject.series.get((step.replace(AGED, CONTROL, 1), repetition, metric))
            name = step_id.name if step_id.disk else step
            values = (_cell(series), *((_cell(control), _ratio(series, control)) if control else ()))
            rows.append((subject.name, name, TableCell(metric, code=True), series, values))
    if not rows:
        return
    columns = [
        "filesystem",
        "step",
        "metric",
        "unit",
        *(("aged", "unaged", "aged / unaged") if any_aged else ("value",)),
    ]
    width = len(columns) - 4
    shown = tuple(
        (*names, unit_name(series.unit), *values, *["–"] * (width - len(values))) for *names, series, values in rows
    )
    numbers = ("aged", "unaged", "aged / unaged", "value")
    yield Table(headings(*columns, numbers=numbers), shown, CAPTION, id=f"{where}-programs")


def _cell(series: Series) -> TableCell:
    if series.summary is None:
        return TableCell("?")
    value = float(series.summary.median / unit_scale(series.unit).divisor)
    return TableCell(f"{value:.{FIGURES}g}", value)


def _ratio(series: Series, control: Series) -> TableCell:
    aged, unaged = series.summary, control.summary
    if aged is None or unaged is None or not unaged.median:
        return TableCell("–")
    ratio = float(aged.median / unaged.median)
    return TableCell(f"{ratio:.3f}", ratio)


OUTLIER_METRICS = ("elapsed", "slowdown")
"""Metrics whose outliers are listed: among all metrics chance alone would produce some."""
MAX_OUTLIERS = 40
"""Outliers listed by name."""
STEP_NUMBERS = (
    *("seeds", "median, s", "mean, s", "median’s interval, s", "times the quickest"),
    *("its interval", "Cliff’s delta", "p"),
)
STEP = headings("step", "filesystem", *STEP_NUMBERS, "against the quickest", numbers=STEP_NUMBERS)
TEST_NUMBERS = (
    *("seeds", "aged, s", "mean, s", "unaged, s", "mean, s", "slowdown", "its interval"),
    *("Cliff’s delta", "p"),
)
TEST = headings("test", "filesystem", *TEST_NUMBERS, "aged against unaged", numbers=TEST_NUMBERS)
METHOD = (
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
    timed: list[tuple[str, SeedGroup, Series, Series]] = []
    for step in steps:
        mine = [(subject, subject.steps.get((step, "elapsed"))) for subject in group.groups]
        known = [(subject, series, series.summary) for subject, series in mine if series and series.summary]
        if known:
            best = min(known, key=lambda entry: entry[2].median)[1]
            timed += [(step, subject, best, series) for subject, series, _ in known]
    if not timed:
        return
    against = [at for at, (_, _, best, series) in enumerate(timed) if series is not best]
    pairs = [SeriesPair(timed[at][2], timed[at][3]) for at in against]
    judged = dict(zip(against, judge(pairs, group.host), strict=True))
    rows: list[Row] = []
    for at, (_, subject, _, series) in enumerate(timed):
        compared = judged.get(at)
        rows.append(
            (
                series.title, subject.name,
                TableCell(str(len(series.numbers)), len(series.numbers)),
                *_both(series),
                _between(series),
                *(_effect(compared) if compared else (TableCell("1", 1), *[TableCell("–")] * 3)),
                _verdict(compared) if compared else "lowest median",
            )
        )  # fmt: skip
    caption = "Step by step, each filesystem against the quickest"
    yield Table(STEP, tuple(rows), caption, METHOD, id=f"{where}-compared")


def test_tables(group: RunSet, places: Sequence[Place], where: str) -> Iterator[Table]:
    """Return a row for each test and subject: aged disk compared with the unaged one."""
    tests: list[tuple[SeedGroup, Series, SeriesPair]] = []
    for place in places:
        step, repetition, _ = place
        for subject in group.groups:
            if slowdown := subject.series.get(place):
                empty = Series(step, repetition, "elapsed", "s", (), ())
                old, new = (subject.series.get((side, repetition, "elapsed"), empty) for side in aged_and_control(step))
                tests.append((subject, slowdown, SeriesPair(new, old)))
    judged = judge([row for *_, row in tests], group.host)
    rows: list[Row] = []
    for (subject, slowdown, row), compared in zip(tests, judged, strict=True):
        n, summary = len(slowdown.values), slowdown.summary
        rows.append(
            (
                slowdown.title, subject.name, TableCell(str(n), n),
                *_both(row.right), *_both(row.left),
                TableCell(text(summary), float(summary.median)) if summary else "?",
                _between(slowdown), *_effect(compared)[2:], _verdict(compared),
            )
        )  # fmt: skip
    if rows:
        caption = "Every test on the aged disk and on the unaged one"
        notes = " ".join(filter(None, (METHOD, RATIO, _described([step for step, *_ in places]))))
        yield Table(TEST, tuple(rows), caption, notes, id=f"{where}-slowdowns")


def _described(steps: Sequence[str]) -> str:
    """Say what the tests are, of those whose names do not; nothing where all of them do."""
    words = {step: describe_test(step) for step in steps}
    descriptions = "; ".join(f"{step} is {word}" for step, word in words.items() if word != f"test {step}")
    return f"Of the tests {descriptions}." if descriptions else ""


FLASH = ("flash_programmed", "flash_moved", "blocks_erased", "discarded", "write_amplification", "gc_wait")
FLASH_NUMBERS = (
    *("programmed, MB", "moved, MB", "blocks erased", "discarded, MB", "write amplification"),
    "waiting for collection, s",
)
FLASH_COLUMNS = headings("step", "filesystem", *FLASH_NUMBERS, numbers=FLASH_NUMBERS)
FLASH_CAPTION = "What the flash did: medians over the seeds, of a repeated step its mean (docs/drives.md)"


def flash_tables(group: RunSet, where: str) -> Iterator[Table]:
    """Return a row for each step and subject that had something written to flash, or waited for it."""
    steps = dict.fromkeys(step for subject in group.groups for step, metric in subject.steps if metric == FLASH[0])
    rows: list[Row] = []
    for step in steps:
        for subject in group.groups:
            found = [subject.steps.get((step, metric)) for metric in FLASH]
            if any(series.summary and series.summary.median for series in found if series):
                title = next(series.title for series in found if series)
                cells = (median_cell(series) for series in found)
                rows.append((title, subject.name, *cells))
    if rows:
        yield Table(FLASH_COLUMNS, tuple(rows), FLASH_CAPTION, id=f"{where}-flash")


def share_tables(group: RunSet, places: Sequence[Place], where: str) -> Iterator[Table]:
    """Return a row for each subject whose corpora and run seeds were varied: where its slowdown's spread comes from."""
    varied = [
        (series, subject, shares)
        for place in places
        for subject in group.groups
        if (series := subject.series.get(place)) and (shares := spread_shares(series.values))
    ]
    rows: list[Row] = []
    for series, subject, shares in varied:
        parts = (shares.corpus, shares.run, shares.rest)
        percents = (None if part is None else 100 * part for part in parts)
        rows.append((f"{series.title}, {series.metric}", subject.name, *(number_cell(part, 0) for part in percents)))
    if rows:
        numbers = ("corpus seed, %", "run seed, %", "both together, %")
        columns = headings("what", "filesystem", *numbers, numbers=numbers)
        caption = "Where the spread comes from: shares of the variance, of another corpus and another run seed"
        yield Table(columns, tuple(rows), caption, SHARES, id=f"{where}-shares")


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


def _effect(compared: ComparedSeries) -> tuple[TableCell, TableCell, TableCell, TableCell]:
    """Format ratio, its interval, Cliff's delta and the corrected p."""
    test = compared.test
    p = test.p_corrected if test else None
    return (
        number_cell(compared.ratio, 3, "?"),
        interval_cell(compared.interval, 3),
        number_cell(test.delta if test else None, 2),
        TableCell("–") if p is None else TableCell(f"{p:.2g}", p),
    )


def _verdict(compared: ComparedSeries) -> str:
    """Say the verdict, its reason, which files it is about, and whether it holds for others."""
    if compared.too_few:
        return "not known: too few seeds"
    if not compared.differs or not compared.shift or len(compared.shift.corpora) < 2:
        return compared.word_and_reason
    return "; ".join(filter(None, (f"{compared.reader_word} {compared.files}", compared.others)))


def list_outliers(group: RunSet) -> list[str]:
    """List the values far from the others of their series: seed, value, median."""
    lines = []
    for subject in group.groups:
        for step, metric in subject.steps:
            if metric in OUTLIER_METRICS and (summary := (series := subject.steps[step, metric]).summary):
                unit = "" if metric == "slowdown" else " s"
                lines += [
                    f"{subject.name}, {step}, {metric}: {seeds_text([at])} has {number(value, 3)}{unit}, the median is "
                    f"{number(summary.median, 3)}{unit}"
                    for at, value in outliers(series)
                ]
    more = [f"and {len(lines) - MAX_OUTLIERS} more"] if len(lines) > MAX_OUTLIERS else []
    return [*lines[:MAX_OUTLIERS], *more]
