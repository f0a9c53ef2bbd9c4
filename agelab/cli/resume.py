"""``agelab resume``: what is left of a run."""

from contextlib import chdir

import click

from agelab.cli.common import open_store


@click.command(epilog="Exit: as agelab run has it.")
@click.argument("run", default="latest")
@click.option("--jobs", type=int, default=None, help="Cells at a time, in place of the run's own.")
def resume(run: str, jobs: int | None) -> int:
    """Run those cells of RUN (default: the latest) that have not ended, or were interrupted.

    What has ended stays as it is. The cells that are left begin anew, from the inputs that the run was begun with.
    """
    from agelab.cli.request import execute, request
    from agelab.cli.run import run as fresh
    from agelab.cli.tables import print_run
    from agelab.errors import InputError
    from agelab.results import rundir
    from agelab.run import runner

    found = rundir.find(open_store().runs, run)
    said = found.plan().command
    if not said:
        raise InputError(f"{found.name} does not say what was asked for", hint="start it anew")
    # An option that is younger than the run was not asked for.
    unasked = {option.name: option.default for option in fresh.params}
    words = {**unasked, **said["words"], **({"jobs": jobs} if jobs else {})}
    if words.get("control"):
        raise InputError(
            f"{found.name} is of a control file, which has a journal of its own",
            hint=f"agelab run --control {words['control']} --continue",
        )
    if found.unfinished():
        with chdir(said["directory"]):
            execute(request(said["name"], words, **said["more"]), found)
    print_run(found)
    return 0 if runner.succeeded(found) else 1
