"""``agelab show``: one run's result."""

import click

from agelab.cli.options import find_runs, json_option, print_json
from agelab.cli.types import RUN


@click.command()
@click.argument("run", default="latest", type=RUN)
@json_option
def show(run: str, as_json: bool) -> None:
    """Show the samples, keys and digests of RUN (default: the latest)."""
    from agelab.view.run_tables import print_run

    [found] = find_runs([run])
    print_json(found.as_json()) if as_json else print_run(found, curves=True)
