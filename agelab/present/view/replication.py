"""A study beside our runs, on a terminal."""

from collections.abc import Iterable, Sequence

import click
from rich.console import Console

from agelab.analysis.published.claims import Claim
from agelab.analysis.published.phrasing import (
    agreement_text,
    chance_notes,
    chance_text,
    claim_notes,
    comparison_rows,
    count_verdicts,
    describe_column,
    deviation_counts,
    deviation_lines,
    factor_text,
    figure_text,
    ranking_title,
    reason_text,
    tau_text,
    times_text,
    unmeasured_text,
    value_text,
    variants_not_run,
    verdict_label,
)
from agelab.analysis.published.report import RankedRow, Ranking, StudyReport, TableDeviation, measured
from agelab.analysis.published.verdict import JudgedClaim
from agelab.present.view.terminal import Head, open_console, print_table, print_wrapped


def print_report(report: StudyReport, everything: bool) -> None:
    """Print the runs, the rankings table by table, each claim, and the number of each verdict."""
    console = open_console()
    print_wrapped(console, f"\n{report.study.name}: {report.study.claims.about}", style="bold")
    for letter, side in report.sides:
        print_wrapped(console, f"{letter}  {describe_column(side)}", hang=3)
        left_out = [f"left out: {line}" for line in side.left_out]
        for line in (
            *(count_verdicts(report, letter), *variants_not_run(side), *deviation_counts(report, letter)),
            *(*side.names, *left_out, *chance_notes(report, letter)),
        ):
            print_wrapped(console, f"   {line}", hang=5)
    for ranking in report.rankings if everything else measured(report.rankings):
        _print_ranking(report, ranking)
    if not everything and (without := unmeasured_text(report.rankings)):
        print_wrapped(
            console, f"\nleft out, as no run here has a figure of them: {without}; --all shows them"
        )
    click.secho("\nclaims", bold=True)
    for claim, judged in report.claims:
        _print_claim(report, claim, judged, everything)
    click.echo()
    for letter, _ in report.sides:
        click.echo(f"{letter}: {count_verdicts(report, letter)}")


def _print_ranking(report: StudyReport, ranking: Ranking) -> None:
    """Print for each step the variants in the study's order: value, ratio to the lowest, rank; theirs and ours."""
    console = open_console()
    print_wrapped(console, f"\n{ranking_title(report, ranking)}", style="bold")
    names = [column.name for column in report.columns]
    head = ["", "theirs", "x", "rank", *(word for name in names for word in (name, "x", "rank", "off"))]
    lines = [line for row in ranking.rows for line in _row_lines(row, ranking.deviations)]
    _print_columns(head, lines, repeated=4, together=4)
    for name, one in zip(names, ranking.overall, strict=True):
        if one:
            size = f"{one.ours.common} variants, {len(one.steps)} steps"
            print_wrapped(console, f" tau-b of the sums: {name} {agreement_text(one.ours)}: {size}", hang=3)
    for name, found in zip(names, ranking.deviations, strict=True):
        _print_deviation(console, name, found)


def _print_deviation(console: Console, name: str, found: TableDeviation) -> None:
    """Print how far a side's cells are off, step by step, and in all."""
    if not found.steps:
        return
    print_wrapped(console, f"\n {name}, off: {times_text(found)}", hang=3, style="bold")
    lines = []
    for step in found.steps:
        if step.ratios:
            far = f"{step.farthest} {factor_text(step.rest[step.farthest])}" if step.farthest else "-"
            parts = [factor_text(step.common), factor_text(step.typical_rest), far]
            lines.append([f"   {step.step}", *map(str, step.bands), *parts])
    if lines:
        _print_columns(["", "25 %", "x 2", "beyond", "step's", "own", "farthest own"], lines)
    for line in deviation_lines(found):
        print_wrapped(console, f"   {line}", hang=5)


def _row_lines(row: RankedRow, deviations: Sequence[TableDeviation]) -> list[list[str]]:
    columns = [row.theirs[0], *row.ours]
    cells_off = [found.step(row.step) for found in deviations]
    mark = " (in a circle)" if row.circle else ""
    found = [[f" {row.step}{mark}", *("" for _ in range(3 + 4 * len(row.ours)))]]
    order = sorted(row.theirs[0].values.items(), key=lambda item: item[1].median)
    for name, _ in order:
        cells = [f"   {name}"]
        for number, column in enumerate(columns):
            value = value_text(column.values[name])
            if number == 0 and len(row.theirs) > 1:
                value = "-".join(value_text(reading.values[name]) for reading in row.theirs)
            cells += [value, figure_text(column.ratio(name)), str(column.rank(name) or "-")]
            if number:
                step = cells_off[number - 1]
                cells.append(figure_text(step.ratios.get(name) if step else None))
        found.append(cells)
    taus = [word for column in row.ours for word in ("", tau_text(column.tau), "", "")]
    chances = [word for column in row.ours for word in ("", chance_text(column.chance), "", "")]
    return [*found, ["   tau-b", "", "", "", *taus], ["   chance", "", "", "", *chances]]


def _print_columns(
    head: Sequence[str], lines: Iterable[Sequence[str]], together: int = 1, repeated: int = 1
) -> None:
    """Print columns of figures; their names, to the left, may take several lines."""
    heads: list[Head] = [(name, "right" if at else "wrapped") for at, name in enumerate(head)]
    print_table(open_console(), heads, list(lines), together=together, repeated=repeated)


def _print_claim(
    report: StudyReport, claim: Claim, judged: Sequence[tuple[str, JudgedClaim]], everything: bool
) -> None:
    console = open_console()
    print_wrapped(console, f" {claim.id}: {claim.says}", hang=3)
    verdicts: dict[str, list[str]] = {}
    for letter, one in judged:
        verdicts.setdefault(f"{one.verdict}: {reason_text(one)}", []).append(verdict_label(letter, one))
    said = [f"{', '.join(labels)}: {verdict}" for verdict, labels in verdicts.items()]
    for line in (*claim_notes(judged[0][1]), *said):
        print_wrapped(console, f"   {line}", hang=5)
    lines = comparison_rows([one for _, one in judged], everything)
    if lines:
        names = [verdict_label(letter, one) for letter, one in judged if one.ours]
        _print_columns(["    ", "theirs", *names], [[f"     {where}", *cells] for where, *cells in lines])
        number = max(len(one.ours.comparisons) for _, one in judged if one.ours)
        if number > len(lines):
            click.echo(f"     and {number - len(lines)} more; --all shows them")
