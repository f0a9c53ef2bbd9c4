"""A run before it is made, on a terminal and as JSON: its cells and its time."""

from collections.abc import Iterator
from typing import Any

from agelab.machine.vm import host
from agelab.present.report.blocks import Block, Heading, Text
from agelab.present.view.cell_names import count_cells
from agelab.present.view.progress import format_time_left, time_left
from agelab.runner.cell_times import Forecast, TimeRange
from agelab.scenario.jobs import AUTO
from agelab.scenario.seeds import seeds_text

SCHEMA = 2


def forecast_blocks(planned: Forecast) -> Iterator[Block]:
    """Yield the cells and the time."""
    clock = planned.options.guest_clock
    yield Heading(
        f"{planned.scenario}, scale {planned.scale}, {clock} clock: {count_cells(len(planned.cells))}"
    )
    for line in (_cells(planned), _time_line(planned)):
        yield Text(f"  {line}", 2)


def _cells(planned: Forecast) -> str:
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
        "cells": [
            cell.model_dump(include={"variant", "layout", "seed", "corpus_seed"}) for cell in planned.cells
        ],
        "seconds": [time.low, time.high] if time else None,
    }
