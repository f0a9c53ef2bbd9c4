"""Markdown for the pages, and the command line of benches whose tables stand there."""

import argparse
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
WIDTH = 160
"""Characters of a line of a page (tests/unit/test_pages.py)."""


def line(cells: Sequence[str]) -> str:
    """Write a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def wrapped(text: str) -> str:
    """Break lines of prose that are wider than a page's; rows of tables, headings and pictures stay whole."""
    return "\n".join(map(_wrapped, text.split("\n")))


def _wrapped(one: str) -> str:
    if len(one) <= WIDTH or one.startswith(("|", "#", "![", "[<picture>")):
        return one
    indent = len(one) - len(one.lstrip(" -"))
    return textwrap.fill(
        one, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def print_report(doc: str | None, name: str, report: Callable[[], str]) -> int:
    """Print what ``report`` returns; with --write put it into the block of that name, too."""
    from bench.tables.make import put

    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = report()
    print(text)
    if options.write:
        put(name, text)
    return 0
