"""A study beside our runs, on a terminal and as JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import click

from agelab.published.claims import Claim
from agelab.published.outcome import ClaimOutcome
from agelab.published.phrasing import (
    claim_notes,
    comparison_rows,
    count_verdicts,
    describe_column,
    figure_text,
    floor_notes,
    ranking_title,
    reason_text,
    tau_text,
    value_text,
    variants_not_run,
    verdict_label,
)
from agelab.published.ranking import RankedColumn, RankedRow, Ranking
from agelab.published.report import StudyReport
from agelab.published.run_columns import RunColumn
from agelab.published.verdict import JudgedClaim
from agelab.view.terminal import Head, open_console, print_table

SCHEMA = 1


def print_report(report: StudyReport, everything: bool) -> None:
    """Print the runs, the rankings table by table, each claim, and the number of each verdict."""
    click.secho(f"\n{report.study.name}: {report.study.claims.about}", bold=True)
    for letter, side in report.sides:
        click.echo(f"{letter}  {describe_column(side)}")
        for line in (count_verdicts(report, letter), *variants_not_run(side)):
            click.echo(f"   {line}")
        for line in side.names:
            click.echo(f"   {line}")
        for line in side.left_out:
            click.echo(f"   left out: {line}")
        for line in floor_notes(report, letter):
            click.echo(f"   {line}")
    for ranking in report.rankings if everything else _with_ours(report.rankings):
        _print_ranking(report, ranking)
    if not everything and (without := _without_ours(report.rankings)):
        click.echo(f"\nleft out, as no run here has a figure of them: {without}; --all shows them")
    click.secho("\nclaims", bold=True)
    for claim, judged in report.claims:
        _print_claim(report, claim, judged, everything)
    click.echo()
    for letter, _ in report.sides:
        click.echo(f"{letter}: {count_verdicts(report, letter)}")


def _print_ranking(report: StudyReport, ranking: Ranking) -> None:
    """Print for each step the variants in the study's order: value, ratio to the lowest, rank; theirs and ours."""
    click.secho(f"\n{ranking_title(report, ranking)}", bold=True)
    names = [column.name for column in report.columns]
    head = ["", *(word for name in ("theirs", *names) for word in (name, "x", "rank"))]
    lines = [line for row in ranking.rows for line in _row_lines(row)]
    overall = [
        f"{name} {tau_text(one.ours.tau)} ({one.ours.common} variants, {len(one.steps)} steps)"
        if one
        else f"{name} -"
        for name, one in zip(names, ranking.overall, strict=True)
    ]
    _print_columns(head, lines, together=3)
    click.echo(f" tau-b of the sums: {', '.join(overall)}")


def _with_ours(rankings: Iterable[Ranking]) -> Iterator[Ranking]:
    """Yield the tables and steps of which a run has a value."""
    for ranking in rankings:
        if rows := ranking.measured_rows:
            yield replace(ranking, rows=rows)


def _without_ours(rankings: Sequence[Ranking]) -> str:
    """Count the tables, and the steps of other tables, of which no run has a value; empty where all have one."""
    left = [len(ranking.measured_rows) for ranking in rankings]
    tables = left.count(0)
    steps = sum(len(one.rows) - number for one, number in zip(rankings, left, strict=True) if number)
    found = ((tables, "table"), (steps, "step"))
    return ", ".join(f"{number} {word}{'s' if number > 1 else ''}" for number, word in found if number)


def _row_lines(row: RankedRow) -> list[list[str]]:
    columns = [row.theirs[0], *row.ours]
    found = [[f" {row.step}", *("" for _ in columns for _ in range(3))]]
    order = sorted(row.theirs[0].values.items(), key=lambda item: item[1].median)
    for name, _ in order:
        cells = [f"   {name}"]
        for number, column in enumerate(columns):
            value = value_text(column.values[name])
            if number == 0 and len(row.theirs) > 1:
                value = "-".join(value_text(reading.values[name]) for reading in row.theirs)
            cells += [value, figure_text(column.ratio(name)), str(column.rank(name) or "-")]
        found.append(cells)
    taus = [word for column in row.ours for word in ("", tau_text(column.tau), "")]
    return [*found, ["   tau-b", "", "", "", *taus]]


