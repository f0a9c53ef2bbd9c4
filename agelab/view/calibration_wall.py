"""The wall clock's part of ``agelab calibrate``: floors from a run made twice on this host."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click

from agelab.stats.series import seeds_text
from agelab.view.series_table import by_metric, heads, percent
from agelab.view.terminal import open_console, print_table

if TYPE_CHECKING:
    from agelab.analysis.calibration import Calibration, HostRecord, KindFloor, MeasuredHost
    from agelab.analysis.cells import SeedGroup
    from agelab.results.run_directory import RunDirectory

SCHEMA = 1
WIDE = Fraction(1, 2)
"""A floor of times above which the user is told to quieten the host."""
WIDTH = 24
"""Characters of the place of a floor."""


def calibration(
    seeded: "RunDirectory", again: "RunDirectory", pairs: "Sequence[tuple[SeedGroup, SeedGroup]]"
) -> "tuple[MeasuredHost, Calibration] | None":
    """Calibrate the host from A and A'; None where no five run seeds measured anything both times."""
    from agelab.analysis import calibration
    from agelab.analysis.kind_floors import kind_floors

    plan = seeded.plan()
    floors = kind_floors(pairs)
    if not floors:
        return None
    found = calibration.Calibration(
        day=datetime.now(UTC).date().isoformat(),
        agelab=version("agelab"),
        runs=(seeded.name, again.name),
        scenario=plan.scenario,
        scale=plan.scale,
        kernel=plan.cells[0].kernel,
        variants=tuple(dict.fromkeys(cell.label for cell in plan.cells)),
        seeds=tuple(dict.fromkeys(cell.seed for cell in plan.cells)),
        conditions=calibration.Conditions.of(plan),
        floors=floors,
    )
    return calibration.MeasuredHost.of(plan), found


def print_cells(pairs: "Sequence[tuple[SeedGroup, SeedGroup]]") -> None:
    """Print the cells that count in no figure, and why."""
    for ran in (ran for pair in pairs for group in pair for ran in group.cells.values()):
        if not ran.ok:
            which = f"{ran.cell.variant}, seed {ran.cell.seed} of {ran.run}"
            click.echo(f"  not ok, in no figure below: {which}: {ran.ended}")


def print_calibration(one: "Calibration", everything: bool) -> None:
    """Print a table of the kinds of steps for each metric, and what it means."""
    from agelab.stats.noise_floor import aa_coverage

    click.echo(f"\n{one.scenario}, scale {one.scale}, {one.kernel}; {'; '.join(one.variants)}")
    click.echo(f"  {one.conditions}; {seeds_text(one.seeds)}")
    click.echo(f"  A {one.runs[0]}, A' {one.runs[1]}, {one.day}")
    rows = by_metric(
        (metric, _cells(floor)) for metric, floors in _by_metric(one.floors, everything) for floor in floors
    )
    columns = heads("  kind", "places", "A' - A, %", "floor, %", last=" widest in")
    print_table(open_console(), columns, rows)
    n = min(len(side) for floor in one.floors for side in (floor.widest.first, floor.widest.second))
    covers = percent(Fraction(int(1000 * aa_coverage(2 * n, n)), 1000))
    click.echo("  A' - A: of the medians, where they lie farthest apart. floor: largest less")
    click.echo("  smallest of A and A' together, where that is widest. Both in % of the median.")
    click.echo(f"  Two later medians of {n} seeds in one place are no farther apart, with {covers}")
    click.echo("  at least, while the host stays what it was")
    if any(floor.metric == "elapsed" and floor.share > WIDE for floor in one.floors):
        click.echo(
            f"  A floor above {percent(WIDE)} hides most differences: end other work, take KVM where it"
        )
        click.echo("  is to be had, and calibrate again")


def _by_metric(floors: "Iterable[KindFloor]", everything: bool) -> "list[tuple[str, list[KindFloor]]]":
    """List the floors by metric: the headlines, or all."""
    from agelab.view.series_table import HEADLINES

    found: dict[str, list[KindFloor]] = {}
    for floor in floors:
        found.setdefault(floor.metric, []).append(floor)
    headlines = [name for name in HEADLINES if name in found]
    names = dict.fromkeys([*headlines, *found]) if everything else headlines
    return [(name, found[name]) for name in names]


def _cells(floor: "KindFloor") -> tuple[str, str, str, str, str]:
    seen = floor.widest
    repetition = f" {seen.repetition}" if seen.repetition > 1 else ""
    where = f"{seen.variant} {seen.step}{repetition}"
    where = where if len(where) <= WIDTH else f"{where[: WIDTH - 3]}..."
    apart = floor.farthest.shift or Fraction(0)
    return (f"  {floor.kind}", str(floor.places), _percent(apart), _percent(floor.share), f" {where}")


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.2f}"


def print_host(host: "MeasuredHost") -> None:
    """Print the host and how its guests run."""
    how = "KVM" if host.accelerator == "kvm" else "EMULATED"
    click.secho(f"{host.processor or 'a host that its run does not name'}; {how}", bold=True)
    for line in (host.kernel, host.qemu):
        click.echo(f"  {line}")


def print_records(records: "Sequence[HostRecord]", everything: bool) -> None:
    """Print all calibrations of the store."""
    from agelab.analysis.calibration import CALIBRATE

    if not records:
        click.echo(f"no A/A of any host is recorded: {CALIBRATE}")
    for number, record in enumerate(records):
        click.echo("\n" * bool(number), nl=False)
        print_host(record.host)
        for one in record.calibrations:
            print_calibration(one, everything)


def records_json(records: "Sequence[HostRecord]") -> list[dict[str, Any]]:
    """Return all calibrations of the store."""
    return [
        {
            "host": record.host.model_dump(mode="json"),
            "calibrations": [calibration_json(one) for one in record.calibrations],
        }
        for record in records
    ]


def calibration_json(one: "Calibration") -> dict[str, Any]:
    """Return a calibration, with each floor and each difference of medians relative to the median."""
    from agelab.stats.formatting import json_number

    floors = [
        {
            **floor.model_dump(mode="json"),
            "floor_relative": json_number(floor.share),
            "apart_relative": json_number(floor.farthest.shift or Fraction(0)),
        }
        for floor in one.floors
    ]
    return {**one.model_dump(mode="json", exclude={"floors"}), "floors": floors}


def host_json(
    seeded: "RunDirectory",
    again: "RunDirectory",
    pairs: "Sequence[tuple[SeedGroup, SeedGroup]]",
    found: "tuple[MeasuredHost, Calibration] | None",
) -> dict[str, Any]:
    """Return the result of A/A in the wall clock; ``recorded`` is null where there is none."""
    plan = seeded.plan()
    cells = [
        {"run": ran.run, "variant": ran.cell.variant, "layout": ran.cell.layout, "seed": ran.cell.seed,
         "status": ran.end.status if ran.end else "interrupted"}
        for pair in pairs for group in pair for ran in group.cells.values()
    ]  # fmt: skip
    return {
        "schema": SCHEMA,
        "run": seeded.name,
        "again": again.name,
        "scenario": plan.scenario,
        "scale": plan.scale,
        "clock": plan.clock,
        "emulated": plan.emulated,
        "cells": cells,
        "recorded": found and {"host": found[0].model_dump(mode="json"), **calibration_json(found[1])},
    }
