"""``agelab compare``: which inputs and which samples differ between two runs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from agelab.cli.common import open_store

if TYPE_CHECKING:
    from agelab.model.result import Cell, End

SHOWN = 20
"""Differing samples to print for one pair of cells."""


@click.command()
@click.argument("left")
@click.argument("right")
def compare(left: str, right: str) -> None:
    """Name the inputs, then the samples, in which the runs LEFT and RIGHT differ, cell by cell."""
    from agelab.results import compare as differences
    from agelab.results import rundir

    runs = open_store().runs
    one, other = rundir.find(runs, left), rundir.find(runs, right)
    ours, theirs = one.samples(), other.samples()
    pairs = list(_pairs(one.plan().cells, other.plan().cells))
    if not pairs:
        click.echo("the runs share no variant")
    for name, here, there in pairs:
        click.echo(f"{name}:")
        found = list(differences.inputs(one.inputs(here), other.inputs(there)))
        for difference in found:
            click.echo(f"  input {difference.place}: {_short(difference.left)} | {_short(difference.right)}")
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
        elif not found:
            click.echo("  EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise; please report it")


def _finished(end: "End | None") -> bool:
    """Whether the cell said all that it had to say: only then are its samples what its inputs make."""
    return end is not None and end.status.value != "interrupted"


def _pairs(ours: Sequence["Cell"], theirs: Sequence["Cell"]) -> Iterator[tuple[str, int, int]]:
    """Cells of both runs with the same variant, in the order of their seeds."""
    taken: set[int] = set()
    for here, cell in enumerate(ours):
        for there, other in enumerate(theirs):
            if there not in taken and (cell.variant, cell.layout) == (other.variant, other.layout):
                taken.add(there)
                yield f"{cell.variant}, seed {cell.seed} | seed {other.seed}", here, there
                break


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
