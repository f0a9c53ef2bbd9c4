"""``agelab why``: which factor flips the verdict on a claim."""

import shlex

import click

from agelab.base.errors import goes_on
from agelab.cli.options import JOBS, find_runs, json_option, open_store, print_blocks, print_json, say
from agelab.present.view.progress import show_progress
from agelab.results.run_directory import LATEST, RunDirectory
from agelab.runner.request.options import RunOptions
from agelab.scenario.jobs import Jobs


@click.command(
    epilog="Exit: 0 whatever the answer, 2 wrong input, 3 the host cannot do it, 130 interrupted: the same "
    "command goes on."
)
@click.argument("run", default=LATEST)
@click.option("--claim", required=True, help="A claim of the run's study, as agelab replicate names it.")
@click.option("--factors", help="Change only these factors: cpu,kernel (docs/howto/why.md lists all).")
@click.option(
    "--pairs", type=click.IntRange(min=0), default=6,
    help="If no factor alone brings the claim back, try at most so many pairs."
)  # fmt: skip
@click.option("--filesystem", help="Judge this one of several stand-ins for the study's filesystem.")
@click.option("--jobs", type=JOBS, default=1, help="Cells at a time; auto: as many as fit.")
@json_option
def why(
    run: str, claim: str, factors: str | None, pairs: int, filesystem: str | None, jobs: Jobs, as_json: bool
) -> None:
    """Change one factor at a time in the cells of a claim, and say which flips its verdict.

    RUN is by default the latest. agelab reuses cells whose results it knows.
    """
    from agelab.analysis.cells import load
    from agelab.bisect.why.baseline import find_baseline
    from agelab.bisect.why.factors import choose_factors
    from agelab.bisect.why.trials import ClaimAnswer, carry_out, could_be, pairs_of, plan_trial
    from agelab.present.view.why import answer_blocks, answer_json, plan_lines
    from agelab.runner.cell_times import recent_cells
    from agelab.runner.execute import runner

    store = open_store()
    [directory] = find_runs([run])
    baseline = find_baseline(load(directory), claim, store, filesystem)
    chosen = choose_factors(factors, baseline.scenario)
    settings = [(factor, setting) for factor in chosen for setting in factor.settings(baseline, store, say)]
    planned = [plan_trial(baseline, factor, setting, jobs) for factor, setting in settings]
    for line in plan_lines(planned, jobs, list(recent_cells(directory)), could_be(baseline, planned, pairs)):
        say(line)

    def run_one(options: RunOptions) -> RunDirectory:
        with show_progress() as progress:
            return runner.run(options, store, progress)

    trials = []
    asked = {
        "--claim": claim, "--factors": factors, "--pairs": str(pairs), "--filesystem": filesystem, "--jobs": str(jobs)
    }  # fmt: skip
    given = [word for option, value in asked.items() if value for word in (option, value)]
    with goes_on(shlex.join(["agelab", "why", directory.name, *given])):
        for trial in planned:
            if trial.to_run:
                say(trial.name)
            trials.append(carry_out(baseline, trial, run_one))
        for factor, setting in pairs_of(ClaimAnswer(baseline, tuple(trials)), pairs):
            trial = plan_trial(baseline, factor, setting, jobs)
            say(trial.name)
            trials.append(carry_out(baseline, trial, run_one))
    answer = ClaimAnswer(baseline, tuple(trials))
    print_json(answer_json(answer)) if as_json else print_blocks(answer_blocks(answer))
