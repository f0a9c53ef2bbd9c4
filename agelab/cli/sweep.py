"""``agelab sweep``: runs of one scenario on several kernels as one table, and as plots."""

from collections.abc import Sequence
from pathlib import Path

import click

from agelab.analysis.sweep import load_sweep
from agelab.base import atomic, limits
from agelab.base.errors import AgelabError
from agelab.base.verbs import as_called
from agelab.cli.options import (
    MEASURE,
    force_option,
    json_option,
    open_store,
    print_blocks,
    print_json,
    require_directory,
    require_output,
)
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--metric",
    "asked",
    multiple=True,
    metavar=MEASURE,
    help="Show this in place of layout scores, slowdowns, the steps and the sum of all (without mkfs and mount).",
)
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), help="Draw each table into this directory.")
@force_option
@json_option
def sweep(names: tuple[str, ...], asked: tuple[str, ...], plots: Path | None, as_json: bool) -> int:
    """Put the runs of one scenario into one table: filesystem by kernel, changes marked.

    RUN... are runs on different kernels, or of further run seeds, as agelab run --kernel A --kernel B makes them.
    """
    from agelab.present.view.sweep import sweep_blocks, sweep_json, write_plots

    store = open_store()
    grid = load_sweep([run_lookup.find(store.runs, name) for name in names])
    measures = grid.chosen(asked)
    print_json(sweep_json(grid, measures)) if as_json else print_blocks(sweep_blocks(grid, measures))
    if plots:
        limits.require_to_draw()
        require_directory(plots)
        with atomic.temp_dir(plots) as place:
            drawn = {plots / path.name: path for path in write_plots(grid, measures, place)}
            for path in drawn:
                require_output(path)
            for path, made in drawn.items():
                made.rename(path)
                click.echo(f"plot  {path}", err=as_json)
    return 0


def print_finished_sweep(runs: Sequence[RunDirectory], unfit: Sequence[tuple[str, AgelabError]] = ()) -> None:
    """Print the table of runs that have just ended, why a kernel (its spec) has none, and how to see it again."""
    from agelab.present.view.sweep import sweep_blocks

    grid = load_sweep(runs)
    print_blocks(sweep_blocks(grid, grid.measures()))
    for spec, why in unfit:
        click.echo(f"not in the table: kernel {spec}: {str(why).splitlines()[0]}")
    click.echo(as_called(f"\nagain, or as JSON or plots: agelab sweep {' '.join(run.name for run in runs)}"))
