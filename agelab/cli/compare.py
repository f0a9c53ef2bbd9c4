"""``agelab compare``: which inputs differ between two runs, and which results by more than the floor."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from agelab.cli.common import json_option, open_store, print_json
from agelab.stats.series import seeds_of

if TYPE_CHECKING:
    from agelab.model.result import RunPlan
    from agelab.results.compare import Difference, Group, Pair
    from agelab.results.rundir import RunDirectory

SHOWN = 20
"""Differing samples to print for one pair of cells."""
PLACES = 2
"""Places to name of an input that differs in more than one."""
WIDTH = 60
"""Characters to print of a value."""
BRIEF = 24
"""The same where only the first look is wanted: both values fit a line of 80."""
SCHEMA = 1
CHOSEN = ("filesystem", "layout", "kernel", "machine", "drives", "defaults", "accelerator")
"""What of a cell its run chose, beside variant and seed."""


@click.command()
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@click.option("--inputs", "every_input", is_flag=True, help="Every place in which the inputs differ.")
@click.option("--all", "everything", is_flag=True, help="Every metric, repetition and differing sample.")
@json_option
def compare(left: str, right: str, every_input: bool, everything: bool, as_json: bool) -> int:
    """Name the inputs, then the results, in which A and B differ.

    A and B are runs (names of agelab list, their beginnings, or latest), or single variants of them: latest:ext4
    latest:xfs. Cells of equal run seed are compared input by input; of several seeds the medians, against the floor.

    Exit: 0; 1 where equal inputs gave different samples.
    """
    from agelab.results import compare as results

    runs = open_store().runs
    (one, ours), (other, theirs) = _asked(runs, left), _asked(runs, right)
    # A variant named on one side alone is meant on both.
    named = ours is not None and theirs is not None
    pairs = results.pairs(
        results.groups(one, ours or theirs), results.groups(other, theirs or ours), named=named
    )
    broken = any(cells.broken for pair in pairs for cells in results.by_seed(*pair))
    if as_json:
        print_json(_json(one, other, pairs))
        return int(broken)
    for letter, run in (("A", one), ("B", other)):
        click.echo(f"{letter}  {run.name}: {described(run.plan())}")
    if not pairs:
        click.echo("the runs share no variant; two variants are compared so: RUN:ext4 RUN:xfs")
    for pair in pairs:
        _print_pair(*pair, every_input, everything)
    return int(broken)


def _asked(runs: Any, words: str) -> "tuple[RunDirectory, str | None]":
    """The run that RUN or RUN:VARIANT names, and the variant."""
    from agelab.errors import InputError
    from agelab.results import rundir

    name, colon, variant = words.partition(":")
    if colon and not variant:
        raise InputError(
            f"{words!r} names no variant", hint=f"like {name}:ext4, or {name} for all of its variants"
        )
    return rundir.find(runs, name), variant or None


def described(plan: "RunPlan") -> str:
    """What a run was: scenario, scale, clock, and what real time means for its seeds."""
    from agelab.cli.tables import clock_of

    note = "; real time, each seed one repetition of it" if plan.clock == "wall" else ""
    return f"{plan.scenario}, scale {plan.scale}, {clock_of(plan)}{note}"


def _print_pair(one: "Group", other: "Group", every_input: bool, everything: bool) -> None:
    from agelab.cli.floors import print_rows
    from agelab.results import compare as results
    from agelab.stats.series import rows, series

    names = [f"{group.variant}, {group.layout}" for group in (one, other)]
    seeds = [seeds_of(group.cells) for group in (one, other)]
    click.echo("\n" + " | ".join(dict.fromkeys(names)) + ": " + " | ".join(seeds))
    cells = results.by_seed(one, other)
    for line in _chosen(cells[0]):
        click.echo(f"  {line}")
    differing: dict[str, Difference] = {}
    for pair in cells:
        for difference in pair.inputs:
            differing.setdefault(difference.place, difference)
    for line in input_lines(list(differing.values()), every_input):
        click.echo(f"  input {line}")
    if differing and not every_input:
        click.echo("  (--inputs shows each place of these inputs, and more of each value)")
    if differing and cells[0].left.cell.seed != cells[0].right.cell.seed:
        click.echo(
            "  (no run seed is equal: a seed by itself changes the plan, the initramfs and QEMU's command)"
        )
    several = max(len(one.cells), len(other.cells)) > 1
    for said, those in groupby(cells, _said):
        found = list(those)
        which = f": {seeds_of(pair.left.cell.seed for pair in found)}" if several else ""
        if said:
            click.echo(f"  {said}{which}")
        for pair in found:
            if pair.broken or not several:
                print_samples(pair, SHOWN if not everything else pair.compared)
    for letter, group in (("A", one), ("B", other)):
        for seed, ran in group.cells.items():
            if several and not ran.ok:
                why = ran.end.reason or ran.end.status if ran.end else "it has no end record"
                click.echo(f"  left out of the table: {letter}, seed {seed}: {why}")
    if several:
        print_rows(rows(series(one.counted), series(other.counted)), everything)


def _chosen(pair: "Pair") -> list[str]:
    """What the two runs chose differently."""
    left, right = pair.left.cell.model_dump(), pair.right.cell.model_dump()
    found = [name for name in CHOSEN if left[name] != right[name]]
    return [f"{name}: {_plain(left[name])} | {_plain(right[name])}" for name in found]


def _plain(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def input_lines(differing: "Sequence[Difference]", every: bool) -> list[str]:
    """A line for each input that differs, or with ``every`` for each place in it."""
    lines = []
    for name, those in groupby(sorted(differing, key=lambda d: d.name), lambda d: d.name):
        found = list(those)
        if every or len(found) == 1:
            width = WIDTH if every else BRIEF
            lines += [f"{difference.place}: {_values(difference, width)}" for difference in found]
        else:
            places = ", ".join(difference.place for difference in found[:PLACES])
            more = ", ..." if len(found) > PLACES else ""
            lines.append(f"{name}: {len(found)} places ({places}{more})")
    return lines


def _values(difference: "Difference", width: int) -> str:
    """Both values; of lists the words that went and came."""
    if difference.words is None:
        return _short(difference.left, difference.right, width)
    gone, come = (" ".join(str(word) for word in words) or "nothing" for words in difference.words)
    return f"only A: {_cut(gone, 0, width)} | only B: {_cut(come, 0, width)}"


def _said(pair: "Pair") -> str:
    """What inputs and samples say together; nothing where both differ."""
    if pair.unfinished:
        return f"not finished: {' and '.join(pair.unfinished)}"
    if pair.broken:
        return "EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise; please report it"
    if not pair.samples:
        return f"{'different' if pair.inputs else 'equal'} inputs, equal samples"
    return "" if pair.inputs else "equal inputs; real time is not the same twice"


def print_samples(pair: "Pair", most: int) -> None:
    """The samples that differ, so many at most; where equal inputs must not differ, how the cells ended, too."""
    for row in pair.samples[:most]:
        click.echo(f"  sample {row.place}: {row.left} | {row.right}")
    if len(pair.samples) > most:
        click.echo(f"  and {len(pair.samples) - most} more samples; agelab compare --all shows them")
    for row in pair.endings if pair.broken else []:
        click.echo(f"  {row.place}: {row.left} | {row.right}")


def _short(left: object, right: object, width: int = WIDTH) -> str:
    """Both values side by side; long ones from a little before the place where they part."""
    one, other = str(left), str(right)
    parted = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    start = max(0, parted - width // 3) if max(len(one), len(other)) > width else 0
    return f"{_cut(one, start, width)} | {_cut(other, start, width)}"


def _cut(text: str, start: int, width: int) -> str:
    """So many characters of it, with dots where it has more."""
    before, after = "..." if start else "", "..." if len(text) > start + width else ""
    return before + text[start : start + width] + after


def differences_json(found: "Iterable[Difference]") -> list[dict[str, Any]]:
    """Places that differ, for programs."""
    return [{"place": d.place, "left": d.left, "right": d.right} for d in found]


def _json(
    one: "RunDirectory", other: "RunDirectory", pairs: "Sequence[tuple[Group, Group]]"
) -> dict[str, Any]:
    from agelab.cli.floors import row_json
    from agelab.results import compare as results
    from agelab.stats.series import rows, series

    def side(group: "Group") -> dict[str, Any]:
        cells = [
            {"seed": s, "status": r.end.status if r.end else "interrupted"} for s, r in group.cells.items()
        ]
        return {"variant": group.variant, "layout": group.layout, "cells": cells}

    def cells(pair: "Pair") -> dict[str, Any]:
        return {
            "seeds": [pair.left.cell.seed, pair.right.cell.seed],
            "inputs": differences_json(pair.inputs),
            "samples": differences_json(pair.samples),
            "finished": not pair.unfinished,
            "endings": differences_json(pair.endings),
            "promise_broken": pair.broken,
        }

    return {
        "schema": SCHEMA,
        "left": {"run": one.name, "clock": one.plan().clock},
        "right": {"run": other.name, "clock": other.plan().clock},
        "pairs": [
            {
                "left": side(left),
                "right": side(right),
                "cells": [cells(pair) for pair in results.by_seed(left, right)],
                "rows": [row_json(row) for row in rows(series(left.counted), series(right.counted))],
            }
            for left, right in pairs
        ],
    }
