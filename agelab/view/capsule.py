"""Capsules and their replays on a terminal and as JSON."""

from collections.abc import Sequence
from typing import Any

import click

from agelab.capsule.read import Capsule
from agelab.capsule.replay import ReplayedCell
from agelab.model.sanitize import escape_controls
from agelab.results.run_directory import RunDirectory
from agelab.view.capsule_content import cell_name
from agelab.view.input_diff import differences_json, input_lines

SCHEMA = 1


SHOWN = 5
"""Differing samples to print of a cell."""


def print_replay(run: RunDirectory | None, judged: Sequence[ReplayedCell]) -> None:
    """Print each cell's verdict, and where it differs from the capsule's."""
    for one in judged:
        print_escaped(f"{one.number}  {cell_name(one.ran.cell)}: {one.outcome}: {one.why}")
        for line in input_lines(one.inputs, False):
            print_escaped(f"     input {line}")
        for row in one.samples[:SHOWN]:
            print_escaped(f"     sample {row.place}: {row.left} | {row.right}")
        if len(one.samples) > SHOWN:
            print_escaped(f"     and {len(one.samples) - SHOWN} more samples")
    if run:
        click.echo(f"the replay: agelab show {run.name}")


def replay_json(
    capsule: Capsule, run: RunDirectory | None, judged: "Sequence[ReplayedCell]"
) -> dict[str, Any]:
    """Return each cell's verdict, and all places in which it differs."""
    return {
        "schema": SCHEMA,
        "capsule": capsule.run,
        "run": run.name if run else None,
        "cells": [
            {
                "cell": one.number,
                "variant": one.ran.cell.variant,
                "layout": one.ran.cell.layout,
                "seed": one.ran.cell.seed,
                "verdict": one.outcome,
                "why": one.why,
                "inputs": differences_json(one.inputs),
                "samples": differences_json(one.samples),
            }
            for one in judged
        ],
    }


def print_escaped(line: str) -> None:
    """Print text from a file; its control characters are escaped, so that they cannot move the terminal."""
    click.echo(escape_controls(line, kept=""))
