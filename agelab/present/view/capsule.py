"""Capsules and their replays on a terminal and as JSON."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agelab.base.gathered import gathered
from agelab.base.sanitize import escape_controls
from agelab.base.verbs import as_called
from agelab.capsule.verify import Capsule
from agelab.present.report.blocks import Block, Column, Line, Table
from agelab.present.view.cell_names import count_reproduced, name_seeds
from agelab.present.view.comparison import input_lines
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
    plan, manifest, kernel, profiles = (capsule.request.plan, capsule.run_manifest, capsule.kernel, capsule.profiles)
    guest = len(manifest.guest.root) + 1
    built = {"the drive's module": manifest.drive, "the guest's programs": manifest.tools}
    lines = [
        f"capsule of {capsule.run}: consistent",
        f"  scenario   {plan.scenario}, scale {plan.scale}, {len(capsule.scenario.encode())} bytes of TOML",
        f"  kernel     {kernel.spec} = {kernel.release} ({kernel.version})",
        f"  image      {plan.provenance.get('image_content')}, of {guest} packages",
        *(f"  built with {len(build.packages)} packages: {what}" for what, build in built.items() if build),
        *(
            f"  data       {_data_name(name)}: {source.description}, sha256 {source.sha256}"
            for name, source in manifest.sources.items()
        ),
        f"  profiles   {', '.join([*profiles.filesystems, *profiles.machines, *profiles.drives])}",
        f"  made by    agelab {manifest.agelab}, harness {plan.provenance.get('harness')}",
        f"  on         {plan.provenance.get('qemu')}",
        f"  carries    {_carries(capsule)}",
    ]
    for number, ran in enumerate(capsule.cells):
        assert ran.end is not None
        lines.append(f"{number}  {cell_name(ran.cell, plan.cells)}: {ran.end.status}, {len(ran.samples)} samples")
        lines += [f"     {name:<10} {value}" for name, value in _keys(capsule, number).items() if value]
    return lines


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
        "kernel": capsule.kernel,
        "made_of": capsule.run_manifest.model_dump(mode="json", exclude={"resolutions"}),
        "scenario": capsule.scenario,
        "cells": [
            {**ran.cell.model_dump(mode="json"), **_keys(capsule, number), "samples": len(ran.samples)}
            for number, ran in enumerate(capsule.cells)
        ],
        "members": {name: member.model_dump() for name, member in capsule.members.items()},
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
    every = [cell.ran.cell for cell in done.cells]
    for cell in done.cells:
        yield _escaped(f"{cell.number}  {cell_name(cell.ran.cell, every)}: {cell.outcome}: {cell.why}")
        for line in input_lines(cell.inputs, False):
            yield _escaped(f"     input {line}")
        for row in cell.samples[:SHOWN]:
            yield _escaped(f"     sample {row.place}: {row.left} | {row.right}")
        if len(cell.samples) > SHOWN:
            yield _escaped(f"     and {len(cell.samples) - SHOWN} more samples")
    if done.run:
        yield Line(as_called(f"the replay: agelab show {done.run.name}"))


def replays_blocks(done: "Sequence[ReplayedCapsule]") -> Iterator[Block]:
    """Yield what reproduced of each capsule, and of all."""
    heads = [Column("capsule"), *(Column(f" {name}", "right") for name in COUNTS), Column("")]
    rows = [
        [escape_controls(replayed.path.name, kept=""), *_counts(replayed), _not_reproduced(replayed)]
        for replayed in done
    ]
    yield Line("")
    yield Table(heads, rows)
    cells = [cell for replayed in done for cell in replayed.cells]
    same = sum(cell.outcome == "identical" for cell in cells)
    yield Line("")
    yield Line(count_reproduced(same, len(cells), sum(replayed.reproduced for replayed in done), len(done)))
    if runs := [replayed.run.name for replayed in done if replayed.run]:
        yield Line(as_called(f"the replays: agelab report {' '.join(runs)} -o replayed.html"))


def _counts(replayed: "ReplayedCapsule") -> list[str]:
    if not replayed.cells:
        return [""] * len(COUNTS)
    numbers = (
        len(replayed.cells),
        sum(cell.same_key for cell in replayed.cells),
        sum(cell.same_digest for cell in replayed.cells),
        sum(cell.outcome == "identical" for cell in replayed.cells),
    )
    return [f" {number}" for number in numbers]


def _not_reproduced(replayed: "ReplayedCapsule") -> str:
    """Say which cells did not reproduce, and why; cells with one reason together."""
    if replayed.problem:
        return "not a valid capsule"
    reasons = gathered(
        (f"{cell.outcome}: {cell.why}", str(cell.number)) for cell in replayed.cells if cell.outcome != "identical"
    )
    return escape_controls("; ".join(f"{', '.join(which)} {why}" for why, which in reasons.items()), kept="")


def replays_json(done: "Sequence[ReplayedCapsule]") -> dict[str, Any]:
    """Return the verdicts on each capsule of a directory."""
    every = [
        {
            "file": str(replayed.path),
            "problem": replayed.problem or None,
            "reproduced": replayed.reproduced,
            **replay_json(replayed),
        }
        for replayed in done
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
                "cell": cell.number,
                **cell.ran.cell.model_dump(include={"variant", "layout", "seed", "corpus_seed"}),
                "verdict": cell.outcome,
                "why": cell.why,
                "inputs": cell.inputs,
                "samples": cell.samples,
            }
            for cell in done.cells
        ],
    }


def _escaped(line: str) -> Line:
    """Return text from a file; its control characters are escaped, so that they cannot move the terminal."""
    return Line(escape_controls(line, kept=""))
