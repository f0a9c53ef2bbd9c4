"""The published study beside the runs: its tables and ours, and a verdict on each claim."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

from agelab.analysis.cells import RunSet
from agelab.analysis.published import phrasing, study
from agelab.analysis.published.claim_verdict import ClaimVerdict
from agelab.analysis.published.report import RankedColumn as Side
from agelab.analysis.published.report import RankedRow, Ranking, StepDeviation, StudyReport, measured, study_reports
from agelab.analysis.published.run_columns import RunColumn
from agelab.base.errors import InputError
from agelab.base.gathered import gathered
from agelab.present.report import drawing
from agelab.present.report.blocks import (
    Answer,
    Block,
    Chart,
    Charts,
    Item,
    Mark,
    Prose,
    Row,
    Table,
    TableCell,
    headings,
)
from agelab.present.report.charts import MAX_CHARTS
from agelab.stats.phrasing import capital
from agelab.stats.series import Series

NUMBERS = ("within\n25 %", "within a\nfactor of 2", "beyond", "step's\npart", "own")


def side_list(report: StudyReport, *, names: bool = True) -> Prose:
    """List the sides: what ran, how many claims it bears out, how far its cells are off, and what is left out."""

    def notes(letter: str, side: RunColumn) -> Iterator[str]:
        yield phrasing.count_verdicts(report, letter)
        yield from phrasing.variants_not_run(side)
        yield from phrasing.deviation_counts(report, letter)
        yield from side.names if names else ()
        yield from (f"left out: {line}" for line in side.left_out)
        yield from phrasing.chance_notes(report, letter)

    items = (
        Item(phrasing.describe_column(side), lead=letter, below=tuple(map(Item, notes(letter, side))))
        for letter, side in report.sides
    )
    return Prose(tuple(items), listed=True)


def ranking_blocks(report: StudyReport, ranking: Ranking, where: str = "", number: int = 0) -> Iterator[Block]:
    """Yield the study's table beside ours, and how far ours are off."""
    yield _table(report, ranking, f"{where}-ranking-{number}")
    yield from _deviation_blocks(report, ranking, f"{where}-off-{number}")


def _deviation_blocks(report: StudyReport, ranking: Ranking, id: str) -> Iterator[Block]:
    """Yield for each side a row for each step, and below it what is said of all of them."""
    for column, deviation in zip(report.columns, ranking.deviations, strict=True):
        if not deviation.steps:
            continue
        name = f"{column.name}, table {ranking.table}, {ranking.layout}, {ranking.metric}"
        if rows := tuple(_row(step) for step in deviation.steps if step.ratios):
            columns = headings("step", *NUMBERS, "farthest own", numbers=NUMBERS)
            caption = f"How far off, in cells: {name}. Off is {phrasing.times_text(deviation)}"
            yield Table(columns, rows, caption, id=f"{id}-{column.name.replace(' ', '-')}")
        lines = tuple(f"{capital(line)}." for line in phrasing.deviation_lines(deviation))
        yield Prose(lines, listed=True)


def _row(step: StepDeviation) -> Row:
    far = f"{step.farthest} {phrasing.factor_text(step.rest[step.farthest])}" if step.farthest else "-"
    parts = [TableCell(phrasing.factor_text(part), part) for part in (step.common, step.typical_rest)]
    return step.step, *(TableCell(str(number), number) for number in step.bands), *parts, far


STUDY_COLOUR = 6
"""Number of the study's colour."""


def compare_with_study(group: RunSet) -> tuple[StudyReport | None, str]:
    """Compare the study that the group's scenario follows with its runs; None if none was published.

    Returns as well why the study cannot be read, or nothing.
    """
    runs = [run for run in group.runs if run.cells]
    try:
        known = [name for published in study.all_studies() for name in published.scenarios]
        return (study_reports(runs)[0] if runs and group.plan.scenario in known else None), ""
    except InputError as error:
        return None, str(error).splitlines()[0]


def is_asked(report: StudyReport) -> bool:
    """Return True if the runs were made for the study: most of its claims could be tested by one side of them."""
    return any(
        2 * report.counts(letter).kinds[ClaimVerdict.UNTESTED] < len(report.claims) for letter, _ in report.sides
    )


def study_answer(report: StudyReport) -> Answer:
    """Answer how many of the study's claims hold, for each side."""
    question = f"Does what the study ({report.study.name}) found still hold?"
    if len(report.sides) == 1:
        [(letter, side)] = report.sides
        lines = tuple(f"{capital(line)}." for line in phrasing.variants_not_run(side))
        return Answer(question, f"{phrasing.count_verdicts(report, letter)}.", lines)
    lines = tuple(
        f"{letter} ({phrasing.describe_column(side)}): {phrasing.count_verdicts(report, letter)}."
        for letter, side in report.sides
    )
    return Answer(question, "The runs are not of one kind; each kind by itself:", lines)


def study_blocks(report: StudyReport, where: str) -> Iterator[Block]:
    """Yield what ran, the claims, and for each table the study's ranking beside ours."""
    yield Prose((f"{report.study.claims.about}.",))
    yield side_list(report)
    yield _claims(report, where)
    for number, ranking in enumerate(measured(report.rankings)):
        yield from ranking_blocks(report, ranking, where, number)
        yield from _charts(report, ranking, ranking.rows)


