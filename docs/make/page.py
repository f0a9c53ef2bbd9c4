"""Text of the pages: tables in Markdown and in columns, and lines that are not too long."""

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
WIDTH = 160
"""Characters of a line of a page (tests/unit/docs/test_pages.py)."""


def line(cells: Iterable[str]) -> str:
    """Write a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]] = (), rules: Sequence[str] = ()) -> list[str]:
    """Write a Markdown table; ``rules`` are those below its head where some columns are numbers."""
    return [line(head), line(rules or ["---"] * len(head)), *map(line, rows)]


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write rows in columns as wide as their widest cell."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in lines
    )


def wrapped(text: str) -> str:
    """Break lines of prose that are wider than a page's; rows of tables, headings and pictures stay whole."""
    return "\n".join(map(_wrapped, text.split("\n")))


def _wrapped(text: str) -> str:
    if len(text) <= WIDTH or text.startswith(("|", "#", "![", "[<picture>")):
        return text
    indent = len(text) - len(text.lstrip(" -"))
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
