"""Print the profile of a step: the functions that the processor was in, or how that differs from another profile."""

from collections.abc import Iterator, Sequence
from typing import Any

from agelab.analysis import profiles
from agelab.analysis.cells import load
from agelab.analysis.profiles import StepStacks
from agelab.evaluate.stacks.folded import changes, top
from agelab.present.report.blocks import Block, Heading, Table, Text, headings
from agelab.present.view.cell_names import name_seeds
from agelab.results.run_directory import RunDirectory

SCHEMA = 1
ROWS = 25
"""Functions that are shown without --all."""
SMALLEST_TASK = 0.005
"""Tasks with a smaller share of the samples are left out of the line that names them."""
TOP_NUMBERS, CHANGE_NUMBERS = ("self %", "total %", "samples"), ("change", "%", "before", "after")
TOP = headings(*TOP_NUMBERS, "function", numbers=TOP_NUMBERS)
CHANGES = headings(*CHANGE_NUMBERS, "function", numbers=CHANGE_NUMBERS)


def top_blocks(found: StepStacks, *, everything: bool = False) -> Iterator[Block]:
    """Yield the functions in which the processor was most often."""
    yield from _head_blocks(found)
    rows = top(found.stacks)
    shown = rows if everything else rows[:ROWS]
    every = found.stacks.samples or 1
    yield Table(
        TOP,
        [
            (_percent(one.itself, every), _percent(one.total, every), str(one.itself), one.name)
            for one in shown
        ],
    )
    yield from _rest_blocks(len(rows) - len(shown))


def changes_blocks(found: StepStacks, before: StepStacks, *, everything: bool = False) -> Iterator[Block]:
    """Yield the functions whose own samples differ most."""
    yield Text("before:", bold=True)
    yield from _head_blocks(before)
    yield Text("after:", bold=True)
    yield from _head_blocks(found)
    rows = [one for one in changes(before.stacks, found.stacks) if one.change]
    shown = rows if everything else rows[:ROWS]
    every = before.stacks.samples or 1
    yield Table(
        CHANGES,
        [
            (
                f"{one.change:+d}",
                f"{100 * one.change / every:+.1f}",
                str(one.before),
                str(one.after),
                one.name,
            )
            for one in shown
        ],
    )
    yield Text(
        "samples in the function itself; %: the change, of all samples before; all functions: "
        f"{found.stacks.samples - before.stacks.samples:+d} samples, "
        f"{100 * (found.stacks.samples - before.stacks.samples) / every:+.1f} %"
    )
    yield from _rest_blocks(len(rows) - len(shown))


def profiles_blocks(run: RunDirectory) -> Iterator[Block]:
    """Yield how the profile of each cell of a run went, and how its steps are looked at."""
    result = load(run)
    yield Heading("profiles")
    steps: dict[str, None] = {}
    for cell in result.cells:
        name = f"{cell.cell.short_label}, {name_seeds(cell.cell, result.plan.cells)}"
        found = profiles.of_cell(cell)
        if found is None:
            yield Text(f"{name}: none: the cell is not ok", 2)
            continue
        steps |= dict.fromkeys(profiles.step_names(found))
        if found.reason:
            yield Text(f"{name}: {found.status}: {' '.join(found.reason.split())}", 2)
        if lost := sum(one.lost for one in found.steps):
            yield Text(f"{name}: {lost} samples are lost", 2)
    if steps:
        yield Text(f"of {', '.join(steps)}: agelab profile {run.name} STEP", 2)


def profile_json(found: StepStacks, before: StepStacks | None) -> dict[str, Any]:
    """Return all functions as data."""
    return {
        "schema": SCHEMA,
        **_facts(found),
        "against": _facts(before) if before else None,
        "functions": [
            {"function": one.name, "self": one.itself, "total": one.total} for one in top(found.stacks)
        ],
        "changes": [
            {"function": one.name, "before": one.before, "after": one.after}
            for one in (changes(before.stacks, found.stacks) if before else ())
        ],
    }


def _facts(found: StepStacks) -> dict[str, Any]:
    return {
        "of": found.name,
        "step": found.step,
        "cells": found.cells,
        "repetitions": found.repetitions,
        "samples": found.stacks.samples,
        "idle": found.idle,
        "lost": found.lost,
        "instructions": found.instructions,
        "nanoseconds": found.nanoseconds,
        "tasks": dict(found.stacks.tasks.most_common()),
    }


def _head_blocks(found: StepStacks) -> Iterator[Block]:
    times = [
        f"{count} {what}s"
        for count, what in ((found.repetitions, "repetition"), (found.cells, "cell"))
        if count > 1
    ]
    over = f", {' in '.join(times)}" if times else ""
    yield Text(
        f"{found.name}: {found.step}{over}: {found.stacks.samples} samples, one every {found.instructions} "
        f"instructions ({found.nanoseconds / 1e6:.3f} ms): {found.seconds:.3f} s of the processor; it waited at "
        f"{100 * found.idle_share:.0f} % of all samples{f'; {found.lost} samples are lost' if found.lost else ''}",
        2,
    )
    tasks: Sequence[tuple[str, int]] = found.stacks.tasks.most_common()
    every = found.stacks.samples or 1
    named = [f"{name} {_percent(count, every)} %" for name, count in tasks if count >= SMALLEST_TASK * every]
    if named:
        yield Text(f"tasks: {', '.join(named)}", 2)


def _percent(count: int, every: int) -> str:
    return f"{100 * count / every:.1f}"


def _rest_blocks(left: int) -> Iterator[Block]:
    if left > 0:
        yield Text(f"{left} more: --all")
