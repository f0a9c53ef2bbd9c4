"""``agelab resume``: what is left of a run."""

import shlex

import click

from agelab.base.errors import InputError
from agelab.cli.click_options import execute
from agelab.cli.options import JOBS, find_runs, print_blocks
from agelab.cli.run import execute_on, run_until_decided
from agelab.runner.request.options import RunOptions
from agelab.scenario.jobs import Jobs


@click.command(epilog="Exit: as agelab run has it.")
@click.argument("run", default="latest")
@click.option("--jobs", type=JOBS, help="Cells at a time; by default as the run was begun.")
@click.option("--disks", help="The run's real disks, named again, since agelab writes to them.")
@click.option(
    "--erase",
    default="",
    show_default=False,
    help="Serials of real disks that agelab may overwrite, with what the run left there.",
)
@click.option("--on", metavar="dask://HOST:PORT", help="Run them on the workers of a Dask scheduler.")
def resume(run: str, jobs: Jobs | None, disks: str | None, erase: str, on: str | None) -> int:
    """Run the cells of RUN (default: the latest) that have not ended or were interrupted.

    Ended cells stay. The others start again, with the inputs of the run.
    """
    from agelab.present.view.summary import result_blocks
    from agelab.runner.execute import runner

    [directory] = find_runs([run])
    if not directory.in_store:
        raise InputError(
            f"{directory.name} lies outside of this store: its cells would be written there",
            hint="resume it in its own: AGELAB_HOME=<its store>; or run the same again: agelab show names the command",
        )
    if directory.is_running():
        raise InputError(f"{directory.name} is still going on")
    given = {} if jobs is None else {"jobs": jobs}
    plan = directory.plan()
    decided = plan.repeatable and plan.command["options"].get("until_decided")
    if decided or directory.unfinished() or not plan.repeatable:
        options = RunOptions.from_plan(plan)
        if options.control:
            raise InputError(
                f"{directory.name} is of a control file, which has its own journal",
                hint=f"agelab run --control {options.control} --continue",
            )
        # What may be lost is for the user to say, not for the plan.
        command = shlex.join(["agelab", "resume", directory.name, *options.changed(erase="").named_again()])
        changed = options.changed(**given).asked_again(disks, erase, command)
        if decided:
            return run_until_decided(changed, directory)
        if on:
            execute_on(on, changed, directory)
        else:
            execute(changed, directory)
    else:
        click.echo(f"{directory.name}: nothing is left to run: each of its cells has ended")
    print_blocks(result_blocks(directory))
    return 0 if runner.succeeded(directory) else 1
