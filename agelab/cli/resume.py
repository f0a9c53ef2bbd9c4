"""``agelab resume``: what is left of a run."""

import click

from agelab.cli.options import find_runs
from agelab.cli.run import execute_on, run_until_decided
from agelab.cli.run_options import execute
from agelab.cli.types import JOBS, RUN
from agelab.errors import InputError
from agelab.model.jobs import Jobs
from agelab.runner.request.options import RunOptions


@click.command(epilog="Exit: as agelab run has it.")
@click.argument("run", default="latest", type=RUN)
@click.option("--jobs", type=JOBS, default=None, help="Cells at a time, in place of the run's own.")
@click.option(
    "--erase", default=None, help="In place of the run's own: what it left on a real disk may be lost."
)
@click.option(
    "--on", default=None, metavar="dask://HOST:PORT", help="Run them on the workers of a Dask scheduler."
)
def resume(run: str, jobs: Jobs | None, erase: str | None, on: str | None) -> int:
    """Run those cells of RUN (default: the latest) that have not ended, or were interrupted.

    Ended cells stay as they are. The others start again, from the inputs that the run was begun with.
    """
    from agelab.runner.execute import runner
    from agelab.view.summary import print_result

    [found] = find_runs([run])
    if not found.in_store:
        raise InputError(
            f"{found.name} lies outside of this store: its cells would be written there",
            hint="resume it in its own: AGELAB_HOME=<its store>; or run the same again: agelab show names the command",
        )
    if found.is_running():
        raise InputError(f"{found.name} is still going on")
    asked = {"jobs": jobs, "erase": erase}
    given = {name: value for name, value in asked.items() if value is not None}
    if not found.has_own_plan:  # what may be erased is not somebody else's to say
        given.setdefault("erase", "")
    plan = found.plan()
    if plan.repeatable and plan.command["words"].get("until_decided"):
        return run_until_decided(RunOptions.from_plan(plan).changed(**given), found)
    if found.unfinished() or not plan.repeatable:
        options = RunOptions.from_plan(plan)
        if options.control:
            raise InputError(
                f"{found.name} is of a control file, which has a journal of its own",
                hint=f"agelab run --control {options.control} --continue",
            )
        changed = options.changed(**given)
        if on:
            execute_on(on, changed, found)
        else:
            execute(changed, found)
    else:
        click.echo(f"{found.name}: nothing is left to run: each of its cells has ended")
    print_result(found)
    return 0 if runner.succeeded(found) else 1
