"""Print what ``agelab compare`` found, on a terminal and as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import click
from rich.console import Console

from agelab.analysis.cell_diff import CellPair, ValueDifference, pair_by_seed
from agelab.analysis.cells import RunResult, SeedGroup
from agelab.analysis.comparison import Comparison, ComparisonTable, column_names
from agelab.base.verbs import as_called
from agelab.present.report.command import settling_command
from agelab.present.view.input_diff import differences_json, input_lines, print_samples
from agelab.present.view.ratio_table import print_several, print_two, rows_json
from agelab.present.view.run_tables import describe_run
from agelab.present.view.terminal import open_console, print_wrapped
from agelab.scenario.seeds import Seeds, seeds_text
from agelab.stats.formatting import letter
from agelab.stats.verdict import ComparedSeries, about_files

SHOWN = 20
"""Differing samples to print for one pair of cells."""


SCHEMA = 4


CHOSEN = ("filesystem", "layout", "kernel", "machine", "drives", "defaults", "accelerator")
"""Fields of a cell that its run chose, beside variant and seed."""


def print_comparison(
    found: Sequence[Comparison],
    tables: Sequence[Sequence[ComparisonTable]],
    doubts: Mapping[int, Sequence[str]],
    left_out: Mapping[str, Sequence[str]],
    *,
    each: bool,
    every_input: bool,
    everything: bool,
) -> None:
    """Print the runs, then each comparison: a table for two sides, or one for several unless ``each`` has its own.

    ``doubts`` are the caveats of a side by its ``id``; ``left_out`` the groups that not every run has, by run.
    """
    console = open_console()
    _print_runs(found)
    for run, groups in left_out.items():
        print_wrapped(console, f"not compared, for not every run has them: of {run} {'; '.join(groups)}", 2)
    for one, table in zip(found, tables, strict=True):
        if len(one.others) == 1 or each:
            for other, rows in zip(one.others, table, strict=True):
                _print_pair(console, one.base, other, rows, doubts[id(other)], every_input, everything)
        else:
            _print_several(console, one, table, doubts, every_input, everything)
    if commands := _settling(found, [row for table in tables for side in table for row in side.rows]):
        click.echo("\nto settle what is open:")
    for command in commands:
        click.echo(f"  {as_called(command)}")


def _print_runs(found: Sequence[Comparison]) -> None:
    """Print each run with the letters of its sides."""
    groups = [(letter(at), group) for one in found for at, group in enumerate((one.base, *one.others))]
    runs: dict[str, tuple[list[str], RunResult]] = {}
    for name, group in groups:
        letters, _ = runs.setdefault(group.run.name, ([], group.run))
        if name not in letters:
            letters.append(name)
    for letters, run in runs.values():
        names = f"{letters[0]}-{letters[-1]}" if len(letters) > 2 else ",".join(letters)
        click.echo(f"{names}  {run.name}: {describe_run(run.plan)}")
        if run.running:
            click.echo("   it is still going on: compared as far as it is")


def _print_pair(
    console: Console,
    one: SeedGroup,
    other: SeedGroup,
    judged: ComparisonTable,
    doubts: Sequence[str],
    every_input: bool,
    everything: bool,
) -> None:
    names = [group.name for group in (one, other)]
    seeds = [seeds_text(group.cells) for group in (one, other)]
    click.echo("\n" + " | ".join(dict.fromkeys(names)) + ": " + " | ".join(seeds))
    for line in doubts:
        click.secho(f"  {line}", bold=True)
    cells = pair_by_seed(one, other)
    for line in _chosen(cells[0]):
        click.echo(f"  {line}")
    differing = _differing(cells)
    for line in input_lines(differing, every_input):
        click.echo(f"  input {line}")
    if differing and not every_input:
        click.echo("  (--inputs shows each place of these inputs, and more of each value)")
    if differing and cells[0].left.seeds != cells[0].right.seeds:
        click.echo(
            "  (no seeds are equal: a seed by itself changes the plan, the initramfs and QEMU's command)"
        )
    several = max(len(one.cells), len(other.cells)) > 1
    table = bool(one.counted and other.counted and (several or differing))
    _print_endings(cells, several, everything, each=not several and (everything or not table))
    for side, group in (("A", one), ("B", other)):
        for line in _left_out(group) if several else ():
            click.echo(f"  left out of the table: {side}, {line}")
    if table:
        print_two(console, judged.rows, everything)


def _settling(found: Sequence[Comparison], rows: Sequence[ComparedSeries]) -> list[str]:
    """List the commands that run the sides with more run seeds, or more corpora, as the rows need; each once."""
    plans = {group.run.name: group.run.plan for one in found for group in (one.base, *one.others)}.values()
    needed = {False: any(row.too_few for row in rows), True: bool(about_files(rows))}
    commands = (settling_command(plan, corpora=more) for more in needed if needed[more] for plan in plans)
    return [*dict.fromkeys(filter(None, commands))]


def _print_endings(cells: Sequence[CellPair], several: bool, everything: bool, each: bool = False) -> None:
    """Print what inputs and samples say together, by seed; samples where the promise is broken, or with ``each``."""
    for summary, those in groupby(cells, _summary):
        found = list(those)
        which = f": {seeds_text(pair.left.seeds for pair in found)}" if several else ""
        if summary:
            click.echo(f"  {summary}{which}")
        for pair in found:
            if pair.broken or each:
                print_samples(pair, SHOWN if not everything else pair.compared)


def _differing(cells: Iterable[CellPair]) -> list[ValueDifference]:
    """List each place in which the inputs of some pair differ; a cell that has not begun has none."""
    found: dict[str, ValueDifference] = {}
    for pair in (pair for pair in cells if pair.left.inputs and pair.right.inputs):
        for difference in pair.inputs:
            found.setdefault(difference.place, difference)
    return list(found.values())


def _left_out(group: SeedGroup) -> list[str]:
    """Name the cells of a group that do not count, and why."""
    reasons: dict[str, list[Seeds]] = {}
    for seed, ran in group.cells.items():
        if not ran.ok:
            reasons.setdefault(ran.reason, []).append(seed)
    return [f"{seeds_text(seeds)}: {why}" for why, seeds in reasons.items()]


def _print_several(
    console: Console,
    one: "Comparison",
    judged: Sequence[ComparisonTable],
    doubts: Mapping[int, Sequence[str]],
    every_input: bool,
    everything: bool,
) -> None:
    """Print several sides against the base in one table."""
    groups = (one.base, *one.others)
    letters = [letter(at) for at in range(len(groups))]
    labels = column_names(groups)
    labels = labels if all(labels) else letters
    click.echo("")
    labelled = list(zip(letters, labels, groups, strict=True))
    for side, name, group in (one for one in labelled if one[2].begun):
        click.echo(
            f"{side}  {group.name}{'' if name in (side, group.variant) else f' ({name})'}: "
            f"{seeds_text(group.cells)}{', the base' if group is one.base else ''}"
        )
        for line in doubts.get(id(group), ()):
            click.secho(f"   {line}", bold=True)
        if group is not one.base:
            cells = pair_by_seed(one.base, group)
            differing = _differing(cells)
            for line in input_lines(differing, True) if every_input else ():
                click.echo(f"   input {line}")
            if differing and not every_input:
                differ = ", ".join(sorted({found.name for found in differing}))
                print_wrapped(console, f"   inputs that differ: {differ}", 5)
            _print_endings([pair for pair in cells if pair.broken], True, everything)
        if left_out := _left_out(group):
            print_wrapped(console, f"   left out of the table: {'; '.join(left_out)}", 5)
    if waiting := [f"{side} {group.name}" for side, _, group in labelled if not group.begun]:
        print_wrapped(console, f"not begun: {'; '.join(waiting)}", 2)
    counted = [at for at, group in enumerate(one.others) if group.counted]
    if one.base.counted and counted:
        tables = [judged[at].rows for at in counted]
        names = [labels[0], *(labels[at + 1] for at in counted)]
        print_several(console, tables, names, everything)
        click.echo("  (--each: medians and intervals of each; --json: all)")


def _chosen(pair: CellPair) -> list[str]:
    left, right = pair.left.cell.model_dump(), pair.right.cell.model_dump()
    left["drives"], right["drives"] = (", ".join(side["drives"]) for side in (left, right))
    return [f"{name}: {left[name]} | {right[name]}" for name in CHOSEN if left[name] != right[name]]


def _summary(pair: CellPair) -> str:
    """Say what inputs and samples show together; nothing where both differ."""
    if pair.unfinished:
        return f"not finished: {' and '.join(pair.unfinished)}"
    if pair.broken:
        return "EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise; please report it"
    if not pair.samples:
        return f"{'different' if pair.inputs else 'equal'} inputs, equal samples"
    return "" if pair.inputs else "equal inputs; real time is not the same twice"


def comparison_json(
    found: Sequence[Comparison],
    tables: Sequence[Sequence[ComparisonTable]],
    doubts: Mapping[int, list[str]],
    everything: bool,
) -> dict[str, Any]:
    def side(group: SeedGroup) -> dict[str, Any]:
        asked = group.run.plan.model_dump(include={"scenario", "scale", "clock"})
        about = group.cell.model_dump(mode="json", exclude={"seed", "corpus_seed"})
        cells = [
            {"seed": at.run, "corpus_seed": at.corpus, "status": one.end_status}
            for at, one in group.cells.items()
        ]
        return {"run": group.run.name, **asked, **about, "going_on": group.run.running, "cells": cells}

    def cells(pair: CellPair) -> dict[str, Any]:
        each = everything or pair.broken or not pair.samples
        return {
            "seeds": [pair.left.seeds.run, pair.right.seeds.run],
            "corpus_seeds": [pair.left.seeds.corpus, pair.right.seeds.corpus],
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
                "cells": [cells(pair) for pair in pair_by_seed(one.base, other)],
                "rows": rows_json(judged.steps),
                "repetitions": rows_json(judged.repetitions) if everything else None,
            }
            for one, table in zip(found, tables, strict=True)
            for other, judged in zip(one.others, table, strict=True)
        ],
    }
