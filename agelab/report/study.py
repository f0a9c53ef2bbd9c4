"""The published study beside the runs: its tables and ours, and a verdict on each of its claims."""

from collections.abc import Iterator, Sequence

from agelab.errors import InputError
from agelab.published import study
from agelab.published.ranking import Column as Side
from agelab.published.ranking import Ranking, Row
from agelab.published.report import Report, reports
from agelab.published.verdict import Judged, Verdict
from agelab.published.words import (
    comparisons,
    described,
    doubts,
    exactly,
    floors,
    rest,
    said,
    shown,
    tau,
    title,
    whose,
)  # fmt: skip
from agelab.report import draw
from agelab.report.charts import MOST
from agelab.report.draw import Bar
from agelab.report.gather import Group
from agelab.report.model import Answer, Block, Cell, Chart, Charts, Column, Mark, Prose, Table

THEIRS = 6
"""The number of the study's colour."""


def beside(group: Group) -> Report | None:
    """The study that the group's scenario follows, beside its runs; None where none was published.

    Raises InputError for published data that are damaged.
    """
    runs = [loaded.run for loaded in group.runs if loaded.plan.cells]
    if not runs or group.plan.scenario not in [name for one in study.every() for name in one.scenarios]:
        return None
    return reports(runs)[0]


def answer(report: Report) -> Answer:
    """How many of the study's claims hold, on each side."""
    question = f"Does what the study ({report.study.name}) found still hold?"
    counted = [(letter, side, _counted(report, letter)) for letter, side in report.sides]
    if len(counted) == 1:
        [(_, side, words)] = counted
        return Answer(
            question,
            words[0].upper() + words[1:],
            tuple(f"{line[0].upper()}{line[1:]}." for line in rest(side)),
        )
    lines = tuple(f"{letter} ({described(side)}): {words}" for letter, side, words in counted)
    return Answer(question, "The runs are not of one kind; each kind by itself:", lines)


def _counted(report: Report, letter: str) -> str:
    found = report.counted(letter)
    return (
        f"of its {sum(found.values())} claims {found[Verdict.REPLICATED]} replicated, "
        f"{found[Verdict.NOT]} not replicated, {found[Verdict.UNTESTED]} could not be tested."
    )


def blocks(report: Report, where: str) -> Iterator[Block]:
    """What ran, the claims, and table by table the study's ranking beside ours."""
    lines = [f"{report.study.claims.about}."]
    for letter, side in report.sides:
        lines.append(f"{letter}: {described(side)}.")
        lines += [f"{letter}: left out: {line}" for line in side.left_out]
        lines += [f"{letter}: {line}" for line in [floors(report, letter)] if line]
    yield Prose(tuple(lines), listed=True)
    yield _claims(report, where)
    for number, ranking in enumerate(report.rankings):
        if rows := [row for row in ranking.rows if _measured(row)]:
            yield _table(report, ranking, rows, f"{where}-ranking-{number}")
            yield from _charts(report, ranking, rows)


def _measured(row: Row) -> bool:
    return any(value.numbers for column in row.ours for value in column.values.values())


def _claims(report: Report, where: str) -> Table:
    """A row for each claim and what is said of it; sides of which the same is said share one."""
    found: list[tuple[Verdict, tuple[Cell, ...]]] = []
    for claim, judged in report.claims:
        alike: dict[tuple[Verdict, str], list[tuple[str, Judged]]] = {}
        for letter, one in judged:
            alike.setdefault((one.verdict, said(one)), []).append((letter, one))
        for (verdict, why), those in alike.items():
            figures = comparisons([one for _, one in those], everything=False)
            cells = (
                Cell(claim.id, code=True),
                Cell(" ".join([claim.says, *(f"({line})" for line in doubts(claim))])),
                Cell(", ".join(whose(letter, one) for letter, one in those)),
                Cell(verdict.value),
                Cell(why),
                Cell("; ".join(f"{at}: {theirs} / {' / '.join(ours)}" for at, theirs, *ours in figures)),
            )
            found.append((verdict, cells))
    # What has been tested comes first, and of it what does not hold.
    order = (Verdict.NOT, Verdict.REPLICATED, Verdict.UNTESTED)
    rows = [cells for _, cells in sorted(found, key=lambda row: order.index(row[0]))]
    columns = ("claim", "what the study says", "side", "verdict", "why", "some figures: theirs / ours")
    return Table(
        f"{where}-claims", "The study's claims, and what these runs say of each",
        tuple(map(Column, columns)), tuple(rows),
    )  # fmt: skip


def _table(report: Report, ranking: Ranking, rows: Sequence[Row], id: str) -> Table:
    """A row for each step and variant: value, times the lowest, rank; theirs and ours."""
    found = []
    for row in rows:
        for variant in row.theirs[0].values:
            cells = [Cell(row.step), Cell(variant), *_cells(row.theirs[0], variant)]
            for column in row.ours:
                cells += _cells(column, variant)
            found.append(tuple(cells))
    columns = [Column("step"), Column("filesystem")]
    for name in ("study", *(column.name for column in report.columns)):
        columns += [Column(f"{name}: value", True), Column("times the lowest", True), Column("rank", True)]
    said = "; ".join(
        f"{column.name}: tau-b of the sums {tau(one.ours.tau)} ({one.ours.common} variants, {len(one.steps)} steps)"
        for column, one in zip(report.columns, ranking.overall, strict=True)
        if one
    )
    caption = f"The study's {title(report, ranking)}" + (f". Agreement with it: {said}" if said else "")
    return Table(id, caption, tuple(columns), tuple(found))


def _cells(column: Side, variant: str) -> list[Cell]:
    value, ratio, rank = column.values[variant], column.ratio(variant), column.rank(variant)
    return [
        Cell(exactly(value), float(value.median) if value.numbers else None),
        Cell(shown(ratio), None if ratio is None else float(ratio)),
        Cell(str(rank or "–"), rank),
    ]


def _charts(report: Report, ranking: Ranking, rows: Sequence[Row]) -> Iterator[Charts]:
    """For each step what the study printed and what we measured, each over the lowest of its own."""
    charts = []
    for row in [row for row in rows if any(column.common > 1 for column in row.ours)][:MOST]:
        bars = []
        for variant in row.theirs[0].values:
            for kind, column in ((THEIRS, row.theirs[0]), *enumerate(row.ours)):
                ratio = column.ratio(variant)
                known = "0" if column.values[variant].numbers else "not measured"
                bars.append(
                    Bar(variant, None if ratio is None else float(ratio), shown(ratio) if ratio is not None else known,
                        kind=kind)
                )  # fmt: skip
        agreement = ", ".join(f"tau-b {tau(one.tau)}" for one in row.ours)
        words = "; ".join(
            f"{bar.name} {'study' if bar.kind == THEIRS else 'ours'} {bar.shown}" for bar in bars
        )
        charts.append(
            Chart(row.step, f"{row.step}: {words}; {agreement}", draw.bars(bars, "times the lowest"))
        )
    if charts:
        names = [column.name for column in report.columns]
        names = names if len(names) > 1 else ["these runs"]
        legend = (Mark("study", THEIRS), *(Mark(name, kind) for kind, name in enumerate(names)))
        yield Charts(
            f"Table {ranking.table}, {ranking.layout}, {ranking.metric}: step by step as the study printed it",
            tuple(charts), legend, "Each figure over the lowest of its own source: sizes and machines differ.",
        )  # fmt: skip


def checked(group: Group) -> tuple[Report | None, str]:
    """As ``beside``, or why the study cannot be read."""
    try:
        return beside(group), ""
    except InputError as error:
        return None, str(error).splitlines()[0]
