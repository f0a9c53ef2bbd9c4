"""``agelab sweep``: runs of one scenario on several kernels as one table, and as plots."""

from collections.abc import Sequence
from pathlib import Path

import click

from agelab.analysis.sweep import Sweep, load_sweep
from agelab.cli.options import json_option, open_store, print_json
from agelab.cli.types import SELECTION
from agelab.errors import AgelabError, unknown
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.stats.series import Place


@click.command()
@click.argument("names", type=SELECTION, nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--metric",
    "asked",
    multiple=True,
    metavar="STEP:METRIC[:REPETITION]",
    help="Show this in place of layout scores, slowdowns and the sum of all steps.",
)
@click.option(
    "--plots", type=click.Path(path_type=Path, file_okay=False), help="Draw each table into this directory."
)
@json_option
def sweep(names: tuple[str, ...], asked: tuple[str, ...], plots: Path | None, as_json: bool) -> int:
    """Put the runs of one scenario into one table: filesystem by kernel, changes marked.

    RUN... are runs on different kernels, or of further run seeds, as agelab run --kernel A --kernel B makes them.
    """
    from agelab.view.sweep import print_sweep, sweep_json, write_plots

    store = open_store()
    found = load_sweep([run_lookup.find(store.runs, name) for name in names])
    places = _places(found, asked)
    print_json(sweep_json(found, places)) if as_json else print_sweep(found, places)
    for path in write_plots(found, places, plots) if plots else ():
        click.echo(f"plot  {path}", err=as_json)
    return 0


def print_finished_sweep(runs: Sequence[RunDirectory], unfit: Sequence[tuple[str, AgelabError]] = ()) -> None:
    """Print the table of runs that have just ended, why a kernel (its spec) has none, and how to see it again."""
    from agelab.view.sweep import print_sweep

    found = load_sweep(runs)
    print_sweep(found, found.places())
    for spec, why in unfit:
        click.echo(f"not in the table: kernel {spec}: {str(why).splitlines()[0]}")
    click.echo(f"\nagain, or as JSON or plots: agelab sweep {' '.join(run.name for run in runs)}")


def _places(found: Sweep, asked: Sequence[str]) -> list[Place]:
    """Choose the metrics to show. Raises InputError for one that was not measured."""
    if not asked:
        return found.places()
    measured = [entry.measured for row in found.entries.values() for entry in row if entry]
    every: dict[str, Place] = {}
    for place in (place for one in measured for place in one):
        step, repetition, metric = place
        every.setdefault(f"{step}:{metric}", place)
        every.setdefault(f"{step}:{metric}:{repetition}", place)
    for name in asked:
        if name not in every:
            raise unknown("metric", name, list(every))
    return [every[name] for name in asked]
