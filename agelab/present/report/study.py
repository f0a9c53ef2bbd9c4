"""The published study beside the runs: its tables and ours, and a verdict on each claim."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

from agelab.analysis import vega
from agelab.analysis.cells import RunSet
from agelab.analysis.published import study
from agelab.analysis.published.phrasing import (
    agreement_text,
    chance_notes,
    claim_notes,
    comparison_rows,
    count_verdicts,
    describe_column,
    deviation_counts,
    figure_text,
    ranking_title,
    readings,
    reason_text,
    value_text,
    variants_not_run,
    verdict_label,
)
from agelab.analysis.published.report import RankedColumn as Side
from agelab.analysis.published.report import RankedRow, Ranking, StudyReport, study_reports
from agelab.analysis.published.verdict import ClaimVerdict, JudgedClaim
from agelab.analysis.vega import Bar
from agelab.base.errors import InputError
from agelab.present.report.charts import MAX_CHARTS
from agelab.present.report.deviation import deviation_blocks
from agelab.present.report.model import Answer, Block, Chart, Charts, Heading, Mark, Prose, Table, TableCell
from agelab.stats.phrasing import capital
from agelab.stats.series import Series

STUDY_COLOUR = 6
"""Number of the study's colour."""


def compare_with_study(group: RunSet) -> tuple[StudyReport | None, str]:
    """Compare the study that the group's scenario follows with its runs; None if none was published.

    Returns as well why the study cannot be read, or nothing.
    """
    runs = [run for run in group.runs if run.cells]
    try:
        known = [name for one in study.all_studies() for name in one.scenarios]
        return (study_reports(runs)[0] if runs and group.plan.scenario in known else None), ""
    except InputError as error:
        return None, str(error).splitlines()[0]


def is_asked(report: StudyReport) -> bool:
    """Return True if the runs were made for the study: most of its claims could be tested by one side of them."""
    return any(
        2 * report.counts(letter).kinds[ClaimVerdict.UNTESTED] < len(report.claims)
        for letter, _ in report.sides
    )


def study_answer(report: StudyReport) -> Answer:
    """Answer how many of the study's claims hold, for each side."""
    question = f"Does what the study ({report.study.name}) found still hold?"
    if len(report.sides) == 1:
        [(letter, side)] = report.sides
        lines = tuple(f"{capital(line)}." for line in variants_not_run(side))
        return Answer(question, f"{count_verdicts(report, letter)}.", lines)
    lines = tuple(
        f"{letter} ({describe_column(side)}): {count_verdicts(report, letter)}."
        for letter, side in report.sides
    )
    return Answer(question, "The runs are not of one kind; each kind by itself:", lines)


def study_blocks(report: StudyReport, where: str) -> Iterator[Block]:
    """Return what ran, the claims, and for each table the study's ranking beside ours."""
    lines = [f"{report.study.claims.about}."]
    for letter, side in report.sides:
        lines.append(f"{letter}: {describe_column(side)}.")
        lines += [f"{letter}: {line}." for line in deviation_counts(report, letter)]
        lines += [f"{letter}: left out: {line}" for line in side.left_out]
        lines += [f"{letter}: {line}" for line in chance_notes(report, letter)]
    yield Prose(tuple(lines), listed=True)
    yield _claims(report, where)
    for number, ranking in enumerate(report.rankings):
        if rows := ranking.measured_rows:
            yield _table(report, ranking, rows, f"{where}-ranking-{number}")
            yield from deviation_blocks(report, ranking, f"{where}-off-{number}")
            yield from _charts(report, ranking, rows)


