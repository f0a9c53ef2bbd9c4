"""Why a claim came out so: a table of what was changed, the sentence below it, and both as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from agelab.analysis.published.claim_verdict import JudgedClaim
from agelab.analysis.published.phrasing import claim_notes, describe_column, figure_text
from agelab.analysis.published.run_columns import RunColumn
from agelab.bisect.why.baseline import Baseline
from agelab.bisect.why.trials import ClaimAnswer, Trial, comparisons_of
from agelab.present.report.blocks import Block, Column, Heading, Line, Table, Text, headings
from agelab.present.view.progress import format_time_left, time_left
from agelab.results.conditions import text
from agelab.runner.cell_times import Took
from agelab.scenario.jobs import Jobs
from agelab.stats.phrasing import too_few

SCHEMA = 1


def plan_lines(planned: Sequence[Trial], jobs: Jobs, before: Took, pairs: int = 0) -> list[str]:
    """Say what is about to be run, and what it is expected to take; ``pairs`` of settings may follow, at most."""
    cells = [cell for trial in planned for cell in trial.cells]
    runs = sum(len(trial.to_run) for trial in planned)
    lines = [f"not tried: {trial.name}: {trial.reason}" for trial in planned if trial.reason]
    if not cells:
        return [*lines, "nothing to run"]
    time = time_left(cells, (), jobs if isinstance(jobs, int) else 1, (), before)
    at_once = "" if jobs == 1 else f", {jobs} at a time"
    count = f"{len(cells)} cell{'s' if len(cells) > 1 else ''} in {runs} run{'s' if runs > 1 else ''}"
    kernels = ", and what new kernels take to be fetched" if any(trial.setting.release for trial in planned) else ""
    expected = f"expected, unless they are known: {format_time_left(time)}{kernels}"
    lines.append(f"to run: {count}{at_once}; {expected}")
    if pairs:
        each = max((trial.cells for trial in planned), key=len)
        time = time_left(each * pairs, (), jobs if isinstance(jobs, int) else 1, (), before)
        lines.append(
            f"then, if none brings the claim back, {pairs} pair{'s' if pairs > 1 else ''} at most: "
            f"{pairs * len(each)} cells; expected: {format_time_left(time)}"
        )
    return lines


def answer_blocks(answer: ClaimAnswer) -> Iterator[Block]:
    """Yield the claim, the table, and the sentence."""
    baseline = answer.baseline
    yield Heading(f"{baseline.study.name}, {baseline.claim.id}: {baseline.claim.says}")
    for line in (*claim_notes(baseline.judged), describe_column(RunColumn((baseline.run,))), baseline.run.name):
        yield Text(f"  {line}", hang=2)
    yield Line("")
    many = len(comparisons_of(baseline.judged)) > 1
    names, words = ("factor", "changed to", "verdict", "figure"), ("changed to", "verdict")
    heads = headings(*names, numbers=("figure",), wrapped=words)
    own = baseline.judged
    rows = [["as it was run", "", str(own.verdict), _figure(answer, own), _count(own)]]
    rows += [_row(answer, trial) for trial in answer.trials]
    if many:
        heads.append(Column("so", "right"))
    yield Table(heads, [row[: len(heads)] for row in rows])
    yield Line("")
    for line in _remarks(answer):
        yield Text(line, hang=2)
    yield Line(answer.sentence, bold=True)


def _row(answer: ClaimAnswer, trial: Trial) -> list[str]:
    setting, judged = trial.setting, trial.judged
    verdict = f"{judged.verdict}{' *' if answer.flips(trial) else ''}" if judged else "not tried"
    return [trial.factor.name, setting.to, verdict, _figure(answer, judged), _count(judged)]


def _remarks(answer: ClaimAnswer) -> list[str]:
    """Say what the columns are, why a setting has no verdict, and what else was not the same."""
    own = answer.baseline.judged
    lines = []
    if comparisons := comparisons_of(own):
        theirs = dict.fromkeys(figure_text(outcome.comparisons[answer.shown].figure) for outcome in own.theirs)
        where = comparisons[answer.shown].where
        lines.append(f"figure: {where}; the study's: {'-'.join(theirs) or '-'}")
    if len(comparisons) > 1:
        lines.append(f"so: how many of the claim's {len(comparisons)} comparisons are as it says")
    if answer.flipped:
        lines.append("*: another verdict than the run's own")
    for trial in answer.untested:
        why = trial.judged.reason if trial.judged else trial.reason
        lines.append(f"{trial.name}: {why}")
    remarks = (f"{trial.factor.name}: {trial.setting.remark}" for trial in answer.tested if trial.setting.remark)
    lines += dict.fromkeys(remarks)
    for trial in answer.trials:
        if trial.also:
            lines.append(f"{trial.name}: not alone: what also differs: {text(trial.also)}")
    if own.few_seeds:
        lines.append(too_few(own.few_seeds))
    return lines


def _figure(answer: ClaimAnswer, judged: JudgedClaim | None) -> str:
    comparisons = comparisons_of(judged)
    if answer.shown >= len(comparisons):
        return "-"
    return figure_text(comparisons[answer.shown].figure)


def _count(judged: JudgedClaim | None) -> str:
    tested = [comparison.holds for comparison in comparisons_of(judged) if comparison.holds is not None]
    return f"{sum(tested)} of {len(tested)}" if tested else "-"


def answer_json(answer: ClaimAnswer) -> dict[str, Any]:
    baseline: Baseline = answer.baseline
    return {
        "schema": SCHEMA,
        "run": baseline.run.name,
        "study": baseline.study.name,
        "claim": baseline.claim.id,
        "says": baseline.claim.says,
        "filesystem": baseline.stand_in or None,
        "known": answer.known,
        "answer": answer.sentence,
        "baseline": _judged_json(baseline.judged),
        "trials": [
            {
                "factor": trial.factor.name,
                "changed_to": trial.setting.to,
                "options": dict(trial.setting.changes),
                "flips": answer.flips(trial),
                "runs": list(trial.runs),
                "also_differ": list(trial.also),
                "remark": trial.setting.remark or None,
                **(_judged_json(trial.judged) if trial.judged else {"verdict": None, "reason": trial.reason}),
            }
            for trial in answer.trials
        ],
    }


def _judged_json(judged: JudgedClaim) -> dict[str, Any]:
    return {
        "verdict": judged.verdict.value,
        "reason": judged.reason,
        "comparisons": [
            {"where": comparison.where, "figure": comparison.figure, "holds": comparison.holds, "note": comparison.note}
            for comparison in comparisons_of(judged)
        ],
    }
