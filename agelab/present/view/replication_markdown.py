"""A study beside our runs, in Markdown: the tables of docs/replication.md."""

from collections.abc import Iterator, Sequence

from agelab.analysis.published.claims import Claims, Extreme
from agelab.analysis.published.outcome import ClaimOutcome, describe_extreme
from agelab.analysis.published.phrasing import (
    agreement_text,
    chance_notes,
    claim_notes,
    count_verdicts,
    describe_column,
    deviation_counts,
    deviation_lines,
    factor_text,
    figure_text,
    ranking_title,
    readings,
    reason_text,
    times_text,
    unmeasured_text,
    value_text,
    verdict_label,
)
from agelab.analysis.published.report import RankedColumn, Ranking, StepDeviation, StudyReport, measured
from agelab.analysis.published.verdict import ClaimVerdict, JudgedClaim
from agelab.base.sanitize import escape_markdown
from agelab.stats.phrasing import capital

SHOWN = 7
"""Figures of a claim to print."""


def markdown_lines(report: StudyReport) -> Iterator[str]:
    """Yield the page of a study."""
    yield from (f"## {report.study.name}", "", f"{report.study.claims.about}.", "", *result_lines(report))


def result_lines(report: StudyReport) -> Iterator[str]:
    """Yield what is below the study's name: runs, rankings, verdicts."""
    for letter, side in report.sides:
        verdicts = count_verdicts(report, letter)
        runs = ", ".join("`{}`".format(name.replace("`", "'")) for name in side.names)
        runs = f"{'Run' if len(side.names) == 1 else 'Runs'} {runs}"
        yield f"- **{letter}**: {escape_markdown(describe_column(side))}: {verdicts}. {runs}."
        yield from (f"  - left out: {escape_markdown(line)}" for line in side.left_out)
        yield from (
            f"  - {line}" for line in (*deviation_counts(report, letter), *chance_notes(report, letter))
        )
    yield ""
    for ranking in measured(report.rankings):
        yield from _ranking(report, ranking)
    if without := unmeasured_text(report.rankings):
        yield from (f"Left out, as no run here has a figure of them: {without}.", "")
    yield from _claims(report)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ranking(report: StudyReport, ranking: Ranking) -> Iterator[str]:
    """Yield a table with a row for the study and each of ours, step by step; then how far ours are off."""
    names = [column.name for column in report.columns]
    head = ["step", "", *ranking.variants, "tau-b", "25 %", "x 2", "beyond", "step's", "own"]
    yield from (f"### {ranking_title(report, ranking)}", "")
    for name, found in zip(names, ranking.deviations, strict=True):
        yield f"- {name}, behind each value in brackets: {times_text(found)}"
        yield from (f"  - {line}" for line in deviation_lines(found))
    yield from ("", _row(head), _row(["---"] * len(head)))
    for row in ranking.rows:
        theirs = ["-".join(readings(row, name)) for name in ranking.variants]
        mark = " (in a circle)" if row.circle else ""
        yield _row([f"{row.step}{mark}", "theirs", *theirs, *[""] * 6])
        for name, column, found in zip(names, row.ours, ranking.deviations, strict=True):
            step = found.step(row.step)
            ours = [_cell(column, step, variant) for variant in ranking.variants]
            tau = f"{agreement_text(column)}, {column.common}" if column.tau is not None else "-"
            yield _row(["", name, *ours, tau, *_off(step)])
    for name, one, found in zip(names, ranking.overall, ranking.deviations, strict=True):
        tau = f"{agreement_text(one.ours)}, {len(one.steps)} steps" if one else "-"
        bands = [str(number) if found.bands.cells else "" for number in found.bands]
        parts = [factor_text(found.typical_step), factor_text(found.typical_rest)]
        yield _row(["in all", name, *("" for _ in ranking.variants), tau, *bands, *parts])
    yield ""


def _cell(column: RankedColumn, step: StepDeviation | None, variant: str) -> str:
    """Format our value, and how far it is off where that is known."""
    if variant not in column.values:
        return ""
    off = step.ratios.get(variant) if step else None
    return value_text(column.values[variant]) + (f" ({figure_text(off)})" if off is not None else "")


def _off(step: StepDeviation | None) -> list[str]:
    if step is None or not step.ratios:
        return [""] * 5
    return [*map(str, step.bands), factor_text(step.common), factor_text(step.typical_rest)]


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
    for _, judged in report.claims:
        found = {verdict_label(letter, one): one for letter, one in judged}
        verdicts: dict[str, list[str]] = {}
        for name in names:
            verdicts.setdefault(verdict_text(found.get(name, judged[0][1])), []).append(name)
        yield f"- {_said(judged[0][1], report.study.claims)}"
        if (theirs := theirs_text(judged)) != "-":
            yield f"  - theirs: {theirs}"
        yield from (f"  - {', '.join(labels)}: {verdict}" for verdict, labels in verdicts.items())
    yield ""


def _said(judged: JudgedClaim, claims: Claims) -> str:
    """Format the claim, its test where the words leave that open, and its caveats."""
    claim, lines = judged.claim, claim_notes(judged)
    if isinstance(claim.test, Extreme) and claims.ranked - {*claim.test.of, *claim.test.among}:
        lines.insert(0, f"tested: {describe_extreme(claim.test, claims)}")
    return " ".join([claim.says, f"`{claim.id}`", *(f"*{capital(line)}.*" for line in lines)])


def theirs_text(judged: Sequence[tuple[str, JudgedClaim]]) -> str:
    """Format the study's own figures, percentages in each reading."""
    theirs = next((one.theirs for _, one in judged if one.theirs), ())
    return "; ".join(dict.fromkeys(_figures(one) for one in theirs)) or "-"


def _figures(outcome: ClaimOutcome) -> str:
    figures = [figure_text(one.figure) for one in outcome.comparisons if one.figure is not None]
    more = ", ..." if len(figures) > SHOWN else ""
    return (", ".join(figures[:SHOWN]) + more) or "-"


def verdict_text(one: JudgedClaim) -> str:
    """Format a verdict with our figures and the reason."""
    figures = _figures(one.ours) if one.ours else "-"
    reason = escape_markdown(reason_text(one))
    if one.verdict is ClaimVerdict.UNTESTED:
        return f"{one.verdict}: {reason}" + (f"; ours: {figures}" if figures != "-" else "")
    return f"**{one.verdict}**: " + (f"{figures} ({reason})" if figures != "-" else reason)