def _claims(report: StudyReport, where: str) -> Table:
    """Return a row for each claim and its verdict; sides with equal verdicts share one."""
    found: list[tuple[ClaimVerdict, tuple[TableCell, ...]]] = []
    for claim, judged in report.claims:
        alike: dict[tuple[ClaimVerdict, str], list[tuple[str, JudgedClaim]]] = {}
        for letter, one in judged:
            alike.setdefault((one.verdict, reason_text(one)), []).append((letter, one))
        for (verdict, why), those in alike.items():
            figures = comparison_rows([one for _, one in those], everything=False)
            cells = (
                TableCell(claim.id, code=True),
                TableCell(" ".join([claim.says, *(f"({line})" for line in claim_notes(judged[0][1]))])),
                TableCell(", ".join(verdict_label(letter, one) for letter, one in those)),
                TableCell(verdict.value),
                TableCell(why),
                TableCell("; ".join(f"{at}: {theirs} / {' / '.join(ours)}" for at, theirs, *ours in figures)),
            )
            found.append((verdict, cells))
    # Tested claims come first, among them those that do not hold.
    order = (ClaimVerdict.NOT, ClaimVerdict.REPLICATED, ClaimVerdict.UNKNOWN, ClaimVerdict.UNTESTED)
    rows = [cells for _, cells in sorted(found, key=lambda row: order.index(row[0]))]
    columns = ("claim", "what the study says", "side", "verdict", "why", "some figures: theirs / ours")
    return Table(
        f"{where}-claims", "The study's claims, and what these runs say of each",
        tuple(map(Heading, columns)), tuple(rows),
    )  # fmt: skip


def _table(report: StudyReport, ranking: Ranking, rows: Sequence[RankedRow], id: str) -> Table:
    """Return a row for each step and variant: values beside each other and how far off, then ratios and ranks."""
    found = []
    for row in rows:
        for variant in row.theirs[0].values:
            values = [_value("-".join(readings(row, variant)), row.theirs[0].values[variant])]
            for ours, deviation in zip(row.ours, ranking.deviations, strict=True):
                step = deviation.step(row.step)
                off = step.ratios.get(variant) if step else None
                values += [_value(value_text(ours.values[variant]), ours.values[variant]), _ratio(off)]
            ranks = (cell for column in (row.theirs[0], *row.ours) for cell in _place(column, variant))
            name = f"{row.step} (in a circle)" if row.circle else row.step
            found.append((TableCell(name), TableCell(variant), *values, *ranks))
    unit = "times the other" if ranking.unit == "times" else ranking.unit
    names = [column.name for column in report.columns]
    heads = [f"study: {unit}", *(head for name in names for head in (f"{name}: {unit}", f"{name}: off"))]
    heads += [head for name in ("study", *names) for head in (f"{name}: times the lowest", f"{name}: rank")]
    columns = (Heading("step"), Heading("filesystem"), *(Heading(head, True) for head in heads))
    said = "; ".join(
        f"{column.name}: tau-b of the sums {agreement_text(one.ours)} "
        f"({one.ours.common} variants, {len(one.steps)} steps)"
        for column, one in zip(report.columns, ranking.overall, strict=True)
        if one
    )
    caption = f"The study's {ranking_title(report, ranking)}" + (
        f". Agreement with it: {said}" if said else ""
    )
    return Table(id, caption, columns, tuple(found))


def _value(text: str, value: Series) -> TableCell:
    return TableCell(text, float(value.median) if value.values else None)


def _ratio(ratio: Fraction | None) -> TableCell:
    return TableCell(figure_text(ratio), None if ratio is None else float(ratio))


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
                value, shown = (None, known) if ratio is None else (float(ratio), figure_text(ratio))
                bars.append(Bar(variant, value, shown, kind=kind))
        agreement = ", ".join(f"tau-b {agreement_text(one)}" for one in row.ours)
        words = "; ".join(
            f"{bar.name} {'study' if bar.kind == STUDY_COLOUR else 'ours'} {bar.shown}" for bar in bars
        )
        charts.append(
            Chart(row.step, f"{row.step}: {words}; {agreement}", partial(vega.bars, bars, "times the lowest"))
        )
    if charts:
        names = [column.name for column in report.columns]
        names = names if len(names) > 1 else ["these runs"]
        legend = (Mark("study", STUDY_COLOUR), *(Mark(name, kind) for kind, name in enumerate(names)))
        yield Charts(
            f"Table {ranking.table}, {ranking.layout}, {ranking.metric}: step by step as the study printed it",
            tuple(charts), legend, "Each figure over the lowest of its own source: sizes and machines differ.",
        )  # fmt: skip
