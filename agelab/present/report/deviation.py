"""How far our figures are from a study's, step by step: the part that all filesystems share, and each one's own."""

from collections.abc import Iterator

from agelab.analysis.published.phrasing import deviation_lines, factor_text, times_text
from agelab.analysis.published.report import Ranking, StepDeviation, StudyReport, TableDeviation
from agelab.present.report.model import Block, Prose, Table, TableCell, headings
from agelab.stats.phrasing import capital

NUMBERS = ("within 25 %", "within a factor of 2", "beyond", "step's part", "own")


def deviation_blocks(report: StudyReport, ranking: Ranking, id: str) -> Iterator[Block]:
    """Yield for each side a row for each step, and below it what is said of all of them."""
    for column, found in zip(report.columns, ranking.deviations, strict=True):
        if not found.steps:
            continue
        name = f"{column.name}, table {ranking.table}, {ranking.layout}, {ranking.metric}"
        if rows := tuple(_row(step) for step in found.steps if step.ratios):
            columns = headings("step", *NUMBERS, "farthest own", numbers=NUMBERS)
            yield Table(f"{id}-{column.name.replace(' ', '-')}", _caption(name, found), columns, rows)
        lines = tuple(f"{capital(line)}." for line in deviation_lines(found))
        yield Prose(lines, listed=True)


def _caption(name: str, found: TableDeviation) -> str:
    return f"How far off, in cells: {name}. Off is {times_text(found)}"


def _row(step: StepDeviation) -> tuple[TableCell, ...]:
    far = f"{step.farthest} {factor_text(step.rest[step.farthest])}" if step.farthest else "-"
    return (
        TableCell(step.step),
        *(TableCell(str(number), number) for number in step.bands),
        TableCell(factor_text(step.common), step.common),
        TableCell(factor_text(step.typical_rest), step.typical_rest),
        TableCell(far),
    )
