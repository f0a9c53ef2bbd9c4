"""Results of ``agelab calibrate``: the spread in the virtual clock, the floor of a host in the wall clock."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from agelab.analysis.calibration import CALIBRATE, Calibration, HostRecord, MeasuredHost, StepFloor, aa_coverage
from agelab.analysis.cell_diff import CellPair
from agelab.analysis.cells import CellResult, SeedGroup
from agelab.base.gathered import gathered
from agelab.base.verbs import as_called
from agelab.present.report.blocks import Block, Line, Table
from agelab.present.view.comparison import cells_json, input_lines, samples_blocks
from agelab.present.view.ratio_table import by_metric, heads, metrics_in_order, series_blocks, series_json
from agelab.present.view.run_tables import describe_run
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import Seeds, seeds_text
from agelab.stats.formatting import json_number
from agelab.stats.series import coverage, interval_rank

SCHEMA = 3
SHOWN = 5
"""Differing samples to print of an A/A that failed."""
WIDE = Fraction(1, 2)
"""A floor of times above which the user is told to quieten the host."""
WIDTH = 24
"""Characters of the place of a floor."""


def floors_blocks(
    seeded: RunDirectory, again: RunDirectory, calibrated: Sequence[tuple[SeedGroup, CellPair]], everything: bool
) -> Iterator[Block]:
    yield Line(f"\n{describe_run(seeded.plan())}")
    for group, proof in calibrated:
        once = seeds_text([proof.left.seeds])
        yield Line(f"\n{group.name}: {seeds_text(group.cells)}, and {once} once more")
        yield from _proof_blocks(proof)
        for ran in [*group.cells.values(), proof.right]:
            if not ran.ok:
                yield Line(f"  not ok, in no figure below: {seeds_text([ran.seeds])} of {ran.run}: {ran.ended}")
        if n := len(group.counted):
            covers = float(100 * coverage(n, interval_rank(n)))
            yield Line(
                f"  from .. to holds the median over all run seeds with {covers:.4g} %; spread: largest less smallest"
            )
            repeated = [series for series in group.series.values() if everything and series.repetitions > 1]
            yield from series_blocks([*group.steps.values(), *repeated], everything)
    yield Line(as_called(f"\nagainst another run: agelab compare {seeded.name} <run>"))
    yield Line(f"the second execution of {seeds_text([calibrated[0][1].left.seeds])}: {again.name}")


def _proof_blocks(proof: CellPair) -> Iterator[Block]:
    """Yield the result of A/A."""
    differ = f"{len(proof.samples)} of {proof.compared} samples differ"
    if proof.unfinished:
        yield Line(f"  no A/A: not finished: {' and '.join(proof.unfinished)}")
    elif not proof.compared:
        yield Line("  no A/A: nothing was measured")
    elif proof.inputs:
        yield Line(f"  A/A FAILED: the second execution had other inputs; {differ}")
        for line in input_lines(proof.inputs, every=True):
            yield Line(f"  input {line}")
    elif proof.broken:
        yield Line(f"  A/A FAILED: EQUAL INPUTS AND DIFFERENT SAMPLES: {differ}; first:")
        yield from samples_blocks(proof, SHOWN)
        yield Line("  that breaks agelab's promise; please report it")
    else:
        digest = proof.left.end.digest if proof.left.end else None
        yield Line(f"  A/A: the same twice, to the last digit: {proof.compared} samples, all differences 0")
        yield Line(f"  digest {digest}")


def floors_json(
    seeded: RunDirectory, again: RunDirectory, calibrated: Sequence[tuple[SeedGroup, CellPair]]
) -> dict[str, Any]:
    return {
        **_runs_json(seeded, again),
        "variants": [
            {
                "variant": group.variant,
                "layout": group.layout,
                "cells": cells_json(group),
                "same_twice": {
                    "seed": proof.left.cell.seed,
                    "proven": proof.proven,
                    "inputs_key": proof.left.end.inputs_key if proof.left.end else None,
                    "digests": [ran.end.digest if ran.end else None for ran in (proof.left, proof.right)],
                    "compared": proof.compared,
                    "inputs": proof.inputs,
                    "samples": proof.samples,
                    "endings": proof.endings,
                },
                "series": [series_json(series) for series in group.series.values()],
            }
            for group, proof in calibrated
        ],
    }


def _runs_json(seeded: RunDirectory, again: RunDirectory) -> dict[str, Any]:
    plan = seeded.plan()
    asked = plan.model_dump(include={"scenario", "scale", "clock"})
    return {"schema": SCHEMA, "run": seeded.name, "again": again.name, **asked}


def calibrated_blocks(
    seeded: RunDirectory,
    pairs: Sequence[tuple[SeedGroup, SeedGroup]],
    calibrated: tuple[MeasuredHost, Calibration] | None,
    path: Path | None,
    everything: bool,
) -> Iterator[Block]:
    """Yield the result of A/A in the wall clock: the cells that count in no figure, then what was recorded where."""
    yield Line(f"\n{describe_run(seeded.plan())}")
    for ran in _cells_of(pairs):
        if not ran.ok:
            which = f"{ran.cell.variant}, {seeds_text([ran.seeds])} of {ran.run}"
            yield Line(f"  not ok, in no figure below: {which}: {ran.ended}")
    if calibrated:
        yield from host_blocks(calibrated[0])
        yield from calibration_blocks(calibrated[1], everything)
        yield Line(as_called(f"recorded in {path}; agelab calibrate --show"))
    else:
        yield Line("nothing is recorded: no five run seeds measured anything both times")


def _cells_of(pairs: Sequence[tuple[SeedGroup, SeedGroup]]) -> Iterator[CellResult]:
    return (ran for pair in pairs for group in pair for ran in group.cells.values())


def calibration_blocks(calibration: Calibration, everything: bool) -> Iterator[Block]:
    """Yield a table of the steps for each metric, and what it means."""
    yield Line(
        f"\n{calibration.scenario}, scale {calibration.scale}, {calibration.kernel}; {'; '.join(calibration.variants)}"
    )
    yield Line(f"  {calibration.conditions}; {seeds_text(Seeds(1, seed) for seed in calibration.seeds)}")
    yield Line(f"  A {calibration.runs[0]}, A' {calibration.runs[1]}, {calibration.day}")
    floors = gathered((floor.metric, floor) for floor in calibration.floors)
    named = metrics_in_order(floors, everything)
    rows = by_metric((metric, _cells(floor)) for metric in named for floor in floors[metric])
    columns = heads("  step", "places", "A' - A, %", "floor, %", last=" widest in")
    yield Table(columns, rows)
    n = min(len(side) for floor in calibration.floors for side in (floor.widest.first, floor.widest.second))
    covers = f"{int(1000 * aa_coverage(2 * n, n)) / 10:g} %"
    yield Line("  A' - A: of the medians, where they lie farthest apart. floor: largest less")
    yield Line("  smallest of A and A' together, where that is widest. Both in % of the median.")
    yield Line(f"  Two later medians of {n} seeds in one place are no farther apart, with {covers}")
    yield Line("  at least, while the host stays what it was")
    if any(floor.metric == "elapsed" and floor.share > WIDE for floor in calibration.floors):
        yield Line(f"  A floor above {float(100 * WIDE):g} % hides most differences: end other work, take KVM where it")
        yield Line("  is to be had, and calibrate again")


def _cells(floor: StepFloor) -> tuple[str, ...]:
    seen = floor.widest
    repetition = f" {seen.repetition}" if seen.repetition > 1 else ""
    where = f"{seen.variant}{repetition}"
    where = where if len(where) <= WIDTH else f"{where[: WIDTH - 3]}..."
    shares = (f"{float(100 * share):.2f}" for share in (floor.farthest.shift or 0, floor.share))
    return (f"  {floor.step}", str(floor.places), *shares, f" {where}")


def host_blocks(host: MeasuredHost) -> Iterator[Block]:
    """Yield the host and how its guests run."""
    how = "KVM" if host.accelerator == "kvm" else "EMULATED"
    yield Line(f"{host.processor or 'a host that its run does not name'}; {how}", bold=True)
    for line in (host.kernel, host.qemu):
        yield Line(f"  {line}")


def records_blocks(records: Sequence[HostRecord], everything: bool) -> Iterator[Block]:
    if not records:
        yield Line(as_called(f"no A/A of any host is recorded: {CALIBRATE}"))
    for number, record in enumerate(records):
        if number:
            yield Line("")
        yield from host_blocks(record.host)
        for calibration in record.calibrations:
            yield from calibration_blocks(calibration, everything)


def records_json(records: Sequence[HostRecord]) -> dict[str, Any]:
    hosts = [
        {"host": record.host, "calibrations": [calibration_json(calibration) for calibration in record.calibrations]}
        for record in records
    ]
    return {"schema": SCHEMA, "hosts": hosts}


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration, with each floor and each difference of medians relative to the median."""
    floors = [
        {
            **floor.model_dump(mode="json"),
            "floor_relative": json_number(floor.share),
            "apart_relative": json_number(floor.farthest.shift or Fraction(0)),
        }
        for floor in calibration.floors
    ]
    return {**calibration.model_dump(mode="json", exclude={"floors"}), "floors": floors}


def host_json(
    seeded: RunDirectory,
    again: RunDirectory,
    pairs: Sequence[tuple[SeedGroup, SeedGroup]],
    calibrated: tuple[MeasuredHost, Calibration] | None,
) -> dict[str, Any]:
    """Return the result of A/A in the wall clock; ``recorded`` is null where there is none."""
    cells = [
        {"run": ran.run, **ran.cell.model_dump(include={"variant", "layout", "seed"}), "status": ran.end_status}
        for ran in _cells_of(pairs)
    ]
    return {
        **_runs_json(seeded, again),
        "emulated": seeded.plan().emulated,
        "cells": cells,
        "recorded": calibrated and {"host": calibrated[0], **calibration_json(calibrated[1])},
    }