def _claims(report: StudyReport, where: str) -> Table:
    """Return a row for each claim and its verdict; sides with equal verdicts share one."""
    verdicts: list[tuple[ClaimVerdict, Row]] = []
    for claim, judged in report.claims:
        alike = gathered(((side.verdict, phrasing.reason_text(side)), (letter, side)) for letter, side in judged)
        for (verdict, why), those in alike.items():
            figures = phrasing.comparison_rows([judgement for _, judgement in those], everything=False)
            cells = (
                TableCell(claim.id, code=True),
                " ".join([claim.says, *(f"({line})" for line in phrasing.claim_notes(judged[0][1]))]),
                ", ".join(phrasing.verdict_label(letter, judgement) for letter, judgement in those),
                verdict.value,
                why,
                "; ".join(f"{at}: {theirs} / {' / '.join(ours)}" for at, theirs, *ours in figures),
            )
            verdicts.append((verdict, cells))
    # Tested claims come first, among them those that do not hold.
    order = (ClaimVerdict.NOT, ClaimVerdict.REPLICATED, ClaimVerdict.UNKNOWN, ClaimVerdict.UNTESTED)
    rows = [cells for _, cells in sorted(verdicts, key=lambda row: order.index(row[0]))]
    columns = headings("claim", "what the study says", "side", "verdict", "why", "some figures: theirs / ours")
    caption = "The study's claims, and what these runs say of each"
    return Table(columns, rows, caption, id=f"{where}-claims")


def _table(report: StudyReport, ranking: Ranking, id: str) -> Table:
    """Make a row for each step and variant: values beside each other and how far off, then ratios and ranks."""
    rows: list[Row] = []
    for row in ranking.rows:
        for variant, theirs in sorted(row.theirs[0].values.items(), key=lambda item: item[1].median):
            values = [_value("-".join(phrasing.readings(row, variant)), theirs)]
            for ours, deviation in zip(row.ours, ranking.deviations, strict=True):
                step = deviation.step(row.step)
                off = step.ratios.get(variant) if step else None
                values += [_value(phrasing.value_text(ours.values[variant]), ours.values[variant]), _ratio(off)]
            ranks = (cell for column in (row.theirs[0], *row.ours) for cell in _place(column, variant))
            rows.append((row.name, variant, *values, *ranks))
    unit = "times the other" if ranking.unit == "times" else ranking.unit
    names = [column.name for column in report.columns]
    heads = [f"study:\n{unit}"]
    heads += [head for name in names for head in (f"{name}:\n{unit}", f"{name}:\noff")]
    heads += [head for name in ("study", *names) for head in (f"{name}: times\nthe lowest", f"{name}:\nrank")]
    sums = "; ".join(
        f"{name}: tau-b of the sums {phrasing.agreement_text(overall.ours)} "
        f"({overall.ours.common} variants, {len(overall.steps)} steps)"
        for name, overall in zip(names, ranking.overall, strict=True)
        if overall
    )
    caption = f"The study's {phrasing.ranking_title(report, ranking)}" + (
        f". Agreement with it: {sums}" if sums else ""
    )
    by_step = "; ".join(
        f"{row.step} {' / '.join(map(phrasing.agreement_text, row.ours))}"
        for row in ranking.rows
        if any(column.tau is not None for column in row.ours)
    )
    return Table(
        headings("step", "filesystem", *heads, numbers=heads),
        rows,
        caption,
        by_step and f"tau-b, step by step ({', '.join(names)}): {by_step}",
        id=id,
        together=2,
        repeated=2,
        grouped=True,
    )


def _value(text: str, value: Series) -> TableCell:
    return TableCell(text, float(value.median) if value.values else None)


def _ratio(ratio: Fraction | None) -> TableCell:
    return TableCell(phrasing.figure_text(ratio), None if ratio is None else float(ratio))


def _place(column: Side, variant: str) -> list[TableCell]:
    rank = column.rank(variant)
    return [_ratio(column.ratio(variant)), TableCell(str(rank or "–"), rank)]


def _charts(report: StudyReport, ranking: Ranking, rows: Sequence[RankedRow]) -> Iterator[Charts]:
    """Draw for each step the study's values and ours, each relative to its lowest."""
    charts = []
    for row in [row for row in rows if any(column.common > 1 for column in row.ours)][:MAX_CHARTS]:
        bars = []
        for variant in row.theirs[0].values:
            for kind, column in ((STUDY_COLOUR, row.theirs[0]), *enumerate(row.ours)):
                ratio = column.ratio(variant)
                known = "0" if column.values[variant].values else "not measured"
                value, shown = (None, known) if ratio is None else (float(ratio), phrasing.figure_text(ratio))
                bars.append(drawing.Bar(variant, value, shown, kind=kind))
        agreement = ", ".join(f"tau-b {phrasing.agreement_text(column)}" for column in row.ours)
        words = "; ".join(f"{bar.name} {'study' if bar.kind == STUDY_COLOUR else 'ours'} {bar.shown}" for bar in bars)
        charts.append(
            Chart(row.step, f"{row.step}: {words}; {agreement}", partial(drawing.bars, bars, "times the lowest"))
        )
    if charts:
        names = [column.name for column in report.columns]
        names = names if len(names) > 1 else ["these runs"]
        legend = (Mark("study", STUDY_COLOUR), *(Mark(name, kind) for kind, name in enumerate(names)))
        yield Charts(
            f"Table {ranking.table}, {ranking.layout}, {ranking.metric}: step by step as the study printed it",
            tuple(charts), legend, "Each figure over the lowest of its source: sizes and machines differ.",
        )  # fmt: skip
