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


def top_blocks(profile: StepStacks, *, everything: bool = False) -> Iterator[Block]:
    """Yield the functions in which the processor was most often."""
    yield from _head_blocks(profile)
    rows = top(profile.stacks)
    shown = rows if everything else rows[:ROWS]
    every = profile.stacks.samples or 1
    yield Table(
        TOP,
        [
            (_percent(function.itself, every), _percent(function.total, every), str(function.itself), function.name)
            for function in shown
        ],
    )
    yield from _rest_blocks(len(rows) - len(shown))


def changes_blocks(after: StepStacks, before: StepStacks, *, everything: bool = False) -> Iterator[Block]:
    """Yield the functions whose own samples differ most."""
    yield Text("before:", bold=True)
    yield from _head_blocks(before)
    yield Text("after:", bold=True)
    yield from _head_blocks(after)
    rows = [function for function in changes(before.stacks, after.stacks) if function.change]
    shown = rows if everything else rows[:ROWS]
    every = before.stacks.samples or 1
    yield Table(
        CHANGES,
        [
            (
                f"{function.change:+d}",
                f"{100 * function.change / every:+.1f}",
                str(function.before),
                str(function.after),
                function.name,
            )
            for function in shown
        ],
    )
    yield Text(
        "samples in the function itself; %: the change, of all samples before; all functions: "
        f"{after.stacks.samples - before.stacks.samples:+d} samples, "
        f"{100 * (after.stacks.samples - before.stacks.samples) / every:+.1f} %"
    )
    yield from _rest_blocks(len(rows) - len(shown))


def profiles_blocks(run: RunDirectory) -> Iterator[Block]:
    """Yield how the profile of each cell of a run went, and how its steps are looked at."""
    result = load(run)
    yield Heading("profiles")
    steps: dict[str, None] = {}
    for cell in result.cells:
        name = f"{cell.cell.short_label}, {name_seeds(cell.cell, result.plan.cells)}"
        profile = profiles.of_cell(cell)
        if profile is None:
            yield Text(f"{name}: none: the cell is not ok", 2)
            continue
        steps |= dict.fromkeys(profiles.step_names(profile))
        if profile.reason:
            yield Text(f"{name}: {profile.status}: {' '.join(profile.reason.split())}", 2)
        if lost := sum(step.lost for step in profile.steps):
            yield Text(f"{name}: {lost} samples are lost", 2)
    if steps:
        yield Text(f"of {', '.join(steps)}: agelab profile {run.name} STEP", 2)


def profile_json(profile: StepStacks, before: StepStacks | None) -> dict[str, Any]:
    """Return all functions as data."""
    return {
        "schema": SCHEMA,
        **_facts(profile),
        "against": _facts(before) if before else None,
        "functions": [
            {"function": function.name, "self": function.itself, "total": function.total}
            for function in top(profile.stacks)
        ],
        "changes": [
            {"function": function.name, "before": function.before, "after": function.after}
            for function in (changes(before.stacks, profile.stacks) if before else ())
        ],
    }


def _facts(profile: StepStacks) -> dict[str, Any]:
    return {
        "of": profile.name,
        "step": profile.step,
        "cells": profile.cells,
        "repetitions": profile.repetitions,
        "samples": profile.stacks.samples,
        "idle": profile.idle,
        "lost": profile.lost,
        "instructions": profile.instructions,
        "nanoseconds": profile.nanoseconds,
        "tasks": dict(profile.stacks.tasks.most_common()),
    }


def _head_blocks(profile: StepStacks) -> Iterator[Block]:
    samples, lost = profile.stacks.samples, f"; {profile.lost} samples are lost" if profile.lost else ""
    times = [
        f"{count} {what}s"
        for count, what in ((profile.repetitions, "repetition"), (profile.cells, "cell"))
        if count > 1
    ]
    over = f", {' in '.join(times)}" if times else ""
    yield Text(
        f"{profile.name}: {profile.step}{over}: {samples} samples, one every {profile.instructions} "
        f"instructions ({profile.nanoseconds / 1e6:.3f} ms): {profile.seconds:.3f} s of the processor; it waited at "
        f"{100 * profile.idle_share:.0f} % of all samples{lost}",
        2,
    )
    tasks: Sequence[tuple[str, int]] = profile.stacks.tasks.most_common()
    every = profile.stacks.samples or 1
    named = [f"{name} {_percent(count, every)} %" for name, count in tasks if count >= SMALLEST_TASK * every]
    if named:
        yield Text(f"tasks: {', '.join(named)}", 2)


def _percent(count: int, every: int) -> str:
    return f"{100 * count / every:.1f}"


def _rest_blocks(left: int) -> Iterator[Block]:
    if left > 0:
        yield Text(f"{left} more: --all")
