"""``agelab calibrate``: how far run seeds alone move each result, and that equal inputs move none."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from agelab.cli.common import json_option, print_json
from agelab.cli.compare import described, differences_json, input_lines, print_samples
from agelab.cli.request import execute, of_one_kernel, options, request
from agelab.stats.series import seeds_of

if TYPE_CHECKING:
    from agelab.results.compare import Group, Pair
    from agelab.results.rundir import RunDirectory

SCHEMA = 1
SEEDS = "1,2,3,4,5"
SHOWN = 5
"""Differing samples to name of an A/A that failed."""


@click.command(
    epilog="Exit: 0; 1 some cell not ok, or equal inputs gave different samples; 2 wrong input; "
    "3 the host cannot do it; 130 interrupted.",
)
@options
@click.option("--all", "everything", is_flag=True, help="Every metric and repetition.")
@json_option
def calibrate(name: str, everything: bool, as_json: bool, **words: Any) -> int:
    """Measure the floor under every difference of a scenario.

    Runs it with at least five run seeds and, in a run of its own, with the first of them once more: that one must
    give the same samples, to the last digit (A/A). What the seeds differ by is each result's floor.
    """
    from agelab.errors import InputError
    from agelab.results import compare as results
    from agelab.stats.floor import SEEDS_NEEDED

    words = of_one_kernel(words)
    wanted = request(name, words)
    seeds = wanted.run_seeds
    if len(seeds) < SEEDS_NEEDED:
        raise InputError(
            f"--seeds {words['seeds']}: a floor takes at least {SEEDS_NEEDED} run seeds",
            hint=f"leave the option out for {SEEDS}",
        )
    if any(drive.real for drive in wanted.drives):
        raise InputError(
            "a real disk is not the same twice: there is nothing to prove, and after one run it holds data",
            hint=f"agelab run {name} --seeds {SEEDS} ..., then agelab compare latest latest: medians and spreads",
        )
    seeded = execute(wanted)
    first = {**wanted.command, "words": {**words, "seeds": str(seeds[0])}}
    again = execute(replace(wanted, run_seeds=seeds[:1], command=first))
    calibrated = [
        (group, results.Pair(group.cells[seeds[0]], other.cells[seeds[0]]))
        for group, other in zip(results.groups(seeded), results.groups(again), strict=True)
    ]
    if as_json:
        print_json(_json(seeded, again, calibrated))
    else:
        _print(seeded, again, calibrated, everything)
    return 0 if all(_good(group, proof) for group, proof in calibrated) else 1


calibrate.params = [
    click.Option(
        ["--seeds"], default=SEEDS, show_default=True, help="Run seeds, comma-separated: five or more."
    )
    if parameter.name == "seeds"
    else parameter
    for parameter in calibrate.params
]


def _good(group: "Group", proof: "Pair") -> bool:
    """Whether every cell is ok, and the first one the same twice where that can be asked."""
    ended = all(ran.ok for ran in [*group.cells.values(), proof.right])
    return ended and ((proof.equal and proof.compared > 0) or not proof.virtual)


def _print(
    seeded: "RunDirectory",
    again: "RunDirectory",
    calibrated: "Sequence[tuple[Group, Pair]]",
    everything: bool,
) -> None:
    from agelab.cli.floors import percent, print_series
    from agelab.stats.order import coverage, rank
    from agelab.stats.series import series

    click.echo(f"\n{described(seeded.plan())}")
    for group, proof in calibrated:
        seed = proof.left.cell.seed
        click.echo(f"\n{group.variant}, {group.layout}: {seeds_of(group.cells)}, and seed {seed} once more")
        _print_proof(proof)
        for ran in [*group.cells.values(), proof.right]:
            if not ran.ok:
                status = f"{ran.end.status}: {ran.end.reason}" if ran.end else "no end record"
                click.echo(f"  not ok, in no figure below: seed {ran.cell.seed} of {ran.run}: {status}")
        if n := len(group.counted):
            covers = percent(coverage(n, rank(n)))
            click.echo(
                f"  from .. to holds the median over all run seeds with {covers}; floor: largest less smallest"
            )
            print_series([*series(group.counted).values()], everything)
    click.echo(
        f"\nagainst another run: agelab compare {seeded.name} <run>; a difference counts above both floors"
    )
    click.echo(f"the second execution of seed {calibrated[0][1].left.cell.seed}: {again.name}")


def _print_proof(proof: "Pair") -> None:
    """What A/A has shown."""
    differ = f"{len(proof.samples)} of {proof.compared} samples differ"
    if proof.unfinished:
        click.echo(f"  no A/A: not finished: {' and '.join(proof.unfinished)}")
    elif not proof.compared:
        click.echo("  no A/A: nothing was measured")
    elif proof.inputs:
        click.echo(f"  A/A FAILED: the second execution had other inputs; {differ}")
        for line in input_lines(proof.inputs, every=True):
            click.echo(f"  input {line}")
    elif not proof.virtual:
        click.echo(f"  no A/A: real time is not the same twice ({differ})")
    elif proof.broken:
        click.echo(f"  A/A FAILED: EQUAL INPUTS AND DIFFERENT SAMPLES: {differ}; first:")
        print_samples(proof, SHOWN)
        click.echo("  that breaks agelab's promise; please report it")
    else:
        digest = proof.left.end.digest if proof.left.end else None
        click.echo(f"  A/A: the same twice, to the last digit: {proof.compared} samples, all differences 0")
        click.echo(f"  digest {digest}")


def _json(
    seeded: "RunDirectory", again: "RunDirectory", calibrated: "Sequence[tuple[Group, Pair]]"
) -> dict[str, Any]:
    from agelab.cli.floors import series_json
    from agelab.stats.series import series

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
                    "proven": proof.virtual and proof.equal and proof.compared > 0,
                    "inputs_key": proof.left.end.inputs_key if proof.left.end else None,
                    "digests": [ran.end.digest if ran.end else None for ran in (proof.left, proof.right)],
                    "compared": proof.compared,
                    "inputs": differences_json(proof.inputs),
                    "samples": differences_json(proof.samples),
                    "endings": differences_json(proof.endings),
                },
                "floors": [series_json(one) for one in series(group.counted).values()],
            }
            for group, proof in calibrated
        ],
    }
