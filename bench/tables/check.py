"""Are the blocks of the pages of today's code? Part of ``make check``."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agelab.base.errors import AgelabError
from bench.tables import block, dependencies
from bench.tables.catalogue import PROJECT, Catalogue, Table

DIGEST = re.compile(r"\bsha256:[0-9a-f]{64}\b")
"""A key or a digest of a cell."""


def pages() -> list[Path]:
    """List the pages that may have blocks."""
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def errors(catalogue: Catalogue, where: Sequence[Path]) -> Iterator[str]:
    """Yield what is wrong: a block that is of another code and does not say so, or that is not in its place."""
    for table in catalogue.tables:
        try:
            found = block.find(table)
            yield from _wrong(table, found)
        except AgelabError as error:
            yield "\n  ".join(filter(None, (str(error), error.hint)))
    known = {(table.path, table.name) for table in catalogue.tables}
    for page in where:
        try:
            names = [one.name for one in block.blocks(page)]
        except AgelabError as error:
            if page not in {table.path for table in catalogue.tables}:  # else it was told
                yield str(error)
            continue
        place = page.relative_to(PROJECT) if page.is_relative_to(PROJECT) else page
        for name in names:
            if (page, name) not in known:
                yield f"{place}: docs/tables.toml has no table {name} in this page"
        for number, line in block.outside(page):
            if DIGEST.search(line):
                yield f"{place}:{number}: a digest that is in no table: nobody can tell which code it is of"


def _wrong(table: Table, found: block.Block) -> Iterator[str]:
    current = dependencies.key(table) == found.of
    if not current and not found.stale:
        yield (
            f"{table.page}: table {table.name} is of an earlier code ({found.of}, made {found.made})\n"
            f"  make it again: {table.command}; or have the page say so: {table.command} STALE=1"
        )
    if current and found.stale:
        yield (
            f"{table.page}: table {table.name} is of this code, and says that it is of an earlier one\n"
            f"  take that out: {table.command} STALE=1"
        )


def stale(catalogue: Catalogue) -> list[Table]:
    """List the tables whose blocks say that they are of an earlier code."""
    return [table for table in catalogue.tables if block.find(table).stale]
