"""Capsules and their replays on a terminal and as JSON."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agelab.base.sanitize import escape_controls
from agelab.base.verbs import as_called
from agelab.capsule.read import Capsule
from agelab.present.report.blocks import Block, Column, Line, Table
from agelab.present.view.cell_names import count_reproduced, name_seeds
from agelab.present.view.comparison import differences_json, input_lines
from agelab.results.result import Cell

if TYPE_CHECKING:
    from agelab.capsule.replay import ReplayedCapsule

SCHEMA = 1
SHOWN = 5
"""Differing samples to print of a cell."""
COUNTS = ("cells", "same key", "same digest", "reproduced")


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


def capsule_blocks(capsule: Capsule) -> Iterator[Block]:
    for line in capsule_lines(capsule):
        yield _escaped(line)


def capsule_json(capsule: Capsule) -> dict[str, Any]:
    """Describe a capsule as JSON, with every package."""
    return {
        "schema": SCHEMA,
        "run": capsule.run,
        "carries": _carries(capsule),
        "plan": capsule.request.plan.model_dump(mode="json", exclude={"command"}),
        "asked": capsule.request.options,
        "kernel": capsule.kernel.model_dump(mode="json"),
        "made_of": capsule.run_manifest.model_dump(mode="json", exclude={"resolutions"}),
        "scenario": capsule.scenario,
        "cells": [
            {**ran.cell.model_dump(mode="json"), **_keys(capsule, number), "samples": len(ran.samples)}
            for number, ran in enumerate(capsule.cells)
        ],
        "members": {name: one.model_dump() for name, one in capsule.members.items()},
    }


def _keys(capsule: Capsule, number: int) -> dict[str, Any]:
    end = capsule.cells[number].end
    assert end is not None
    return {"inputs_key": end.inputs_key, "digest": end.digest, "reason": end.reason}


def _carries(capsule: Capsule) -> str:
    if capsule.artefacts is None:
        return "no artefacts: a replay rebuilds image and kernel"
    return "image, kernel, programs and data: a replay needs no mirror"


def replay_blocks(done: "ReplayedCapsule") -> Iterator[Block]:
    """Yield each cell's verdict, and where it differs from the capsule's."""
    if done.problem:
        yield _escaped(done.problem)
    every = [one.ran.cell for one in done.cells]
    for one in done.cells:
        yield _escaped(f"{one.number}  {cell_name(one.ran.cell, every)}: {one.outcome}: {one.why}")
        for line in input_lines(one.inputs, False):
            yield _escaped(f"     input {line}")
        for row in one.samples[:SHOWN]:
            yield _escaped(f"     sample {row.place}: {row.left} | {row.right}")
        if len(one.samples) > SHOWN:
            yield _escaped(f"     and {len(one.samples) - SHOWN} more samples")
    if done.run:
        yield Line(as_called(f"the replay: agelab show {done.run.name}"))


def replays_blocks(done: "Sequence[ReplayedCapsule]") -> Iterator[Block]:
    """Yield what reproduced of each capsule, and of all."""
    heads = [Column("capsule"), *(Column(f" {name}", "right") for name in COUNTS), Column("")]
    rows = [[escape_controls(one.path.name, kept=""), *_counts(one), _not_reproduced(one)] for one in done]
    yield Line("")
    yield Table(heads, rows)
    cells = [cell for one in done for cell in one.cells]
    same = sum(cell.outcome == "identical" for cell in cells)
    yield Line("")
    yield Line(count_reproduced(same, len(cells), sum(one.reproduced for one in done), len(done)))
    if runs := [one.run.name for one in done if one.run]:
        yield Line(as_called(f"the replays: agelab report {' '.join(runs)} -o replayed.html"))


def _counts(one: "ReplayedCapsule") -> list[str]:
    if not one.cells:
        return [""] * len(COUNTS)
    numbers = (
        len(one.cells),
        sum(cell.same_key for cell in one.cells),
        sum(cell.same_digest for cell in one.cells),
        sum(cell.outcome == "identical" for cell in one.cells),
    )
    return [f" {number}" for number in numbers]


def _not_reproduced(one: "ReplayedCapsule") -> str:
    """Say which cells did not reproduce, and why; cells with one reason together."""
    if one.problem:
        return "not a valid capsule"
    reasons: dict[str, list[str]] = {}
    for cell in one.cells:
        if cell.outcome != "identical":
            reasons.setdefault(f"{cell.outcome}: {cell.why}", []).append(str(cell.number))
    return escape_controls("; ".join(f"{', '.join(which)} {why}" for why, which in reasons.items()), kept="")


def replays_json(done: "Sequence[ReplayedCapsule]") -> dict[str, Any]:
    """Return the verdicts on each capsule of a directory."""
    every = [
        {
            "file": str(one.path),
            "problem": one.problem or None,
            "reproduced": one.reproduced,
            **replay_json(one),
        }
        for one in done
    ]
    return {"schema": SCHEMA, "capsules": every}


def replay_json(done: "ReplayedCapsule") -> dict[str, Any]:
    """Return each cell's verdict, and all places in which it differs."""
    return {
        "schema": SCHEMA,
        "capsule": done.capsule.run if done.capsule else None,
        "run": done.run.name if done.run else None,
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
            for one in done.cells
        ],
    }


def _escaped(line: str) -> Line:
    """Return text from a file; its control characters are escaped, so that they cannot move the terminal."""
    return Line(escape_controls(line, kept=""))
