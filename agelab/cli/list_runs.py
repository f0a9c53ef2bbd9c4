"""``agelab list``: the runs there are."""

import click

from agelab.cli.common import json_option, open_store, print_json


@click.command("list")
@json_option
def list_runs(as_json: bool) -> None:
    """List runs, newest first."""
    from agelab.cli.tables import print_runs
    from agelab.results import rundir

    runs = rundir.every(open_store().runs)[::-1]
    if as_json:
        print_json(
            {"schema": 1, "runs": [run.plan().model_dump(mode="json", exclude={"cells"}) for run in runs]}
        )
    elif runs:
        print_runs(runs)
    else:
        click.echo("no runs yet; make one: make scenario NAME=aging-reiserfs")
