"""``agelab plan``: what a run would take."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from agelab.base.errors import InputError
from agelab.base.verbs import as_called
from agelab.cli.click_options import CellsCommand, run_options
from agelab.cli.options import force_option, json_option, open_store, print_blocks, print_json, require_output
from agelab.machine.vm import host
from agelab.present.report.blocks import Block, Heading, Text
from agelab.present.view.cell_names import count_cells
from agelab.present.view.progress import format_time_left, show_progress, time_left
from agelab.runner.cell_times import Forecast, TimeRange, forecast
from agelab.runner.request.options import RunOptions
from agelab.scenario.jobs import AUTO
from agelab.scenario.seeds import seeds_text

SCHEMA = 2


def forecast_blocks(planned: Forecast) -> Iterator[Block]:
    """Yield the cells and the time."""
    clock = planned.options.guest_clock
    yield Heading(f"{planned.scenario}, scale {planned.scale}, {clock} clock: {count_cells(len(planned.cells))}")
    for line in (_cells_line(planned), _time_line(planned), *_erased_lines(planned)):
        yield Text(f"  {line}", 2)


def _cells_line(planned: Forecast) -> str:
    variants = list(dict.fromkeys(cell.short_label for cell in planned.cells))
    count = f"{len(variants)} variants: " if len(variants) > 1 else ""
    separator = "; " if any("," in variant for variant in variants) else ", "
    return f"{count}{separator.join(variants)}; each with {seeds_text(planned.options.repetitions)}"


def _time_line(planned: Forecast) -> str:
    if not (time := _time(planned)):
        return "time: not known: no such cell has ended in this store"
    jobs = _jobs(planned)
    at_once = f", {jobs} at a time" if jobs > 1 else ""
    return f"time: {format_time_left(time)}{at_once}, by what such cells took in this store before"


def _erased_lines(planned: Forecast) -> Iterator[str]:
    """Yield what a run destroys."""
    if real := [str(spec) for spec in planned.options.disks if spec.real]:
        yield (
            f"data: the run overwrites {', '.join(real)}. It refuses a disk that holds data, and prints the --erase "
            "(make: ERASE=) that allows the loss"
        )


def _jobs(planned: Forecast) -> int:
    jobs = planned.options.jobs
    return host.processors() if jobs == AUTO else int(jobs)


def _time(planned: Forecast) -> TimeRange | None:
    return time_left(planned.cells, (), _jobs(planned), (), planned.before)


def forecast_json(planned: Forecast) -> dict[str, Any]:
    """Return the same; the time is null where no such cell has ended."""
    time = _time(planned)
    return {
        "schema": SCHEMA,
        "scenario": planned.scenario,
        "scale": planned.scale,
        "clock": planned.options.guest_clock,
        "cells": [cell.model_dump(include={"variant", "layout", "seed", "corpus_seed"}) for cell in planned.cells],
        "seconds": [time.low, time.high] if time else None,
    }


@click.command(cls=CellsCommand, epilog="Exit: 0; 2 wrong input.")
@run_options
@click.option(
    "--slurm",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Write the cells, and a Slurm array script that runs them, into this directory (docs/howto/cluster.md).",
)
@force_option
@json_option
def plan(as_json: bool, slurm: Path | None, **words: Any) -> None:
    """List the cells of a run with these options and estimate their time, without running anything.

    The estimate follows from what such cells took in earlier runs of this store.
    """
    options = RunOptions(**words)
    if options.until_decided:
        raise InputError("--seeds auto: agelab plan needs seeds, like 1-5")
    if slurm:
        _write_array(options, slurm)
        return
    planned = forecast(options, open_store().runs)
    print_json(forecast_json(planned)) if as_json else print_blocks(forecast_blocks(planned))


def _write_array(options: RunOptions, directory: Path) -> None:
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
    click.echo(as_called("then, with the same AGELAB_CACHE, agelab run with the same options puts them together"))
