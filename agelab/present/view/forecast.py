"""A run before it is made, on a terminal and as JSON: its cells, its time, and what it could find."""

import shlex
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from agelab.analysis.spread import MetricSpread
from agelab.machine.vm import host
from agelab.present.view.cell_names import count_cells
from agelab.present.view.eta import format_time_left, time_left
from agelab.present.view.terminal import Head, open_console, print_table, print_wrapped
from agelab.run.cell_times import TimeRange
from agelab.run.forecast import Basis, DesignSize, Forecast
from agelab.run.request.options import RunOptions
from agelab.scenario.jobs import AUTO
from agelab.scenario.seeds import seeds_text
from agelab.stats.formatting import unit_scale

SCHEMA = 1
UNKNOWN = "?"
NOTHING = "none"


def print_forecast(found: Forecast) -> None:
    """Print the cells, the time and, where an earlier run says it, the table of what can be found."""
    console, options = open_console(), found.options
    head = (
        f"{found.scenario}, scale {found.scale}, {options.guest_clock} clock: {count_cells(len(found.cells))}"
    )
    console.print(f"\n{head}", style="bold")
    for line in (_cells(found), _time_line(found)):
        print_wrapped(console, f"  {line}", 2)
    console.print()
    if found.basis is None:
        print_wrapped(
            console,
            "which differences it could find is not known: no run here of this scenario, scale and clock has three run "
            "seeds of one corpus; this makes one:",
        )
        print_wrapped(console, f"  agelab run {shlex.join(_first_run(found).arguments())}", 4)
        return
    _print_table(console, found, found.basis)


def _cells(found: Forecast) -> str:
    variants = list(dict.fromkeys(cell.short_label for cell in found.cells))
    count = f"{len(variants)} variants: " if len(variants) > 1 else ""
    separator = "; " if any("," in one for one in variants) else ", "
    return f"{count}{separator.join(variants)}; each with {seeds_text(found.options.repetitions)}"


def _time_line(found: Forecast) -> str:
    if not found.before:
        return "time: not known: no such cell has ended in this store"
    jobs = _jobs(found)
    at_once = f", {jobs} at a time" if jobs > 1 else ""
    return f"time: {_time(found, found.asked)}{at_once}, by what such cells took in this store before"


def _first_run(found: Forecast) -> RunOptions:
    """Return the options of the smallest run that says something of the spread."""
    return found.options.of_seeds((1, 2, 3), found.options.corpora[:1])


def _print_table(console: Console, found: Forecast, basis: Basis) -> None:
    spreads = [told for told in basis.spreads.values() if told]
    print_wrapped(
        console,
        "the smallest difference between two variants that is found in 80 % of all cases, at 5 % false ones, by the "
        f"spread in {basis.run.name} ({seeds_text(one.seeds for one in basis.groups[0].results)}):",
    )
    heads: list[Head] = [(f" {name}", "right") for name in ("run seeds", "corpora", "cells")]
    heads += [(f" {told.measure}", "right") for told in spreads]
    heads.append((" time", "right"))
    rows = []
    for size in found.sizes:
        numbers = (size.runs, size.corpora, len(found.cells_of(size)))
        differences = [_difference(told, size) for told in spreads]
        rows.append([f" {cell}" for cell in (*numbers, *differences, _time(found, size))])
    print_table(console, heads, rows)
    for line in _notes(found, basis):
        print_wrapped(console, line, 2)


def _notes(found: Forecast, basis: Basis) -> Iterator[str]:
    for measure, told in basis.spreads.items():
        if told is None:
            yield f"{measure}: {basis.run.name} has too few values of it"
            continue
        each = ", ".join(f"{name} {_amount(told, one)}" for name, one in told.groups.items())
        yield f"spread of {told.title}, {measure.metric}, within a corpus (standard deviation): {each}"
    if basis.without:
        yield f"not in that run, so taken to spread like the others: {', '.join(basis.without)}"
    if any(size.difference is None for size in found.sizes):
        yield f"{NOTHING}: with so few seeds even values that are wholly apart may be chance"
    if found.options.design == "paired":
        yield "paired: each corpus has one value a side, so that only its sign counts"


def _difference(told: MetricSpread, size: DesignSize) -> str:
    if size.difference is None:
        return NOTHING
    return _amount(told, told.of_shift(size.difference))


def _amount(told: MetricSpread, value: float) -> str:
    """Format a difference or a spread: a share in percent, or in the unit."""
    if told.relative:
        return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"
    scale = unit_scale(told.unit)
    return f"{value / scale.divisor:.2g} {scale.name}".strip()


def _jobs(found: Forecast) -> int:
    jobs = found.options.jobs
    return host.processors() if jobs == AUTO else int(jobs)


def _time_range(found: Forecast, size: DesignSize) -> TimeRange | None:
    return time_left(found.cells_of(size), (), _jobs(found), (), found.before)


def _time(found: Forecast, size: DesignSize) -> str:
    time = _time_range(found, size)
    return format_time_left(time) if time else UNKNOWN


def forecast_json(found: Forecast) -> dict[str, Any]:
    """Return the same: each difference as a share or in the metric's unit, null where none is found or known."""
    basis = found.basis
    spreads = [told for told in basis.spreads.values() if told] if basis else []
    return {
        "schema": SCHEMA,
        "scenario": found.scenario,
        "scale": found.scale,
        "clock": found.options.guest_clock,
        "cells": [
            cell.model_dump(include={"variant", "layout", "seed", "corpus_seed"}) for cell in found.cells
        ],
        "basis": basis.run.name if basis else None,
        "spreads": [
            {
                "step": told.measure.step,
                "repetition": told.measure.repetition,
                "metric": told.measure.metric,
                "unit": told.unit,
                "relative": told.relative,
                "deviations": told.groups,
            }
            for told in spreads
        ],
        "sizes": [
            {
                "run_seeds": size.runs,
                "corpora": size.corpora,
                "design": size.design,
                "cells": len(found.cells_of(size)),
                "seconds": [time.low, time.high] if (time := _time_range(found, size)) else None,
                "deviations": size.difference,
                "differences": {
                    str(told.measure).replace(":", " "): (
                        None if size.difference is None else told.of_shift(size.difference)
                    )
                    for told in spreads
                },
            }
            for size in found.sizes
        ],
    }
