"""Show documents on a terminal within its width, and for a file, a program or a pager in whole lines.

docs/report.md tells the user.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from textwrap import TextWrapper

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from agelab.base.verbs import as_called
from agelab.present import view
from agelab.present.report.blocks import (
    Align,
    Block,
    Column,
    Command,
    Facts,
    Heading,
    Item,
    Line,
    Prose,
    Results,
    Table,
    TableCell,
    Text,
    in_words,
)

WHOLE = 10_000
"""Characters of a line that does not go to a terminal."""
INDENT = "   "
"""The first cell of a row whose name stands above it."""


def can_redraw(console: Console) -> bool:
    """Return True if lines may be redrawn in place: on a terminal, and not in a log.

    FORCE_COLOR asks for colours in a log, which makes no terminal of it.
    """
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return console.file.isatty() and os.environ.get("TERM") not in view.DUMB_TERMINALS and not in_ci


def open_console(*, stderr: bool = False) -> Console:
    """Open standard output, or standard error, as it is at this moment."""
    watched = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if watched else WHOLE,
        color_system=None if view.colour_unwanted() else "auto",
    )


def print_blocks(blocks: Iterable[Block], console: Console | None = None) -> None:
    """Print a document: each block as soon as it is made. Of a figure there are its words."""
    console = console or open_console()
    for block in blocks:
        match block:
            case Heading():
                _print_words(console, f"\n{block.text}", 0, bold=True)
            case Text():
                _print_words(console, block.text, block.hang, bold=block.bold)
            case Line():
                console.print(block.text, soft_wrap=True, style=_style(block.bold))
            case Table():
                if block.caption:
                    _print_words(console, f"\n{block.caption}", 0, bold=True)
                _print_table(console, block)
                if block.note:
                    _print_words(console, block.note, 2)
            case Facts():
                for name, value in block.rows:
                    console.print(f"{name:12} {value}", soft_wrap=True)
            case Prose():
                if block.title:
                    _print_words(console, f"\n{block.title}", 0, bold=True)
                for line in block.lines:
                    if isinstance(line, Item):
                        _print_item(console, line, 0)
                    else:
                        _print_words(console, f"- {line}" if block.listed else line, 2 if block.listed else 0)
            case Command():
                _print_words(console, block.about, 2)
                console.print(f"  {as_called(block.text)}", soft_wrap=True)
            case Results():
                _print_words(console, f"\n{block.caption}: {len(block.rows)} rows", 2)
            case _:
                for words in in_words(block):
                    _print_words(console, words, 2)


def _print_item(console: Console, item: Item, depth: int) -> None:
    name, blank = item.lead or item.code, INDENT * depth
    hang = len(blank) + (2 if depth else len(INDENT))
    _print_words(console, f"{blank}{name and f'{name}: '}{item.text}", hang)
    for below in (*map(Item, item.remarks), *item.below):
        _print_item(console, below, depth + 1)


def _style(bold: bool) -> str:
    return "bold" if bold else ""


def _print_words(console: Console, line: str, hang: int, *, bold: bool = False) -> None:
    """Print a line of words, on a terminal as several lines.

    No word is broken: one that is longer than the terminal is wide can still be copied. Commands are as the user has to
    type them.
    """
    line = as_called(line)
    if console.width < WHOLE:
        words = TextWrapper(console.width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False)
        line = "\n".join(words.fill(row) for row in line.split("\n"))
    console.print(line, soft_wrap=True, style=_style(bold))


def _print_table(console: Console, table: Table) -> None:
    """Print rows below their heads, where any column has one. No figure is cut."""
    heads, rows = table.columns, table.rows
    if table.grouped:
        heads, rows = heads[1:], [*_grouped(rows)]
    cells = [row for row in rows if not isinstance(row, str)]
    widths = [_width(head, [row[at] for row in cells]) for at, head in enumerate(heads)]
    named = any(head.name for head in heads)
    if table.names_above:
        parts = [list(range(len(heads)))]
    else:
        parts = _parts(widths, console.width, table.together, table.repeated)
    for number, part in enumerate(parts):
        if number:
            console.print()
        above = table.names_above and sum(widths) - 1 > console.width
        columns = [(heads[at].name, heads[at].align, widths[at]) for at in part]
        if above:
            columns[0] = (INDENT, "left", 1 + len(INDENT))
            console.print(heads[0].name, style="bold")
        grid = _grid(columns, named=named)
        for row in rows:
            across = isinstance(row, str)
            if across or above:
                _print_rows(console, grid, sum(widths))
                console.print(_rich(row if isinstance(row, str) else row[0]), soft_wrap=True, style=_style(across))
                grid = _grid(columns, named=False)
            if not isinstance(row, str):
                grid.add_row(*(INDENT if above and not at else _rich(row[at]) for at in part))
        _print_rows(console, grid, sum(widths))


def _grouped(rows: Sequence[Sequence[str | TableCell] | str]) -> Iterator[Sequence[str | TableCell] | str]:
    """Yield rows without their first cell, which stands above all that have it."""
    above = None
    for row in rows:
        if isinstance(row, str):
            yield row
            continue
        if (group := str(_rich(row[0]))) != above:
            yield f" {group}"
            above = group
        yield [f"   {_rich(row[1])}", *row[2:]]


def _rich(cell: str | TableCell) -> RichText | str:
    if isinstance(cell, str):
        return cell
    text = RichText(cell.text, cell.colour)
    if cell.more:
        text.append(f"\n{cell.more}", style="bold")
    return text


def _print_rows(console: Console, grid: RichTable, least: int) -> None:
    if grid.row_count or grid.show_header:
        console.print(grid, crop=False, width=max(console.width, least))


def _grid(columns: Sequence[tuple[str, Align, int]], *, named: bool) -> RichTable:
    """Make an empty table whose columns are as wide as in the tables that continue it."""
    grid = RichTable(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_header=named)
    if all(align != "wrapped" for _, align, _ in columns):
        grid.width = sum(width for _, _, width in columns) - 1  # Rich cuts cells where this is more than there is
    for name, align, width in columns:
        grid.add_column(
            name,
            justify="right" if align == "right" else "left",
            no_wrap=align != "wrapped",
            overflow="fold",
            min_width=None if align == "wrapped" else width - 1,
        )
    return grid


def _width(head: Column, cells: Sequence[str | TableCell]) -> int:
    """Return the width of a column with the blank that follows it; a wrapped one needs its longest word."""
    separator = None if head.align == "wrapped" else "\n"
    pieces = (piece for cell in (head.name, *cells) for piece in str(_rich(cell)).split(separator))
    return 1 + max(map(cell_len, pieces), default=0)


def _parts(widths: Sequence[int], width: int, together: int, repeated: int) -> list[list[int]]:
    """List the columns of each part: as many as fit, and at least one beside the repeated ones."""
    first = list(range(repeated))
    parts = [[*first]]
    for at in range(repeated, len(widths), together):
        kept = list(range(at, min(at + together, len(widths))))
        if len(parts[-1]) > repeated and sum(widths[column] for column in (*parts[-1], *kept)) - 1 > width:
            parts.append([*first])
        parts[-1] += kept
    return parts
