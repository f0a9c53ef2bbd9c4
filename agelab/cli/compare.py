"""``agelab compare``: which inputs differ between runs or variants, and which results by more than chance."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from agelab.cli.options import json_option, open_store, print_json
from agelab.stats.series import seeds_of
from agelab.view.input_diff import differences_json, input_lines, print_samples

if TYPE_CHECKING:
    from agelab.analysis.cells import CellPair, SeedGroup, ValueDifference
    from agelab.analysis.comparison import ComparisonTable
    from agelab.analysis.selectors import Comparison
    from agelab.model.result import RunPlan
    from agelab.results.run_directory import RunDirectory

SHOWN = 20
"""Differing samples to print for one pair of cells."""
SCHEMA = 3
CHOSEN = ("filesystem", "layout", "kernel", "machine", "drives", "defaults", "accelerator")
"""What of a cell its run chose, beside variant and seed."""


@click.command()
@click.argument("sides", nargs=-1, required=True, metavar="A [B...]")
@click.option(
    "--base", metavar="CHOICE", help="Of one run: what the others are compared with, like ext4,raid0."
)
@click.option("--anyway", is_flag=True, help="Compare what is not comparable, and label it.")
@click.option("--each", is_flag=True, help="Of three sides and more: a whole table for each.")
@click.option("--inputs", "every_input", is_flag=True, help="Every place in which the inputs differ.")
@click.option("--all", "everything", is_flag=True, help="Every metric, repetition and differing sample.")
@json_option
def compare(
    sides: tuple[str, ...],
    base: str | None,
    anyway: bool,
    each: bool,
    every_input: bool,
    everything: bool,
    as_json: bool,
) -> int:
    """Name the inputs, then the results, in which B and others differ from A.

    A, B... are runs (names of agelab list, their beginnings, or latest), or some of their cells: latest:ext4,
    latest:ext4,raid0, latest:kernel=6.1, machine=, drives=, defaults=. A alone: each of its variants against the
    first, or --base. Cells of equal run seed are compared input by input; of several seeds the medians, as ratios.

    Exit: 0; 1 where equal inputs gave different samples; 2 where nothing can be compared.
    """
    from agelab.analysis import selectors as results
    from agelab.analysis.comparison import caveats, compare_steps, host_noise_of, no_ok_cells
    from agelab.errors import InputError
    from agelab.view.series_table import wrapped

    store = open_store()
    asked = [results.side(store.runs, words) for words in sides]
    if base and len(asked) > 1:
        raise InputError(
            "--base chooses among the variants of one run; of several runs the first one is the base"
        )
    found = [results.of_one(asked[0], base)] if len(asked) == 1 else results.of_several(asked)
    doubts = {id(other): caveats(one.base, other, anyway) for one in found for other in one.others}
    pairs = [(one.base, other) for one in found for other in one.others]
    if not any(one.begun and other.begun for one, other in pairs):
        raise no_ok_cells(found, of_one=len(asked) == 1)
    tables = []
    for one in found:
        host = host_noise_of(store.home, one.base, one.others)
        tables.append(compare_steps(one, host, everything))
        for other, rows in zip(one.others, tables[-1], strict=True):
            doubts[id(other)] += [*host.unknown, *host.uncovered(rows.steps)]
    if as_json:
        print_json(_json(found, tables, doubts, everything))
    else:
        _print_runs(found)
        for run, groups in results.left_out(found, asked).items() if len(asked) > 1 else ():
            click.echo(wrapped(f"not compared, for not every run has them: of {run} {'; '.join(groups)}", ""))
        for one, table in zip(found, tables, strict=True):
            if len(one.others) == 1 or each:
                for other, rows in zip(one.others, table, strict=True):
                    _print_pair(one.base, other, rows, doubts[id(other)], every_input, everything)
            else:
                _print_several(one, table, doubts, every_input, everything)
    if not any(one.counted and other.counted for one, other in pairs):
        raise no_ok_cells(found, of_one=len(asked) == 1)
    return int(any(cells.broken for pair in pairs for cells in _cells(*pair)))


def _print_runs(found: "Sequence[Comparison]") -> None:
    """Which runs they are, each by its letter."""
    groups = [(_letter(at), group) for one in found for at, group in enumerate((one.base, *one.others))]
    said: dict[str, tuple[list[str], RunDirectory]] = {}
    for letter, group in groups:
        letters, _ = said.setdefault(group.run.name, ([], group.run))
        if letter not in letters:
            letters.append(letter)
    for letters, run in said.values():
        names = f"{letters[0]}-{letters[-1]}" if len(letters) > 2 else ",".join(letters)
        click.echo(f"{names}  {run.name}: {described(run.plan())}")
        if run.going_on():
            click.echo("   it is still going on: compared as far as it is")


def _letter(at: int) -> str:
    """A to Z, then AA, AB."""
    return (_letter(at // 26 - 1) if at >= 26 else "") + chr(ord("A") + at % 26)


def _cells(one: "SeedGroup", other: "SeedGroup") -> "list[CellPair]":
    """The cells of equal run seed; where no seed is equal, the first of each."""
    from agelab.analysis.cells import by_seed

    return by_seed(one, other)


def described(plan: "RunPlan") -> str:
    """What a run was: scenario, scale, clock, and what real time means for its seeds."""
    from agelab.view.run_tables import clock_of

    note = "; real time, each seed one repetition of it" if plan.clock == "wall" else ""
    return f"{plan.scenario}, scale {plan.scale}, {clock_of(plan)}{note}"


def _print_pair(
    one: "SeedGroup",
    other: "SeedGroup",
    judged: "ComparisonTable",
    doubts: Sequence[str],
    every_input: bool,
    everything: bool,
) -> None:
    from agelab.view.ratio_table import print_two

    names = [group.name for group in (one, other)]
    seeds = [seeds_of(group.cells) for group in (one, other)]
    click.echo("\n" + " | ".join(dict.fromkeys(names)) + ": " + " | ".join(seeds))
    for line in doubts:
        click.secho(f"  {line}", bold=True)
    cells = _cells(one, other)
    for line in _chosen(cells[0]):
        click.echo(f"  {line}")
    differing = _differing(cells)
    for line in input_lines(differing, every_input):
        click.echo(f"  input {line}")
    if differing and not every_input:
        click.echo("  (--inputs shows each place of these inputs, and more of each value)")
    if differing and cells[0].left.cell.seed != cells[0].right.cell.seed:
        click.echo(
            "  (no run seed is equal: a seed by itself changes the plan, the initramfs and QEMU's command)"
        )
    several = max(len(one.cells), len(other.cells)) > 1
    table = bool(one.counted and other.counted and (several or differing))
    _print_endings(cells, several, everything, each=not several and (everything or not table))
    for letter, group in (("A", one), ("B", other)):
        for line in _left_out(group) if several else ():
            click.echo(f"  left out of the table: {letter}, {line}")
    if table:
        print_two(judged.rows, everything)


def _print_endings(cells: "Sequence[CellPair]", several: bool, everything: bool, each: bool = False) -> None:
    """What inputs and samples say together, seed by seed; samples where they break the promise, or with ``each``."""
    for said, those in groupby(cells, _said):
        found = list(those)
        which = f": {seeds_of(pair.left.cell.seed for pair in found)}" if several else ""
        if said:
            click.echo(f"  {said}{which}")
        for pair in found:
            if pair.broken or each:
                print_samples(pair, SHOWN if not everything else pair.compared)


def _differing(cells: "Iterable[CellPair]") -> "list[ValueDifference]":
    """Each place in which the inputs of some pair differ; a cell that has not begun has none to differ in."""
    found: dict[str, ValueDifference] = {}
    for pair in (pair for pair in cells if pair.left.inputs and pair.right.inputs):
        for difference in pair.inputs:
            found.setdefault(difference.place, difference)
    return list(found.values())


def _left_out(group: "SeedGroup") -> list[str]:
    """The cells of a group that do not count, and why."""
    reasons: dict[str, list[int]] = {}
    for seed, ran in group.cells.items():
        if not ran.ok:
            reasons.setdefault(ran.why, []).append(seed)
    return [f"{seeds_of(seeds)}: {why}" for why, seeds in reasons.items()]


def _print_several(
    one: "Comparison",
    judged: "Sequence[ComparisonTable]",
    doubts: "Mapping[int, Sequence[str]]",
    every_input: bool,
    everything: bool,
) -> None:
    """Several sides against the base, in one table."""
    from agelab.analysis.selectors import names
    from agelab.view.ratio_table import print_several
    from agelab.view.series_table import wrapped

    groups = (one.base, *one.others)
    letters = [_letter(at) for at in range(len(groups))]
    told = names(groups)
    told = told if all(told) else letters
    click.echo("")
    labelled = list(zip(letters, told, groups, strict=True))
    for letter, name, group in (one for one in labelled if one[2].begun):
        click.echo(
            f"{letter}  {group.name}{'' if name in (letter, group.variant) else f' ({name})'}: "
            f"{seeds_of(group.cells)}{', the base' if group is one.base else ''}"
        )
        for line in doubts.get(id(group), ()):
            click.secho(f"   {line}", bold=True)
        if group is not one.base:
            cells = _cells(one.base, group)
            differing = _differing(cells)
            for line in input_lines(differing, True) if every_input else ():
                click.echo(f"   input {line}")
            if differing and not every_input:
                differ = ", ".join(sorted({found.name for found in differing}))
                click.echo(wrapped(f"inputs that differ: {differ}", "   "))
            _print_endings([pair for pair in cells if pair.broken], True, everything)
        if left_out := _left_out(group):
            click.echo(wrapped(f"left out of the table: {'; '.join(left_out)}", "   "))
    if waiting := [f"{letter} {group.name}" for letter, _, group in labelled if not group.begun]:
        click.echo(wrapped(f"not begun: {'; '.join(waiting)}", ""))
    counted = [at for at, group in enumerate(one.others) if group.counted]
    if one.base.counted and counted:
        tables = [judged[at].rows for at in counted]
        print_several(tables, [told[0], *(told[at + 1] for at in counted)], everything)
        click.echo("  (--each: medians, intervals and floors of each; --json: all)")


def _chosen(pair: "CellPair") -> list[str]:
    """What the two runs chose differently."""
    left, right = pair.left.cell.model_dump(), pair.right.cell.model_dump()
    found = [name for name in CHOSEN if left[name] != right[name]]
    return [f"{name}: {_plain(left[name])} | {_plain(right[name])}" for name in found]


def _plain(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _said(pair: "CellPair") -> str:
    """What inputs and samples say together; nothing where both differ."""
    if pair.unfinished:
        return f"not finished: {' and '.join(pair.unfinished)}"
    if pair.broken:
        return "EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise; please report it"
    if not pair.samples:
        return f"{'different' if pair.inputs else 'equal'} inputs, equal samples"
    return "" if pair.inputs else "equal inputs; real time is not the same twice"


def _json(
    found: "Sequence[Comparison]",
    tables: "Sequence[Sequence[ComparisonTable]]",
    doubts: "Mapping[int, list[str]]",
    everything: bool,
) -> dict[str, Any]:
    from agelab.view.ratio_table import rows_json

    def side(group: "SeedGroup") -> dict[str, Any]:
        plan = group.run.plan()
        cells = [
            {"seed": s, "status": r.end.status if r.end else "interrupted"} for s, r in group.cells.items()
        ]
        about = group.cell.model_dump(mode="json", exclude={"seed"})
        return {"run": group.run.name, "scenario": plan.scenario, "scale": plan.scale, "clock": plan.clock, **about,
                "going_on": group.run.going_on(), "cells": cells}  # fmt: skip

    def cells(pair: "CellPair") -> dict[str, Any]:
        each = everything or pair.broken or not pair.samples
        return {
            "seeds": [pair.left.cell.seed, pair.right.cell.seed],
            "inputs": differences_json(pair.inputs),
            "compared": pair.compared,
            "differing": len(pair.samples),
            "samples": differences_json(pair.samples) if each else None,
            "finished": not pair.unfinished,
            "endings": differences_json(pair.endings),
            "promise_broken": pair.broken,
        }

    return {
        "schema": SCHEMA,
        "pairs": [
            {
                "left": side(one.base),
                "right": side(other),
                "labels": doubts[id(other)],
                "cells": [cells(pair) for pair in _cells(one.base, other)],
                "rows": rows_json(judged.steps),
                "repetitions": rows_json(judged.repetitions) if everything else None,
            }
            for one, table in zip(found, tables, strict=True)
            for other, judged in zip(one.others, table, strict=True)
        ],
    }
