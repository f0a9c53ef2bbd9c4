"""``agelab compare``: which inputs and which samples differ between two runs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from agelab.cli.common import open_store

if TYPE_CHECKING:
    from agelab.model.result import Cell, End

SHOWN = 20
"""Differing samples to print for one pair of cells."""
WIDTH = 60
"""Characters to print of a value."""


@click.command()
@click.argument("left")
@click.argument("right")
def compare(left: str, right: str) -> None:
    """Name the inputs, then the samples, in which the runs LEFT and RIGHT differ, cell by cell."""
    from agelab.cli.tables import clock_of
    from agelab.results import compare as differences
    from agelab.results import rundir

    runs = open_store().runs
    one, other = rundir.find(runs, left), rundir.find(runs, right)
    real = [run for run in (one, other) if run.plan().clock == "wall"]
    for run in real:
        click.echo(f"{run.name}: {clock_of(run.plan())}")
    ours, theirs = one.samples(), other.samples()
    pairs = list(_pairs(one.plan().cells, other.plan().cells))
    if not pairs:
        click.echo("the runs share no variant")
    for name, here, there in pairs:
        click.echo(f"{name}:")
        found = list(differences.inputs(one.inputs(here), other.inputs(there)))
        for difference in found:
            click.echo(f"  input {difference.place}: {_short(difference.left, difference.right)}")
        rows = differences.samples(ours.get(here, []), theirs.get(there, []))
        for row in rows[:SHOWN]:
            click.echo(f"  sample {row.place}: {row.left} | {row.right}")
        if len(rows) > SHOWN:
            click.echo(f"  and {len(rows) - SHOWN} more samples")
        unfinished = [
            run.name for run, number in ((one, here), (other, there)) if not _finished(run.end(number))
        ]
        if unfinished:
            click.echo(f"  not finished: {' and '.join(unfinished)}")
        elif not found and not rows:
            click.echo("  equal inputs, equal samples")
        elif real and not found:
            click.echo("  equal inputs; real time is not the same twice")
        elif not found:
            click.echo("  EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise; please report it")


def _finished(end: "End | None") -> bool:
    """Whether the cell said all that it had to say: only then are its samples what its inputs make."""
    return end is not None and end.status.value != "interrupted"


def _pairs(ours: Sequence["Cell"], theirs: Sequence["Cell"]) -> Iterator[tuple[str, int, int]]:
    """Cells of both runs with the same variant and layout: a name, and the number of each."""
    left = {(cell.variant, cell.layout, cell.seed): number for number, cell in enumerate(ours)}
    right = {(cell.variant, cell.layout, cell.seed): number for number, cell in enumerate(theirs)}
    # Equal seeds belong together; what is left over is paired in order, so that seed 1 | seed 2 can be asked too.
    pairs = [(key, key) for key in left if key in right]
    for one in (key for key in left if key not in right):
        rest = (
            key
            for key in right
            if key[:2] == one[:2] and key not in left and key not in {p[1] for p in pairs}
        )
        pairs += [(one, other) for other in list(rest)[:1]]
    for one, other in pairs:
        yield f"{one[0]}, seed {one[2]} | seed {other[2]}", left[one], right[other]


def _short(left: object, right: object) -> str:
    """Both values side by side; long ones from a little before the place where they part."""
    one, other = str(left), str(right)
    parted = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    start = max(0, parted - 20) if max(len(one), len(other)) > WIDTH else 0
    cut = [("..." if start else "") + text[start : start + WIDTH] for text in (one, other)]
    return " | ".join(cut)
