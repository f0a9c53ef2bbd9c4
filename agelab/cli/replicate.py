"""``agelab replicate``: what of a published study our runs bear out."""

from typing import TYPE_CHECKING, Any

import click

from agelab.cli.options import json_option, open_store, print_json

if TYPE_CHECKING:
    from agelab.published.outcome import TestOutcome
    from agelab.published.ranking import RankedColumn, Ranking
    from agelab.published.report import StudyReport
    from agelab.published.run_columns import LoadedRun, RunColumn
    from agelab.published.value_sources import Value
    from agelab.published.verdict import JudgedClaim
    from agelab.results.run_directory import RunDirectory

SCHEMA = 1


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="Every comparison of every claim, and every step.")
@click.option("--markdown", is_flag=True, help="Print Markdown, as in docs/replication.md.")
@json_option
def replicate(runs: tuple[str, ...], everything: bool, markdown: bool, as_json: bool) -> None:
    """Put RUN beside the study that its scenario follows: rankings, and a verdict on each of the study's claims.

    RUN is a name of agelab list, its beginning, or latest. Runs that differ in variants, layouts and run seeds
    alone are one column; those of another scale, kernel or set of defaults stand side by side.

    Exit: 0 whatever the verdicts.
    """
    from agelab.errors import InputError
    from agelab.published.report import reports
    from agelab.results import run_directory

    if as_json and markdown:
        raise click.UsageError("--json and --markdown: one of them")
    store = open_store().runs
    for words in runs:
        name, colon, _ = words.partition(":")
        if colon:
            raise InputError(f"replicate takes whole runs, not {words!r}", hint=f"agelab replicate {name}")
    named = {run.name: run for run in (run_directory.find(store, name) for name in runs)}
    found = reports(loaded(run) for run in named.values())
    if as_json:
        print_json({"schema": SCHEMA, "studies": [_report_json(report) for report in found]})
    elif markdown:
        from agelab.view.replication_markdown import lines

        click.echo("\n".join(line for report in found for line in lines(report)))
    else:
        from agelab.view.replication import print_report

        for report in found:
            print_report(report, everything)


def loaded(run: "RunDirectory") -> "LoadedRun":
    """The run as it lies on disk. Raises InputError for one without cells."""
    from agelab.errors import InputError
    from agelab.published.run_columns import LoadedRun

    going_on = run.going_on()
    plan, ends, samples = run.found()
    if not plan.cells:
        raise InputError(f"{run.name} has no cells: there is nothing to put beside a study")
    return LoadedRun(plan, ends, samples, going_on)


def _report_json(report: "StudyReport") -> dict[str, Any]:
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


def _side_json(side: "RunColumn") -> dict[str, Any]:
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
    }


def _ranking_json(ranking: "Ranking") -> dict[str, Any]:
    def column(one: "RankedColumn") -> dict[str, Any]:
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


def _value_json(value: "Value") -> dict[str, Any]:
    if not value.numbers:
        return {"value": None, "seeds": 0, "reason": value.why}
    return {"value": float(value.median), "seeds": len(value.numbers)}


def _judged_json(one: "JudgedClaim") -> dict[str, Any]:
    return {
        "filesystem": one.filesystem or None,
        "stand_in": one.stand_in,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "no_floor": one.no_floor or None,
        "theirs": [_outcome_json(outcome) for outcome in one.theirs],
        "ours": _outcome_json(one.ours) if one.ours else None,
    }


def _outcome_json(outcome: "TestOutcome") -> dict[str, Any]:
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
