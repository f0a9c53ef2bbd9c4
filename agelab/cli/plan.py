"""``agelab plan``: what a run would take."""

import sys
from pathlib import Path
from typing import Any

import click

from agelab.base.errors import InputError
from agelab.base.verbs import as_called
from agelab.cli.options import force_option, json_option, open_store, print_json, require_output
from agelab.cli.run_options import run_options
from agelab.runner.request.options import RunOptions


@click.command(epilog="Exit: 0; 2 wrong input.")
@run_options
@click.option(
    "--slurm",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIRECTORY",
    help="Write the cells, and a Slurm array script that runs them, into this directory (docs/howto/cluster.md).",
)
@force_option
@json_option
def plan(as_json: bool, slurm: Path | None, **words: Any) -> None:
    """Say what a run with these options would be, without running anything.

    Its cells, and how long they take, by what such cells took in earlier runs of this store.
    """
    from agelab.present.view.forecast import forecast_blocks, forecast_json
    from agelab.present.view.terminal import print_blocks
    from agelab.runner.cell_times import forecast

    options = RunOptions(**words)
    if options.until_decided:
        raise InputError("--seeds auto: agelab plan says what a number of seeds takes: name the seeds")
    if slurm:
        _write_array(options, slurm)
        return
    found = forecast(options, open_store().runs)
    print_json(forecast_json(found)) if as_json else print_blocks(forecast_blocks(found))


def _write_array(options: RunOptions, directory: Path) -> None:
    from agelab.present.view.progress import show_progress
    from agelab.runner.cluster import shared_plan
    from agelab.runner.request.request import resolve

    if directory.is_dir():
        for name in (shared_plan.PLAN, shared_plan.SCRIPT):
            require_output(directory / name)
    with show_progress() as progress:
        shared = shared_plan.make(resolve(options), open_store(), progress)
    script = shared_plan.write_array(directory, shared, str(Path(sys.argv[0]).absolute()))
    count = len(shared.cells)
    click.echo(f"{count} cells: export AGELAB_CACHE=...; {shared_plan.array_commands(script, count)}")
    click.echo(
        as_called("then, with the same AGELAB_CACHE, agelab run with the same options puts them together")
    )
