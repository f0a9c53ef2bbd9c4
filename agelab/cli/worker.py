"""``agelab worker``: one cell of a plan for several hosts."""

from pathlib import Path

import click

from agelab.cli.options import OUTPUT, force_option, open_store, write_output


@click.command(
    epilog="Exit: 0 the cell ended, 1 it is not ok, 2 wrong input, 3 the host cannot do it, 130 interrupted."
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--cell", "number", type=int, required=True, help="Number of the cell in PLAN, from 0.")
@click.option("--output", "-o", type=OUTPUT, help="Also write the ended cell, sealed, into this file.")
@force_option
def worker(plan: Path, number: int, output: Path | None) -> int:
    """Run one cell of PLAN, which agelab plan --slurm wrote, and put it into the cache (AGELAB_CACHE).

    A cell whose key is known there does not run again.
    """
    from agelab.present.view.progress import show_progress
    from agelab.runner.cluster import shared_plan
    from agelab.runner.execute import runner

    with show_progress() as progress:
        run = shared_plan.run_cell(shared_plan.read(plan), number, open_store(), progress)
    if output:
        write_output(output, shared_plan.pack(run))
    return 0 if runner.succeeded(run) else 1
