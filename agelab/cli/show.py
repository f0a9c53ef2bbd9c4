"""``agelab show``: one run's result."""

import click

from agelab.cli.options import find_runs, json_option, print_blocks, print_json


@click.command()
@click.argument("run", default="latest")
@json_option
@click.option("--timing", is_flag=True, help="Also show the host's time of a run made with --timing.")
def show(run: str, as_json: bool, timing: bool) -> None:
    """Show the samples, keys and digests of RUN (default: the latest), or of the run in any directory: ./their-run."""
    from agelab.present.view.run_tables import run_blocks
    from agelab.present.view.summary import timing_blocks

    [directory] = find_runs([run])
    if as_json:
        print_json(directory.as_json())
        return
    print_blocks(run_blocks(directory, curves=True))
    if timing:
        print_blocks(timing_blocks(directory))
