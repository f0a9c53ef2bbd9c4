"""A study beside our runs, on a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from agelab.analysis.published import phrasing
from agelab.analysis.published.claim_verdict import ClaimVerdict, JudgedClaim
from agelab.analysis.published.claims import Claim, Extreme
from agelab.analysis.published.outcome import ClaimOutcome, describe_extreme
from agelab.analysis.published.report import (
    Bands,
    ClaimCounts,
    RankedColumn,
    Ranking,
    StepDeviation,
    StudyReport,
    TableDeviation,
    measured,
)
from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.study import NOISES
from agelab.base.gathered import gathered
from agelab.present.report.blocks import Block, Column, Heading, Item, Line, Prose, Table, Text, headings
from agelab.present.report.study import ranking_blocks, side_list
from agelab.stats.phrasing import capital

SHOWN = 7
"""Figures of a claim to print."""


def page_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield the page of a study, for Markdown."""
    yield Heading(report.study.name)
    yield Text(f"{report.study.claims.about}.")
    yield from results_blocks(report)


def results_blocks(report: StudyReport, *, names: bool = True) -> Iterator[Block]:
    """Yield what is below the study's name: runs, rankings, verdicts."""
    yield side_list(report, names=names)
    for ranking in measured(report.rankings):
        yield from _matrix_blocks(report, ranking)
    if without := phrasing.unmeasured_text(report.rankings):
        yield Text(f"Left out, as no run here has a figure of them: {without}.")
    yield from _claims(report)


def _matrix_blocks(report: StudyReport, ranking: Ranking) -> Iterator[Block]:
    """Yield a table with a row for the study and each of ours, step by step; then how far ours are off."""
    names = [column.name for column in report.columns]
    yield Heading(phrasing.ranking_title(report, ranking), 3)
    yield Prose(
        [
            Item(
                f"{name}, behind each value in brackets: {phrasing.times_text(deviation)}",
                below=tuple(map(Item, phrasing.deviation_lines(deviation))),
            )
            for name, deviation in zip(names, ranking.deviations, strict=True)
        ],
        listed=True,
    )
    rows: list[list[str]] = []
    for row in ranking.rows:
        theirs = ["-".join(phrasing.readings(row, name)) for name in ranking.variants]
        rows.append([row.name, "theirs", *theirs, *[""] * 6])
        for name, column, deviation in zip(names, row.ours, ranking.deviations, strict=True):
            step = deviation.step(row.step)
            ours = [_cell(column, step, variant) for variant in ranking.variants]
            tau = f"{phrasing.agreement_text(column)}, {column.common}" if column.tau is not None else "-"
            rows.append(["", name, *ours, tau, *_off(step)])
    for name, overall, deviation in zip(names, ranking.overall, ranking.deviations, strict=True):
        tau = f"{phrasing.agreement_text(overall.ours)}, {len(overall.steps)} steps" if overall else "-"
        bands = [str(number) if deviation.bands.cells else "" for number in deviation.bands]
        parts = [phrasing.factor_text(deviation.typical_step), phrasing.factor_text(deviation.typical_rest)]
        rows.append(["in all", name, *("" for _ in ranking.variants), tau, *bands, *parts])
    heads = headings("step", "", *ranking.variants, "tau-b", "25 %", "x 2", "beyond", "step's", "own")
    yield Table(heads, rows)


def _cell(column: RankedColumn, step: StepDeviation | None, variant: str) -> str:
    """Format our value, and how far it is off where that is known."""
    if variant not in column.values:
        return ""
    off = step.ratios.get(variant) if step else None
    return phrasing.value_text(column.values[variant]) + (f" ({phrasing.figure_text(off)})" if off is not None else "")


def _off(step: StepDeviation | None) -> list[str]:
    if step is None or not step.ratios:
        return [""] * 5
    return [*map(str, step.bands), phrasing.factor_text(step.common), phrasing.factor_text(step.typical_rest)]


