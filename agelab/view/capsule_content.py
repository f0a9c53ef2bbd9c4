"""Describe a capsule as text and as JSON."""

from typing import Any

from agelab.capsule.read import Capsule
from agelab.model.result import Cell

SCHEMA = 1


def cell_name(cell: Cell) -> str:
    """Return the name that tells a cell from the others."""
    return f"{cell.label}, seed {cell.seed}"


def capsule_lines(capsule: Capsule) -> list[str]:
    """Describe a capsule in lines of text."""
    plan, made, kernel = capsule.request.plan, capsule.run_manifest, capsule.kernel
    guest = len(made.guest.root) + 1
    built = {"the drive's module": made.drive, "the guest's programs": made.tools}
    said = [
        f"capsule of {capsule.run}: consistent",
        f"  scenario   {plan.scenario}, scale {plan.scale}, {len(capsule.scenario.encode())} bytes of TOML",
        f"  kernel     {kernel.spec} = {kernel.release} ({kernel.version})",
        f"  image      {plan.provenance.get('image_content')}, of {guest} packages",
        *(f"  built with {len(one.packages)} packages: {what}" for what, one in built.items() if one),
        *(
            f"  data       {name or 'corpus'}: {source.description}, sha256 {source.sha256}"
            for name, source in made.sources.items()
        ),
        f"  profiles   {', '.join(_profiles(capsule))}",
        f"  made by    agelab {made.agelab}, harness {plan.provenance.get('harness')}",
        f"  on         {plan.provenance.get('qemu')}",
        f"  carries    {_carries(capsule)}",
    ]
    for number, ran in enumerate(capsule.cells):
        assert ran.end is not None
        said.append(f"{number}  {cell_name(ran.cell)}: {ran.end.status}, {len(ran.samples)} samples")
        said += [f"     {name:<10} {value}" for name, value in _keys(capsule, number).items() if value]
    return said


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


def _profiles(capsule: Capsule) -> list[str]:
    kept = capsule.profiles
    return [*kept.filesystems, *kept.machines, *kept.drives]


def _carries(capsule: Capsule) -> str:
    if capsule.artefacts is None:
        return "no artefacts: a replay rebuilds image and kernel"
    return "image, kernel, programs and data: a replay needs no mirror"
