"""``agelab list``: the runs there are."""

import click

from agelab.base.errors import InputError
from agelab.base.verbs import as_called
from agelab.cli.options import json_option, open_store, print_json
from agelab.results import run_lookup


@click.command("list", epilog="Exit: 0; 2 where a run is damaged, which is named.")
@json_option
def list_runs(as_json: bool) -> int:
    """List runs, newest first."""
    from agelab.present.view.run_tables import runs_blocks
    from agelab.present.view.terminal import print_blocks

    runs, damaged = [], 0
    for run in run_lookup.all_runs(open_store().runs)[::-1]:
        try:
            run.unfinished()
        except InputError as error:
            click.echo(f"agelab: {error}", err=True)
            damaged = error.exit_code
        else:
            runs.append(run)
    if as_json:
        plans = [run.plan().model_dump(mode="json", exclude={"cells"}) for run in runs]
        print_json({"schema": 1, "runs": plans})
    elif runs:
        print_blocks(runs_blocks(runs))
    elif not damaged:
        click.echo(as_called("no runs yet; make one: agelab run aging-reiserfs"))
    return damaged
