"""``agelab rm``: runs that nobody needs any longer."""

import shutil

import click

from agelab.base.errors import InputError
from agelab.cli.options import open_store
from agelab.results import run_lookup


@click.command(epilog="Exit: 0; 2 wrong input, and nothing is removed.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
def rm(runs: tuple[str, ...]) -> None:
    """Remove each RUN (a name or its beginning) with its results. Its stored disks and capsules stay.

    If another run needs its cells, they run again. agelab store prune removes what only this run used.
    """
    store = open_store()
    if paths := [name for name in runs if run_lookup.is_path(name)]:
        raise InputError(f"{paths[0]} is a path: only runs of the store are removed, by their names")
    found = {run.path: run for run in (run_lookup.find_unverified(store.runs, name) for name in runs)}
    if busy := [run.name for run in found.values() if run.is_running()]:
        raise InputError(f"{busy[0]} is running: end it first")
    for path in found:
        gone = path.with_name(f".{path.name}")  # with that name it is no run, should this be interrupted
        path.rename(gone)
        shutil.rmtree(gone)
        click.echo(f"removed {path.name}")