def _claims(report: StudyReport) -> Iterator[Block]:
    """Yield an item for each claim, and below it one for each verdict with the sides or stand-ins that have it."""
    stand_ins = report.study.claims.stand_ins
    if stand_ins:
        own = ", ".join(dict.fromkeys(figure.filesystem for figure in report.study.figures.by_place.values()))
        yield Text(f"For the study's own filesystem ({own}) no claim could be tested: {stand_ins.why}.")
    names = dict.fromkeys(
        phrasing.verdict_label(letter, judgement)
        for _, judged in report.claims
        for letter, judgement in judged
        if judgement.stand_in or not stand_ins
    )
    items = []
    for claim, judged in report.claims:
        by_label = {phrasing.verdict_label(letter, judgement): judgement for letter, judgement in judged}
        those = ((name, by_label.get(name, judged[0][1])) for name in names)
        verdicts = [(name, judgement.verdict, reason_with_figures(judgement)) for name, judgement in those]
        remarks = phrasing.claim_notes(judged[0][1])
        if isinstance(claim.test, Extreme) and report.study.claims.ranked - {*claim.test.of, *claim.test.among}:
            remarks.insert(0, f"tested: {describe_extreme(claim.test, report.study.claims)}")
        theirs = theirs_text(judged)
        below = [Item(f"theirs: {theirs}")] if theirs != "-" else []
        sentences = tuple(f"{capital(line)}." for line in remarks)
        items.append(Item(claim.says, "", claim.id, sentences, (*below, *_verdict_items(verdicts))))
    yield Prose(items, listed=True)


def _verdict_items(verdicts: Iterable[tuple[str, ClaimVerdict, str]]) -> list[Item]:
    """Make an item for each verdict and its reason, led by the labels of those that have it."""
    labels = gathered(((verdict, reason), label) for label, verdict, reason in verdicts)
    return [Item(reason, lead=f"{', '.join(those)}: {verdict}") for (verdict, reason), those in labels.items()]


def theirs_text(judged: Sequence[tuple[str, JudgedClaim]]) -> str:
    """Format the study's own figures, percentages in each reading."""
    theirs = next((judgement.theirs for _, judgement in judged if judgement.theirs), ())
    return "; ".join(dict.fromkeys(_figures(outcome) for outcome in theirs)) or "-"


def _figures(outcome: ClaimOutcome) -> str:
    known = (comparison.figure for comparison in outcome.comparisons if comparison.figure is not None)
    figures = [*map(phrasing.figure_text, known)]
    more = ", ..." if len(figures) > SHOWN else ""
    return (", ".join(figures[:SHOWN]) + more) or "-"


def reason_with_figures(judgement: JudgedClaim) -> str:
    """Format the reason of a verdict, with our figures."""
    figures, reason = _figures(judgement.ours) if judgement.ours else "-", phrasing.reason_text(judgement)
    if figures == "-":
        return reason
    untested = judgement.verdict is ClaimVerdict.UNTESTED
    return f"{reason}; ours: {figures}" if untested else f"{figures} ({reason})"


SCHEMA = 1


def reports_json(reports: Iterable[StudyReport]) -> dict[str, Any]:
    return {"schema": SCHEMA, "studies": [_report_json(report) for report in reports]}