def _print_columns(head: Sequence[str], lines: Iterable[Sequence[str]], together: int = 1) -> None:
    """Print columns of figures; their names, to the left, may take several lines."""
    heads: list[Head] = [(name, "right" if at else "wrapped") for at, name in enumerate(head)]
    print_table(open_console(), heads, list(lines), together=together)


def _print_claim(
    report: StudyReport, claim: Claim, judged: Sequence[tuple[str, JudgedClaim]], everything: bool
) -> None:
    click.echo(f" {claim.id}: {claim.says}")
    for line in claim_notes(claim):
        click.echo(f"   {line}")
    for letter, one in judged:
        click.echo(f"   {verdict_label(letter, one)}: {one.verdict}: {reason_text(one)}")
    lines = comparison_rows([one for _, one in judged], everything)
    if lines:
        names = [verdict_label(letter, one) for letter, one in judged if one.ours]
        _print_columns(["    ", "theirs", *names], [[f"     {where}", *cells] for where, *cells in lines])
        number = max(len(one.ours.comparisons) for _, one in judged if one.ours)
        if number > len(lines):
            click.echo(f"     and {number - len(lines)} more; --all shows them")


def reports_json(reports: Iterable[StudyReport]) -> dict[str, Any]:
    return {"schema": SCHEMA, "studies": [_report_json(report) for report in reports]}


def _report_json(report: StudyReport) -> dict[str, Any]:
    return {
        "study": report.study.name,
        "sides": [{"letter": letter, **_side_json(side)} for letter, side in report.sides],
        "columns": [{"letter": one.letter, "stand_in": one.stand_in or None} for one in report.columns],
        "tables": [_ranking_json(ranking) for ranking in report.rankings],
        "claims": [
            {
                **claim.model_dump(mode="json", exclude={"test"}, exclude_defaults=True),
                "kind": claim.test.kind if claim.test else None,
                "scale": claim.scale,
                "defaults": claim.defaults,
                "verdicts": [{"letter": letter, **_judged_json(one)} for letter, one in judged],
            }
            for claim, judged in report.claims
        ],
    }


def _side_json(side: RunColumn) -> dict[str, Any]:
    return {
        "runs": side.names,
        "scale": side.plan.scale,
        "clock": side.plan.clock,
        "emulated": side.emulated,
        "defaults": side.first.defaults,
        "kernel": side.first.kernel,
        "machines": side.machines,
        "drives": side.drives,
        "seeds": side.seeds,
        "left_out": side.left_out,
        "labels": side.labels,
    }


def _ranking_json(ranking: Ranking) -> dict[str, Any]:
    def column(one: RankedColumn) -> dict[str, Any]:
        values = {}
        for name, value in one.values.items():
            known = {} if value.numbers else {"reason": value.why}
            median = value.median if value.numbers else None
            ranked = {"ratio": one.ratio(name), "rank": one.rank(name)}
            values[name] = {"value": median, "seeds": len(value.numbers), **known, **ranked}
        return {"tau_b": one.tau, "variants": one.common, "values": values}

    def columns(found: Sequence[RankedColumn]) -> list[dict[str, Any]]:
        return [column(one) for one in found]

    return {
        "table": ranking.table,
        "layout": ranking.layout,
        "metric": ranking.metric,
        "unit": ranking.unit,
        "steps": [
            {"step": row.step, "theirs": columns(row.theirs), "ours": columns(row.ours)}
            for row in ranking.rows
        ],
        "overall": [
            one and {"steps": list(one.steps), "theirs": column(one.theirs), "ours": column(one.ours)}
            for one in ranking.overall
        ],
    }


def _judged_json(one: JudgedClaim) -> dict[str, Any]:
    return {
        "filesystem": one.filesystem or None,
        "stand_in": one.stand_in,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "no_floor": one.no_floor or None,
        "theirs": [_outcome_json(outcome) for outcome in one.theirs],
        "ours": one.ours and _outcome_json(one.ours),
    }


def _outcome_json(outcome: ClaimOutcome) -> dict[str, Any]:
    return {"holds": outcome.holds, **asdict(outcome)}
