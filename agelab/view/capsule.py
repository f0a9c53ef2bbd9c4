"""Capsules and their replays on a terminal and as JSON."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from agelab.capsule.read import Capsule
from agelab.model.result import Cell
from agelab.model.sanitize import escape_controls
from agelab.results.run_directory import RunDirectory
from agelab.view.cell_names import name_seeds
from agelab.view.input_diff import differences_json, input_lines

if TYPE_CHECKING:
    from agelab.capsule.replay import ReplayedCell

SCHEMA = 1
SHOWN = 5
"""Differing samples to print of a cell."""


def cell_name(cell: Cell, every: Iterable[Cell]) -> str:
    """Return the name that tells a cell from the others."""
    return f"{cell.label}, {name_seeds(cell, every)}"


def capsule_lines(capsule: Capsule) -> list[str]:
    plan, made, kernel, profiles = (
        capsule.request.plan,
        capsule.run_manifest,
        capsule.kernel,
        capsule.profiles,
    )
    guest = len(made.guest.root) + 1
    built = {"the drive's module": made.drive, "the guest's programs": made.tools}
    said = [
        f"capsule of {capsule.run}: consistent",
        f"  scenario   {plan.scenario}, scale {plan.scale}, {len(capsule.scenario.encode())} bytes of TOML",
        f"  kernel     {kernel.spec} = {kernel.release} ({kernel.version})",
        f"  image      {plan.provenance.get('image_content')}, of {guest} packages",
        *(f"  built with {len(one.packages)} packages: {what}" for what, one in built.items() if one),
        *(
            f"  data       {_data_name(name)}: {source.description}, sha256 {source.sha256}"
            for name, source in made.sources.items()
        ),
        f"  profiles   {', '.join([*profiles.filesystems, *profiles.machines, *profiles.drives])}",
        f"  made by    agelab {made.agelab}, harness {plan.provenance.get('harness')}",
        f"  on         {plan.provenance.get('qemu')}",
        f"  carries    {_carries(capsule)}",
    ]
    for number, ran in enumerate(capsule.cells):
        assert ran.end is not None
        said.append(
            f"{number}  {cell_name(ran.cell, plan.cells)}: {ran.end.status}, {len(ran.samples)} samples"
        )
        said += [f"     {name:<10} {value}" for name, value in _keys(capsule, number).items() if value]
    return said


def _data_name(name: str) -> str:
    """Return the history's name, or ``corpus``; ``corpus@2`` is that of corpus seed 2."""
    return f"corpus{name}" if name[:1] in ("", "@") else name


def print_capsule(capsule: Capsule) -> None:
    for line in capsule_lines(capsule):
        print_escaped(line)


def capsule_json(capsule: Capsule) -> dict[str, Any]:
    """Describe a capsule as JSON, with every package."""
    return {
        "schema": SCHEMA,
        "run": capsule.run,
        "carries": _carries(capsule),
        "plan": capsule.request.plan.model_dump(mode="json", exclude={"command"}),
        "asked": {**capsule.request.words, **capsule.request.more},
        "kernel": capsule.kernel.model_dump(mode="json"),
        "made_of": capsule.run_manifest.model_dump(mode="json"),
        "scenario": capsule.scenario,
        "cells": [
            {**ran.cell.model_dump(mode="json"), **_keys(capsule, number), "samples": len(ran.samples)}
            for number, ran in enumerate(capsule.cells)
        ],
        "members": {name: one.model_dump() for name, one in capsule.manifest.members.items()},
    }


def _keys(capsule: Capsule, number: int) -> dict[str, Any]:
    end = capsule.cells[number].end
    assert end is not None
    return {"inputs_key": end.inputs_key, "digest": end.digest, "reason": end.reason}


def _carries(capsule: Capsule) -> str:
    if capsule.artefacts is None:
        return "no artefacts: a replay rebuilds image and kernel"
    return "image, kernel, programs and data: a replay needs no mirror"


def print_replay(run: RunDirectory | None, judged: "Sequence[ReplayedCell]") -> None:
    """Print each cell's verdict, and where it differs from the capsule's."""
    every = [one.ran.cell for one in judged]
    for one in judged:
        print_escaped(f"{one.number}  {cell_name(one.ran.cell, every)}: {one.outcome}: {one.why}")
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
                "corpus_seed": one.ran.cell.corpus_seed,
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
