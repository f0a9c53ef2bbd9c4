"""A study beside our runs, as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from agelab.analysis.published.outcome import ClaimOutcome
from agelab.analysis.published.report import (
    Bands,
    ClaimCounts,
    RankedColumn,
    Ranking,
    StudyReport,
    TableDeviation,
)
from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.study import NOISES
from agelab.analysis.published.verdict import JudgedClaim

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
    def column(one: RankedColumn) -> dict[str, Any]:
        values = {}
        for name, value in one.values.items():
            known = {} if value.values else {"reason": value.why_missing}
            median = value.median if value.values else None
            ranked = {"ratio": one.ratio(name), "rank": one.rank(name)}
            values[name] = {"value": median, "seeds": len(value.values), **known, **ranked}
        return {"tau_b": one.tau, "chance": one.chance, "variants": one.common, "values": values}

    def columns(found: Sequence[RankedColumn]) -> list[dict[str, Any]]:
        return [column(one) for one in found]

    return {
        "table": ranking.table,
        "layout": ranking.layout,
        "metric": ranking.metric,
        "unit": ranking.unit,
        "steps": [
            {
                "step": row.step,
                "circle": row.circle or None,
                "theirs": columns(row.theirs),
                "ours": columns(row.ours),
            }
            for row in ranking.rows
        ],
        "deviations": [_deviation_json(found) for found in ranking.deviations],
        "overall": [
            one and {"steps": list(one.steps), "theirs": column(one.theirs), "ours": column(one.ours)}
            for one in ranking.overall
        ],
    }


def _deviation_json(found: TableDeviation) -> dict[str, Any]:
    return {
        "times": found.times,
        **_bands_json(found.bands),
        "typical": found.typical,
        "typical_step": found.typical_step,
        "typical_own": found.typical_rest,
        "own": found.own,
        "steps": [
            {
                "step": step.step,
                **_bands_json(step.bands),
                "common": step.common,
                "own": step.rest,
                "over_theirs": step.ratios,
                "not_counted": step.left_out,
            }
            for step in found.steps
        ],
    }


def _bands_json(found: Bands) -> dict[str, int]:
    return {
        "cells": found.cells,
        "within_25_percent": found.near,
        "within_factor_2": found.fair,
        "beyond": found.far,
    }


def _judged_json(one: JudgedClaim) -> dict[str, Any]:
    return {
        "filesystem": one.filesystem or None,
        "stand_in": one.stand_in,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "in_band": {end or "middle": verdict.value for end, verdict in one.in_band.items()} or None,
        "few_seeds": one.few_seeds or None,
        "base_rate": _rates_json(one.rate) if one.rate else None,
        "counted_as": one.kind,
        "theirs": [_outcome_json(outcome) for outcome in one.theirs],
        "ours": one.ours and _outcome_json(one.ours),
    }


def _outcome_json(outcome: ClaimOutcome) -> dict[str, Any]:
    return {"holds": outcome.holds, **asdict(outcome)}
