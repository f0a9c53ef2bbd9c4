"""Where output goes: a terminal of some width, or a file, a program or a pager, which get whole lines.

docs/terminal.md says it to the user.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Literal

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from agelab.view import colour

WHOLE = 10_000
"""Characters of a line where nobody watches."""
Stands = Literal["left", "right", "wrapped"]
"""How a column stands: to the left, to the right, or to the left on as many lines as it takes."""
Head = tuple[str, Stands]


def moves(console: Console) -> bool:
    """Whether lines may be drawn again in their place: somebody watches, and nothing that keeps a log.

    What asks for colours in a log (FORCE_COLOR) makes no terminal of it.
    """
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return console.file.isatty() and os.environ.get("TERM") not in colour.DUMB_TERMINALS and not in_ci


def open_console(*, stderr: bool = False) -> Console:
    """Standard output, or standard error, as it is at this moment."""
    watched = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if watched else WHOLE,
        color_system=None if colour.unwanted() else "auto",
    )


def print_wrapped(console: Console, line: str, hang: int = 0) -> None:
    """A line of words, where somebody watches on as many as it takes; those after the first begin so far inside.

    No word is broken: what is longer than the terminal is wide can still be copied.
    """
    rows = [line]
    if console.width < WHOLE:
        rows = [
            part
            for row in line.split("\n")
            for part in wrap(
                row,
                console.width,
                subsequent_indent=" " * hang,
                break_long_words=False,
                break_on_hyphens=False,
            )
            or [""]
        ]
    console.print("\n".join(rows), soft_wrap=True)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print one line for each name and value; several values with commas between them."""
    for name, value in facts.items():
        words = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        click.echo(f"{name:12} {words}")


def print_table(
    console: Console,
    heads: Sequence[Head],
    rows: Sequence[Sequence[str]],
    *,
    named: bool = True,
    together: int = 1,
) -> None:
    """Rows below their heads, where the columns are ``named``; what is too wide is printed in parts.

    Each part begins with the first column; of the others so many at a time are kept ``together``. No figure is cut.
    """
    for at, part in enumerate(_parts(heads, rows, console.width, together)):
        if at:
            console.print()
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", show_header=named)
        for name, stands in (heads[at] for at in part):
            justify: Literal["left", "right"] = "right" if stands == "right" else "left"
            table.add_column(name, justify=justify, no_wrap=stands != "wrapped", overflow="fold")
        for row in rows:
            table.add_row(*(row[at] for at in part))
        console.print(table)


def _parts(
    heads: Sequence[Head], rows: Sequence[Sequence[str]], width: int, together: int
) -> list[list[int]]:
    """The columns of each part: as many as there is room for, and some at least beside the first."""
    needed = [
        1
        + max(cell_len(line) for cell in (name, *(row[at] for row in rows)) for line in _lines(cell, stands))
        for at, (name, stands) in enumerate(heads)
    ]
    parts = [[0]]
    for first in range(1, len(heads), together):
        kept = list(range(first, min(first + together, len(heads))))
        if len(parts[-1]) > 1 and sum(needed[one] for one in (*parts[-1], *kept)) > width:
            parts.append([0])
        parts[-1] += kept
    return parts


def _lines(cell: str, stands: Stands) -> list[str]:
    """What of a cell cannot be broken."""
    return (cell.split() if stands == "wrapped" else cell.split("\n")) or [""]
