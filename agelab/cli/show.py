"""``agelab show``: one run's result."""

import click

from agelab.cli.options import json_option, open_store, print_json
from agelab.cli.types import RUN


@click.command()
@click.argument("run", default="latest", type=RUN)
@json_option
def show(run: str, as_json: bool) -> None:
    """Show the samples, keys and digests of RUN (default: the latest)."""
    from agelab.results import run_lookup
    from agelab.view.run_tables import print_run

    found = run_lookup.find(open_store().runs, run)
    if as_json:
        print_json(found.as_json())
    else:
        print_run(found, curves=True)
