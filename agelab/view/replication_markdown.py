"""A study beside our runs, in Markdown: the tables of docs/replication.md."""

from collections.abc import Iterator, Sequence

from agelab.published.claims import Claim, Claims, Extreme
from agelab.published.outcome import ClaimOutcome, describe_extreme
from agelab.published.phrasing import (
    claim_notes,
    count_verdicts,
    describe_column,
    figure_text,
    floor_notes,
    ranking_title,
    reason_text,
    tau_text,
    value_text,
    verdict_label,
)
from agelab.published.ranking import RankedColumn, RankedRow, Ranking
from agelab.published.report import StudyReport
from agelab.published.verdict import ClaimVerdict, JudgedClaim
from agelab.view.study_tables import escape_markdown

SHOWN = 7
"""Figures of a claim to print."""


def markdown_lines(report: StudyReport) -> Iterator[str]:
    """Yield the page of a study: runs, rankings, verdicts."""
    yield from (f"## {report.study.name}", "", f"{report.study.claims.about}.", "")
    for letter, side in report.sides:
        verdicts = count_verdicts(report, letter)
        runs = ", ".join("`{}`".format(name.replace("`", "'")) for name in side.names)
        runs = f"{'Run' if len(side.names) == 1 else 'Runs'} {runs}"
        yield f"- **{letter}**: {escape_markdown(describe_column(side))}: {verdicts}. {runs}."
        yield from (f"  - left out: {escape_markdown(line)}" for line in side.left_out)
        yield from (f"  - {line}" for line in floor_notes(report, letter))
    yield ""
    for ranking in report.rankings:
        yield from _ranking(report, ranking)
    yield from _claims(report)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ranking(report: StudyReport, ranking: Ranking) -> Iterator[str]:
    """Yield a table of steps by variants; each cell has the ratios to the lowest, theirs and ours."""
    names = [column.name for column in report.columns]
    head = ["step", *ranking.variants, *(f"tau-b, {name}" for name in names)]
    legend = " / ".join(["theirs", *names])
    yield from (f"### {ranking_title(report, ranking)}", "")
    yield from (f"In each cell the value over the lowest of its row: {legend}.", "")
    yield from (_row(head), _row(["---"] * len(head)))
    for row in ranking.rows:
        cells = (_cell(row, name) for name in ranking.variants)
        yield _row([row.step, *cells, *(f"{tau_text(one.tau)} ({one.common})" for one in row.ours)])
    taus = [f"{tau_text(one.ours.tau)} ({len(one.steps)} steps)" if one else "-" for one in ranking.overall]
    yield from (_row(["their sum", *("" for _ in ranking.variants), *taus]), "")


def _cell(row: RankedRow, variant: str) -> str:
    if variant not in row.theirs[0].values:
        return ""
    theirs = "-".join(dict.fromkeys(figure_text(one.ratio(variant)) for one in row.theirs))
    return " / ".join([theirs, *(_ratio(one, variant) for one in row.ours)])


def _ratio(column: RankedColumn, variant: str) -> str:
    ratio = column.ratio(variant)
    # Where the lowest is 0 no ratio says anything.
    return figure_text(ratio) if ratio is not None else value_text(column.values[variant])


def _claims(report: StudyReport) -> Iterator[str]:
    """Yield an item for each claim, and below it one for each verdict with the sides or stand-ins that have it."""
    stand_ins = report.study.claims.stand_ins
    if stand_ins:
        own = ", ".join(dict.fromkeys(figure.filesystem for figure in report.study.figures.by_place.values()))
        yield from (f"For the study's own filesystem ({own}) no claim could be tested: {stand_ins.why}.", "")
    names = list(
        dict.fromkeys(
            verdict_label(letter, one)
            for _, judged in report.claims
            for letter, one in judged
            if one.stand_in or not stand_ins
        )
    )
    for claim, judged in report.claims:
        found = {verdict_label(letter, one): one for letter, one in judged}
        verdicts: dict[str, list[str]] = {}
        for name in names:
            verdicts.setdefault(_verdict(found.get(name, judged[0][1])), []).append(name)
        yield f"- {_said(claim, report.study.claims)}"
        if (theirs := _theirs(judged)) != "-":
            yield f"  - theirs: {theirs}"
        yield from (f"  - {', '.join(labels)}: {verdict}" for verdict, labels in verdicts.items())
    yield ""


def _said(claim: Claim, claims: Claims) -> str:
    """Format the claim, its test where the words leave that open, and its caveats."""
    lines = claim_notes(claim)
    if isinstance(claim.test, Extreme) and claims.ranked - {*claim.test.of, *claim.test.among}:
        lines.insert(0, f"tested: {describe_extreme(claim.test, claims)}")
    return " ".join([claim.says, f"`{claim.id}`", *(f"*{line[0].upper()}{line[1:]}.*" for line in lines)])


def _theirs(judged: Sequence[tuple[str, JudgedClaim]]) -> str:
    """Format the study's own figures, percentages in each reading."""
    theirs = next((one.theirs for _, one in judged if one.theirs), ())
    return "; ".join(dict.fromkeys(_figures(one) for one in theirs)) or "-"


def _figures(outcome: ClaimOutcome) -> str:
    figures = [figure_text(one.figure) for one in outcome.comparisons if one.figure is not None]
    more = ", ..." if len(figures) > SHOWN else ""
    return (", ".join(figures[:SHOWN]) + more) or "-"


def _verdict(one: JudgedClaim) -> str:
    figures = _figures(one.ours) if one.ours else "-"
    reason = escape_markdown(reason_text(one))
    if one.verdict is ClaimVerdict.UNTESTED:
        return f"{one.verdict}: {reason}" + (f"; ours: {figures}" if figures != "-" else "")
    return f"**{one.verdict}**: " + (f"{figures} ({reason})" if figures != "-" else reason)