def _report_json(report: StudyReport) -> dict[str, Any]:
    return {
        "study": report.study.name,
        "sides": [
            {"letter": letter, **_side_json(side), **_counts_json(report.counts(letter))}
            for letter, side in report.sides
        ],
        "columns": [{"letter": column.letter, "stand_in": column.stand_in or None} for column in report.columns],
        "tables": [_ranking_json(ranking) for ranking in report.rankings],
        "claims": [
            {
                **claim.model_dump(mode="json", exclude={"test"}, exclude_defaults=True),
                "kind": claim.test.kind if claim.test else None,
                "scale": claim.scale,
                "defaults": claim.defaults,
                "verdicts": [{"letter": letter, **_judged_json(judgement)} for letter, judgement in judged],
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


def _counts_json(counts: ClaimCounts) -> dict[str, Any]:
    return {
        "counts": counts.kinds,
        "with_base_rate": {
            "claims": counts.rated.counted,
            "replicated": counts.rated.replicated,
            "by_alike": _rates_json(counts.alike),
        },
    }


def _rates_json(rates: Sequence[float]) -> dict[str, float]:
    return {f"noise_{100 * noise:.0f}_percent": rate for noise, rate in zip(NOISES, rates, strict=False)}


def _ranking_json(ranking: Ranking) -> dict[str, Any]:
    def column(side: RankedColumn) -> dict[str, Any]:
        values = {}
        for name, value in side.values.items():
            known = {} if value.values else {"reason": value.why_missing}
            median = value.median if value.values else None
            ranked = {"ratio": side.ratio(name), "rank": side.rank(name)}
            values[name] = {"value": median, "seeds": len(value.values), **known, **ranked}
        return {"tau_b": side.tau, "chance": side.chance, "variants": side.common, "values": values}

    def columns(sides: Sequence[RankedColumn]) -> list[dict[str, Any]]:
        return [column(side) for side in sides]

    return {
        "table": ranking.table,
        "layout": ranking.layout,
        "metric": ranking.metric,
        "unit": ranking.unit,
        "steps": [
            {
                "step": row.step,
                "uncounted": row.uncounted and {"kind": row.uncounted.kind, "why": row.uncounted.why},
                "theirs": columns(row.theirs),
                "ours": columns(row.ours),
            }
            for row in ranking.rows
        ],
        "deviations": [_deviation_json(deviation) for deviation in ranking.deviations],
        "overall": [
            overall and {"steps": list(overall.steps), "theirs": column(overall.theirs), "ours": column(overall.ours)}
            for overall in ranking.overall
        ],
    }


def _deviation_json(deviation: TableDeviation) -> dict[str, Any]:
    return {
        "times": deviation.times,
        **_bands_json(deviation.bands),
        "typical": deviation.typical,
        "typical_step": deviation.typical_step,
        "typical_own": deviation.typical_rest,
        "own": deviation.own,
        "steps": [
            {
                "step": step.step,
                **_bands_json(step.bands),
                "common": step.common,
                "own": step.rest,
                "over_theirs": step.ratios,
                "not_counted": step.left_out,
            }
            for step in deviation.steps
        ],
    }


def _bands_json(bands: Bands) -> dict[str, int]:
    return {"cells": bands.cells, "within_25_percent": bands.near, "within_factor_2": bands.fair, "beyond": bands.far}


def _judged_json(judgement: JudgedClaim) -> dict[str, Any]:
    def outcome(compared: ClaimOutcome) -> dict[str, Any]:
        return {"holds": compared.holds, **asdict(compared)}

    return {
        "filesystem": judgement.filesystem or None,
        "stand_in": judgement.stand_in,
        "verdict": judgement.verdict.value,
        "reason": judgement.reason,
        "in_band": {end or "middle": verdict.value for end, verdict in judgement.in_band.items()} or None,
        "few_seeds": judgement.few_seeds or None,
        "base_rate": _rates_json(judgement.rate) if judgement.rate else None,
        "counted_as": judgement.kind,
        "theirs": [outcome(theirs) for theirs in judgement.theirs],
        "ours": judgement.ours and outcome(judgement.ours),
    }


def report_blocks(report: StudyReport, everything: bool) -> Iterator[Block]:
    """Yield the runs, the rankings table by table, each claim, and the number of each verdict."""
    yield Heading(f"{report.study.name}: {report.study.claims.about}")
    yield side_list(report)
    for ranking in report.rankings if everything else measured(report.rankings):
        yield from ranking_blocks(report, ranking)
    if not everything and (without := phrasing.unmeasured_text(report.rankings)):
        yield Text(f"\nleft out, as no run here has a figure of them: {without}; --all shows them")
    yield Heading("claims")
    for claim, judged in report.claims:
        yield from _claim_blocks(claim, judged, everything)
    yield Line("")
    for letter, _ in report.sides:
        yield Line(f"{letter}: {phrasing.count_verdicts(report, letter)}")


def _claim_blocks(claim: Claim, judged: Sequence[tuple[str, JudgedClaim]], everything: bool) -> Iterator[Block]:
    """Yield the claim with its verdicts, and figures of theirs and ours."""
    verdicts = [
        (phrasing.verdict_label(letter, judgement), judgement.verdict, phrasing.reason_text(judgement))
        for letter, judgement in judged
    ]
    remarks = tuple(phrasing.claim_notes(judged[0][1]))
    yield Prose((Item(claim.says, "", claim.id, remarks, tuple(_verdict_items(verdicts))),), listed=True)
    lines = phrasing.comparison_rows([judgement for _, judgement in judged], everything)
    if lines:
        names = [phrasing.verdict_label(letter, judgement) for letter, judgement in judged if judgement.ours]
        heads = [Column("    ", "wrapped"), *(Column(name, "right") for name in ("theirs", *names))]
        yield Table(heads, [[f"     {where}", *cells] for where, *cells in lines])
        number = max(len(judgement.ours.comparisons) for _, judgement in judged if judgement.ours)
        if number > len(lines):
            yield Line(f"     and {number - len(lines)} more; --all shows them")
