"""Write run directories without a guest: the one builder of the tests that read results.

``begin`` writes a plan, ``end`` what a cell measured and how it ended, both through the real RunDirectory. A model has
defaults for every field; any of them can be given by its name.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.result import Cell, End, RunPlan, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import METRICS

EVALUATED = "sha256:" + "e" * 64
"""Stands for the code that made the samples."""


def cell(variant: str = "ext4", seed: int = 1, **fields: Any) -> Cell:
    """Describe a cell; its filesystem is named before the hyphen of its variant."""
    usual = {"filesystem": variant.partition("-")[0], "layout": "single", "kernel": "6.1", "machine": "m"}
    more = {"drives": ("model:none",), "defaults": "period"}
    return Cell.model_validate({"variant": variant, "seed": seed, **usual, **more, **fields})


def cells(
    variants: Iterable[str], seeds: Sequence[int] = (1,), corpora: Sequence[int] = (1,), **fields: Any
) -> tuple[Cell, ...]:
    """Describe the cells of each variant with each corpus seed and each run seed."""
    return tuple(
        cell(variant, seed, corpus_seed=corpus, **fields)
        for variant in variants
        for corpus in corpora
        for seed in seeds
    )


def plan(cells: Sequence[Cell] = (), **fields: Any) -> RunPlan:
    """Describe a run of these cells."""
    usual = {"run": "r", "scenario": "aging", "scale": "quick", "clock": "virtual", "provenance": {}}
    return RunPlan.model_validate({**usual, "cells": tuple(cells), **fields})


def begin(home: Path, cells: Sequence[Cell], *, label: str | None = None, **fields: Any) -> RunDirectory:
    """Create a run that has its plan and nothing else; ``label`` names it instead of its scenario."""
    described = plan(cells, **fields)
    run = RunDirectory.create(home / "runs", label or described.scenario)
    run.write_plan(described.model_copy(update={"run": run.name}))
    return run


def sample(
    step: str = "copy",
    value: float | None = 1.5,
    metric: str = "elapsed",
    repetition: int = 1,
    *,
    why: str = "no way to know",
) -> Sample:
    """Describe a sample; ``why`` is told of one without a value."""
    unit = METRICS[metric].unit if metric in METRICS else "s"
    missing = why if value is None else None
    return Sample(step=step, metric=metric, value=value, unit=unit, repetition=repetition, not_measured=missing)


def end(
    run: RunDirectory,
    number: int = 0,
    samples: Iterable[Sample] = (),
    *,
    status: Status | None = Status.OK,
    inputs: Mapping[str, Any] | None = None,
    **fields: Any,
) -> None:
    """Write a cell's inputs, its samples and its end record with their hashes; no end record without a status."""
    found = list(samples)
    for one in found:
        run.append(number, one)
    known = {"host_seconds": 1.0}
    if inputs is not None:
        run.write_inputs(number, dict(inputs))
        fields = {"inputs_key": inputs_key(inputs), **fields}
    if status is Status.OK:
        fields = {"digest": digest(status, found, fields.get("maps", {})), "evaluated_by": EVALUATED, **fields}
    if status:
        run.finish(number, End.model_validate({"status": status, **known, **fields}))
