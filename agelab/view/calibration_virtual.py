"""The virtual clock's part of ``agelab calibrate``."""

from collections.abc import Sequence
from typing import Any

import click

from agelab.analysis.cell_diff import CellPair
from agelab.analysis.cells import SeedGroup
from agelab.results.run_directory import RunDirectory
from agelab.stats.order_statistics import coverage, interval_rank
from agelab.stats.series import seeds_text
from agelab.view.input_diff import differences_json, input_lines, print_samples
from agelab.view.run_tables import describe_run
from agelab.view.series_table import percent, print_series, series_json

SCHEMA = 1
SHOWN = 5
"""Differing samples to print of an A/A that failed."""


def print_floors(
    seeded: RunDirectory,
    again: RunDirectory,
    calibrated: Sequence[tuple[SeedGroup, CellPair]],
    everything: bool,
) -> None:
    click.echo(f"\n{describe_run(seeded.plan())}")
    for group, proof in calibrated:
        seed = proof.left.cell.seed
        click.echo(f"\n{group.name}: {seeds_text(group.cells)}, and seed {seed} once more")
        _print_proof(proof)
        for ran in [*group.cells.values(), proof.right]:
            if not ran.ok:
                click.echo(f"  not ok, in no figure below: seed {ran.cell.seed} of {ran.run}: {ran.ended}")
        if n := len(group.counted):
            covers = percent(coverage(n, interval_rank(n)))
            click.echo(
                f"  from .. to holds the median over all run seeds with {covers}; floor: largest less smallest"
            )
            print_series([*group.series.values()], everything)
    click.echo(
        f"\nagainst another run: agelab compare {seeded.name} <run>; a difference counts above both floors"
    )
    click.echo(f"the second execution of seed {calibrated[0][1].left.cell.seed}: {again.name}")


def _print_proof(proof: CellPair) -> None:
    """Print the result of A/A."""
    differ = f"{len(proof.samples)} of {proof.compared} samples differ"
    if proof.unfinished:
        click.echo(f"  no A/A: not finished: {' and '.join(proof.unfinished)}")
    elif not proof.compared:
        click.echo("  no A/A: nothing was measured")
    elif proof.inputs:
        click.echo(f"  A/A FAILED: the second execution had other inputs; {differ}")
        for line in input_lines(proof.inputs, every=True):
            click.echo(f"  input {line}")
    elif proof.broken:
        click.echo(f"  A/A FAILED: EQUAL INPUTS AND DIFFERENT SAMPLES: {differ}; first:")
        print_samples(proof, SHOWN)
        click.echo("  that breaks agelab's promise; please report it")
    else:
        digest = proof.left.end.digest if proof.left.end else None
        click.echo(f"  A/A: the same twice, to the last digit: {proof.compared} samples, all differences 0")
        click.echo(f"  digest {digest}")


def floors_json(
    seeded: RunDirectory, again: RunDirectory, calibrated: Sequence[tuple[SeedGroup, CellPair]]
) -> dict[str, Any]:
    plan = seeded.plan()
    return {
        "schema": SCHEMA,
        "run": seeded.name,
        "again": again.name,
        "scenario": plan.scenario,
        "scale": plan.scale,
        "clock": plan.clock,
        "variants": [
            {
                "variant": group.variant,
                "layout": group.layout,
                "cells": [
                    {"seed": seed, "status": ran.end.status if ran.end else "interrupted"}
                    for seed, ran in group.cells.items()
                ],
                "same_twice": {
                    "seed": proof.left.cell.seed,
                    "proven": proof.equal and proof.compared > 0,
                    "inputs_key": proof.left.end.inputs_key if proof.left.end else None,
                    "digests": [ran.end.digest if ran.end else None for ran in (proof.left, proof.right)],
                    "compared": proof.compared,
                    "inputs": differences_json(proof.inputs),
                    "samples": differences_json(proof.samples),
                    "endings": differences_json(proof.endings),
                },
                "floors": [series_json(one) for one in group.series.values()],
            }
            for group, proof in calibrated
        ],
    }
