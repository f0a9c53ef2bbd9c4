"""A study beside our runs, as JSON."""

from typing import Any

from agelab.published.outcome import ClaimOutcome
from agelab.published.ranking import RankedColumn, Ranking
from agelab.published.report import StudyReport
from agelab.published.run_columns import RunColumn
from agelab.published.value_sources import Value
from agelab.published.verdict import JudgedClaim

SCHEMA = 1


def report_json(report: StudyReport) -> dict[str, Any]:
    return {
        "study": report.study.name,
        "sides": [{"letter": letter, **_side_json(side)} for letter, side in report.sides],
        "columns": [
            {"letter": column.letter, "stand_in": column.stand_in or None} for column in report.columns
        ],
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
        cells = {name: _value_json(value) for name, value in one.values.items()}
        ranks = {
            name: {**cell, "ratio": _number(one.ratio(name)), "rank": one.rank(name)}
            for name, cell in cells.items()
        }
        return {"tau_b": one.tau, "variants": one.common, "values": ranks}

    return {
        "table": ranking.table,
        "layout": ranking.layout,
        "metric": ranking.metric,
        "unit": ranking.unit,
        "steps": [
            {
                "step": row.step,
                "theirs": [column(one) for one in row.theirs],
                "ours": [column(one) for one in row.ours],
            }
            for row in ranking.rows
        ],
        "overall": [
            overall
            and {"steps": list(overall.steps), "theirs": column(overall.theirs), "ours": column(overall.ours)}
            for overall in ranking.overall
        ],
    }


def _value_json(value: Value) -> dict[str, Any]:
    if not value.numbers:
        return {"value": None, "seeds": 0, "reason": value.why}
    return {"value": float(value.median), "seeds": len(value.numbers)}


def _judged_json(one: JudgedClaim) -> dict[str, Any]:
    return {
        "filesystem": one.filesystem or None,
        "stand_in": one.stand_in,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "no_floor": one.no_floor or None,
        "theirs": [_outcome_json(outcome) for outcome in one.theirs],
        "ours": _outcome_json(one.ours) if one.ours else None,
    }


def _outcome_json(outcome: ClaimOutcome) -> dict[str, Any]:
    return {
        "holds": outcome.holds,
        "over": outcome.over,
        "comparisons": [
            {"where": one.where, "figure": _number(one.figure), "holds": one.holds, "note": one.note}
            for one in outcome.comparisons
        ],
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
