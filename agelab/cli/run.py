"""``agelab run``: a scenario, each cell in a fresh guest."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from agelab.base.errors import AgelabError, InputError
from agelab.base.verbs import as_called
from agelab.cli.click_options import CellsCommand, execute, options_of_run
from agelab.cli.options import open_store, print_blocks
from agelab.present.view.progress import show_progress
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions


@click.command(
    cls=CellsCommand,
    epilog="Exit: 0 all cells ok, 1 some cell not ok, 2 wrong input, 3 the host cannot do it, 130 interrupted.",
)
@options_of_run
@click.option(
    "--on", metavar="dask://HOST:PORT", help="Run the cells on the workers of a Dask scheduler (docs/howto/cluster.md)."
)
def run(kernel: tuple[str, ...], on: str | None, **words: Any) -> int:
    """Run a scenario: every variant of it, or the one that follows its name.

    With --kernel more than once it is a sweep: a run for each kernel, and one table of all.
    """
    from agelab.present.view.profile import profiles_blocks
    from agelab.present.view.summary import result_blocks, timing_blocks
    from agelab.runner.execute import runner

    options = RunOptions(kernel=kernel[0], **words)
    if on and len(kernel) > 1:
        raise InputError("--on takes one kernel: begin a run for each")
    if len(kernel) > 1:
        return _sweep(options, kernel)
    if options.until_decided:
        return run_until_decided(options)
    finished = execute_on(on, options) if on else execute(options)
    print_blocks(result_blocks(finished))
    if options.timing:
        print_blocks(timing_blocks(finished))
    if options.profile:
        print_blocks(profiles_blocks(finished))
    if options.trial and runner.succeeded(finished):
        whole = shlex.join(["agelab", "run", *options.changed(trial=False).arguments()])
        click.echo(as_called(f"it works: one small cell has run; all of it: {whole}"))
        return 0
    print_report_command([finished])
    return 0 if runner.succeeded(finished) else 1


def execute_on(address: str, options: RunOptions, begun: RunDirectory | None = None) -> RunDirectory:
    """Run the options on other hosts, or the unfinished cells of ``begun``, and show progress."""
    from agelab.runner.cluster import dask_cells, scheduler, shared_plan
    from agelab.runner.execute import runner

    scheduler.require_answer(address)  # before anything is made: that may take minutes
    store = open_store()
    with runner.asked(options, begun) as request, show_progress() as progress:
        plan = shared_plan.make(request, store, progress)
        with dask_cells.connected(address, plan) as elsewhere:
            return runner.run_request(request, store, progress, begun=begun, elsewhere=elsewhere)


def run_until_decided(options: RunOptions, begun: RunDirectory | None = None) -> int:
    """Add run seeds until the question is decided, and print the run and what was decided."""
    from agelab.present.view.summary import outcome_blocks, result_blocks
    from agelab.runner import sequential
    from agelab.runner.execute import runner

    with show_progress() as progress:
        finished, outcome = sequential.run_until_decided(options, open_store(), progress, begun)
    print_blocks(result_blocks(finished))
    print_blocks(outcome_blocks(outcome))
    print_report_command([finished])
    return 0 if runner.succeeded(finished) else 1


def _sweep(options: RunOptions, kernels: Sequence[str]) -> int:
    from agelab.cli.sweep import print_finished_sweep
    from agelab.runner.execute import runner

    done = execute_kernels(options, kernels)
    unfit = [(kernel, error) for kernel, error in done.items() if isinstance(error, AgelabError)]
    finished = [run for run in done.values() if not isinstance(run, AgelabError)]
    if not finished:
        raise unfit[0][1]
    print_finished_sweep(finished, unfit)
    if unfit:
        return 1
    print_report_command(finished)
    return 0 if all(map(runner.succeeded, finished)) else 1


def execute_kernels(options: RunOptions, kernels: Sequence[str]) -> dict[str, RunDirectory | AgelabError]:
    """Run the options on several kernels and show progress. Returns the run of each, or why it has none."""
    from agelab.runner.execute import runner

    with show_progress() as progress:
        return runner.run_kernels(options, kernels, open_store(), progress)


def print_report_command(runs: Sequence[RunDirectory]) -> None:
    """Print the last line, from which docs/howto/gate.sh takes a run's name."""
    click.echo(as_called(f"a page to read: agelab report {' '.join(run.name for run in runs)} -o report.html"))
