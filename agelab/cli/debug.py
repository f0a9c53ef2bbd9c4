"""``agelab debug``: a cell at a moment, in gdb."""

from pathlib import Path

import click

from agelab.base.errors import InputError
from agelab.cli.options import open_store
from agelab.present.view.progress import show_progress


@click.command()
@click.argument("run", metavar="RUN[:CHOICE,...]")
@click.option(
    "--at",
    required=True,
    metavar="STEP[:N][+SECONDS] or MESSAGE",
    help="Where to stop: SECONDS after the (Nth) STEP began, or when the kernel prints MESSAGE.",
)
@click.option("--seed", type=click.IntRange(0), help="The cell's run seed; by default the first cell that failed.")
@click.option(
    "--script",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    help="Run these commands of gdb and end; without it the guest waits for you.",
)
@click.option("--symbols", is_flag=True, help="Fetch the kernel's debugging symbols (900 MB).")
def debug(run: str, at: str, seed: int | None, script: Path | None, symbols: bool) -> None:
    """Run a cell of RUN again up to a moment, and open its guest in gdb.

    It stops at the same instruction each time: to go back, run it again (docs/howto/debug.md).
    """
    from agelab.analysis import comparison
    from agelab.results.result import Status
    from agelab.runner.execute import debugging

    store = open_store()
    selector = comparison.parse_selector(store.runs, run)
    cells = [cell for group in selector.groups() for cell in group.results if seed in (None, cell.seed)]
    if not cells:
        raise InputError(f"{run} has no cell of run seed {seed}")
    failed = [cell for cell in cells if cell.end and cell.end.status not in (Status.OK, Status.UNSUPPORTED)]
    number = (failed or cells)[0].number
    with show_progress() as progress:
        printed = debugging.debug(selector.run.directory, number, at, script, store, progress, with_symbols=symbols)
    click.echo(printed, nl=False)
