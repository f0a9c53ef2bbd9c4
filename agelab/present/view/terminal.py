"""Print lines and tables: on a terminal within its width, for a file, a program or a pager in whole lines.

docs/terminal.md tells the user.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from textwrap import TextWrapper
from typing import Literal

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agelab.base.verbs import as_called
from agelab.present.view import colour

WHOLE = 10_000
"""Characters of a line that does not go to a terminal."""
Stands = Literal["left", "right", "wrapped"]
"""The alignment of a column: left, right, or left on as many lines as it takes."""
Head = tuple[str, Stands]
Cell = str | Text
Row = Sequence[Cell] | Text
"""The cells of a row, or a line across all columns."""
INDENT = "   "
"""The first cell of a row whose name stands above it."""


def can_redraw(console: Console) -> bool:
    """Tell whether lines may be redrawn in place: on a terminal, and not in a log.

    FORCE_COLOR asks for colours in a log, which makes no terminal of it.
    """
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return console.file.isatty() and os.environ.get("TERM") not in colour.DUMB_TERMINALS and not in_ci


def open_console(*, stderr: bool = False) -> Console:
    """Open standard output, or standard error, as it is at this moment."""
    watched = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if watched else WHOLE,
        color_system=None if colour.is_unwanted() else "auto",
    )


def print_wrapped(console: Console, line: str, hang: int = 0, style: str = "") -> None:
    """Print a line of words, on a terminal as several lines; those after the first are indented by ``hang``.

    No word is broken: one that is longer than the terminal is wide can still be copied. Commands are as the user has to
    type them.
    """
    line = as_called(line)
    if console.width < WHOLE:
        words = TextWrapper(
            console.width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False
        )
        line = "\n".join(words.fill(row) for row in line.split("\n"))
    console.print(line, soft_wrap=True, style=style)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print one line for each name and value; several values with commas between them."""
    for name, value in facts.items():
        words = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        click.echo(f"{name:12} {words}")


def print_table(
    console: Console,
    heads: Sequence[Head],
    rows: Sequence[Row],
    *,
    named: bool = True,
    together: int = 1,
    repeated: int = 1,
    names_above: bool = False,
) -> None:
    """Print rows below their heads, where the columns are ``named``; what is too wide is printed in parts.

    Each part begins with the ``repeated`` first columns; of the others so many at a time are kept ``together``. No
    figure is cut. With ``names_above`` the first cell of a row that is too wide stands on a line of its own, in place
    of more parts.
    """
    cells = [row for row in rows if not isinstance(row, Text)]
    widths = [_width(head, [row[at] for row in cells]) for at, head in enumerate(heads)]
    parts = [range(len(heads))] if names_above else _parts(widths, console.width, together, repeated)
    for number, part in enumerate(parts):
        if number:
            console.print()
        above = names_above and sum(widths) - 1 > console.width
        columns = [(*heads[at], widths[at]) for at in part]
        if above:
            columns[0] = (INDENT, "left", 1 + len(INDENT))
            console.print(heads[0][0], style="bold")
        table = _table(columns, named=named)
        for row in rows:
            name = row if isinstance(row, Text) else row[0] if above else None
            if name is not None:
                _print_rows(console, table)
                console.print(name, soft_wrap=True)
                table = _table(columns, named=False)
            if not isinstance(row, Text):
                table.add_row(*(INDENT if above and not at else row[at] for at in part))
        _print_rows(console, table)


def _print_rows(console: Console, table: Table) -> None:
    if table.row_count or table.show_header:
        console.print(table, crop=False)


def _table(columns: Sequence[tuple[str, Stands, int]], *, named: bool) -> Table:
    """Make an empty table whose columns are as wide as in the tables that continue it."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_header=named)
    if all(stands != "wrapped" for _, stands, _ in columns):
        table.width = (
            sum(width for _, _, width in columns) - 1
        )  # Rich cuts cells where this is more than there is
    for name, stands, width in columns:
        table.add_column(
            name,
            justify="right" if stands == "right" else "left",
            no_wrap=stands != "wrapped",
            overflow="fold",
            min_width=None if stands == "wrapped" else width - 1,
        )
    return table


def _width(head: Head, cells: Sequence[Cell]) -> int:
    """Return the width of a column with the blank that follows it; a wrapped one needs its longest word."""
    name, stands = head
    lines = (line for cell in (name, *cells) for line in _unbreakable(str(cell), stands))
    return 1 + max(map(cell_len, lines))


def _unbreakable(cell: str, stands: Stands) -> list[str]:
    return (cell.split() if stands == "wrapped" else cell.split("\n")) or [""]


def _parts(widths: Sequence[int], width: int, together: int, repeated: int) -> list[list[int]]:
    """List the columns of each part: as many as fit, and at least one beside the repeated ones."""
    first = list(range(repeated))
    parts = [[*first]]
    for at in range(repeated, len(widths), together):
        kept = list(range(at, min(at + together, len(widths))))
        if len(parts[-1]) > repeated and sum(widths[one] for one in (*parts[-1], *kept)) - 1 > width:
            parts.append([*first])
        parts[-1] += kept
    return parts
