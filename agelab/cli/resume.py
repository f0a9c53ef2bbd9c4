"""``agelab resume``: what is left of a run."""

from contextlib import chdir
from pathlib import Path

import click

from agelab.cli.options import open_store


@click.command(epilog="Exit: as agelab run has it.")
@click.argument("run", default="latest")
@click.option("--jobs", type=int, default=None, help="Cells at a time, in place of the run's own.")
@click.option(
    "--erase", default=None, help="In place of the run's own: what it left on a real disk may be lost."
)
def resume(run: str, jobs: int | None, erase: str | None) -> int:
    """Run those cells of RUN (default: the latest) that have not ended, or were interrupted.

    What has ended stays as it is. The cells that are left begin anew, from the inputs that the run was begun with.
    """
    from agelab.cli.request import execute, request
    from agelab.cli.run import run as fresh
    from agelab.errors import InputError
    from agelab.results import run_lookup
    from agelab.runner.execute import runner
    from agelab.view.summary import print_result

    store = open_store()
    found = run_lookup.find(store.runs, run)
    if found.is_running():
        raise InputError(f"{found.name} is still going on")
    plan = found.plan()
    said = plan.command
    if not plan.repeatable:
        raise InputError(f"{found.name} does not say what was asked for", hint="begin a new run")
    # An option that is younger than the run, or not of its verb, was not asked for.
    options = [option for option in fresh.params if isinstance(option, click.Option)]
    unasked = {option.name: False if option.is_flag else option.default for option in options}
    now = {"jobs": jobs, "erase": erase}
    words = {**unasked, **said["words"], **{name: word for name, word in now.items() if word is not None}}
    if words["control"]:
        raise InputError(
            f"{found.name} is of a control file, which has a journal of its own",
            hint=f"agelab run --control {words['control']} --continue",
        )
    if found.unfinished():
        if not Path(said["directory"]).is_dir():
            raise InputError(f"{found.name} was begun in {said['directory']}, which is not there any more")
        with chdir(said["directory"]):
            execute(request(said["name"], words, **said["more"]), store, found)
    else:
        click.echo(f"{found.name}: nothing is left to run: each of its cells has ended")
    print_result(found)
    return 0 if runner.succeeded(found) else 1
