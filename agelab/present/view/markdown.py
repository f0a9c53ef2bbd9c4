"""Write documents as GitHub's Markdown; every text is escaped."""

import re
from collections.abc import Iterable, Iterator

from agelab.present.report.blocks import (
    Block,
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


def lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield a document's lines, an empty one after each block. Of a figure there are its words."""
    for block in blocks:
        match block:
            case Heading():
                yield f"{'#' * block.level} {escape(block.text)}"
            case Text() | Line():
                yield escape(block.text)
            case Table():
                if block.caption:
                    yield from (f"**{escape(block.caption)}**", "")
                yield from _table_lines(block)
                if block.note:
                    yield from ("", escape(block.note))
            case Prose():
                if block.title:
                    yield from (f"**{escape(block.title)}**", "")
                for line in block.lines:
                    yield from _item(line if isinstance(line, Item) else Item(line), "- " if block.listed else "")
            case Facts():
                yield from (f"- {escape(name)}: {escape(value)}" for name, value in block.rows)
            case Command():
                yield from (escape(block.about), "", *(f"    {line}" for line in block.text.splitlines()))
            case Results():
                yield escape(f"{block.caption}: {len(block.rows)} rows")
            case _:
                yield from map(escape, in_words(block))
        yield ""


def _item(item: Item, bullet: str) -> Iterator[str]:
    code = item.code.replace("`", "'")
    words = (
        item.lead and f"**{escape(item.lead)}**:",
        escape(item.text),
        code and f"`{code}`",
        *(f"*{escape(remark)}*" for remark in item.remarks),
    )
    yield bullet + " ".join(filter(None, words))
    for below in item.below:
        yield from _item(below, f"  {bullet}")


def _table_lines(table: Table) -> Iterator[str]:
    """Yield a table's rows below their head."""

    def row(cells: Iterable[str | TableCell]) -> str:
        words = (cell.text if isinstance(cell, TableCell) else cell for cell in cells)
        return f"| {' | '.join(map(escape, words))} |"

    yield row(column.name for column in table.columns)
    yield f"|{'|'.join('---:' if column.number else '---' for column in table.columns)}|"
    empty = [""] * (len(table.columns) - 1)
    yield from (row([line, *empty] if isinstance(line, str) else line) for line in table.rows)


def escape(text: str) -> str:
    """Put a text on one line, with Markdown and HTML escaped."""
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", " ".join(text.split()))
