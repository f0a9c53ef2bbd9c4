"""A block of a page: what stands between its mark and the next end.

    <!-- table: space cells: 53bcfbbf06e99481 text: 0b6e99481f06e994 samples: 1fa2c09d made: 2026-11-25 in: 214 s -->
    ...
    <!-- end -->

``cells``, ``text`` and ``samples`` are what it is of (proof.py), ``in`` is how long its cells took, one at a time.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from agelab.base.errors import InputError
from docs.make.catalogue import Table
from docs.make.page import PROJECT

END = "<!-- end -->"
MARK = re.compile(
    r"^<!-- table: (?P<name>[a-z0-9-]+)(?: cells: (?P<cells>[0-9a-f]{16}))?(?: text: (?P<text>[0-9a-f]{16}))?"
    r"(?: samples: (?P<samples>[0-9a-f]{8}(?:,[0-9a-f]{8})*))? made: (?P<made>\d{4}-\d\d-\d\d)"
    r"(?: in: (?P<seconds>\d+) s)? -->$",
)
ANY_MARK = re.compile(r"^<!-- (table|made by):")
STALE = re.compile(r"^\*Of an earlier agelab \(harness of \d{4}-\d\d-\d\d\): not made again yet\.\*$")


@dataclass(frozen=True)
class Block:
    """A block as it stands in a page."""

    name: str
    made: date
    body: str
    cells: str = ""
    text: str = ""
    samples: tuple[str, ...] = ()
    seconds: int | None = None
    stale: bool = False
    """It says to the reader that it is of an earlier code."""

    def lines(self) -> str:
        """Return it as lines of a page, from its mark to its end."""
        parts = {"cells": self.cells, "text": self.text, "samples": ",".join(self.samples)}
        of = "".join(f" {name}: {value}" for name, value in parts.items() if value)
        took = "" if self.seconds is None else f" in: {self.seconds} s"
        stale = f"*Of an earlier agelab (harness of {self.made}): not made again yet.*\n\n"
        body = (stale if self.stale else "") + self.body.strip("\n")
        return f"<!-- table: {self.name}{of} made: {self.made}{took} -->\n{body}\n{END}\n"


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page. Raises InputError that names the line of a mark that is none, or has no end."""
    return [block for _, _, block in _numbered(page, page.read_text(encoding="utf-8").split("\n"))]


def outside(page: Path) -> list[tuple[int, str]]:
    """Return the numbered lines of a page that are in no block. Raises InputError as ``blocks``."""
    lines = page.read_text(encoding="utf-8").split("\n")
    inside = {at for begin, end, _ in _numbered(page, lines) for at in range(begin, end + 1)}
    return [(at + 1, line) for at, line in enumerate(lines) if at not in inside]


def find(table: Table) -> Block:
    """Return the block of a table. Raises InputError unless its page has it once."""
    own = [block for block in blocks(table.path) if block.name == table.name]
    if len(own) != 1:
        raise InputError(
            f"{table.page} has {len(own) or 'no'} blocks of table {table.name}: it takes one",
            hint=f"put these two lines where it is to stand: <!-- table: {table.name} made: {date.today()} -->, {END}",
        )
    return own[0]


def replace(table: Table, block: Block) -> None:
    """Put a block into its page, in place of the one of its name. Raises InputError as ``find``."""
    find(table)
    lines = table.path.read_text(encoding="utf-8").split("\n")
    [(begin, end)] = [(begin, end) for begin, end, old in _numbered(table.path, lines) if old.name == block.name]
    lines[begin : end + 1] = block.lines().rstrip("\n").split("\n")
    table.path.write_text("\n".join(lines), encoding="utf-8")


def _numbered(page: Path, lines: Sequence[str]) -> list[tuple[int, int, Block]]:
    """Return the first and the last line of each block, and the block."""
    numbered = []
    name = page.relative_to(PROJECT) if page.is_relative_to(PROJECT) else page
    for begin, line in enumerate(lines):
        if not ANY_MARK.match(line):
            continue
        mark = MARK.match(line)
        if not mark:
            raise InputError(
                f"{name}:{begin + 1}: not the mark of a table: {line}",
                hint="docs/tables.toml names the tables; only make tables writes their marks",
            )
        rest = range(begin + 1, len(lines))
        end = next((at for at in rest if lines[at] == END or ANY_MARK.match(lines[at])), None)
        if end is None or lines[end] != END:
            raise InputError(f"{name}:{begin + 1}: table {mark['name']} has no line {END}")
        body = list(lines[begin + 1 : end])
        stale = bool(body and STALE.match(body[0]))
        numbered.append((begin, end, _block(mark, body[1:] if stale else body, stale)))
    return numbered


def _block(mark: re.Match[str], body: Sequence[str], stale: bool) -> Block:
    samples, seconds = mark["samples"], mark["seconds"]
    return Block(
        name=mark["name"],
        made=date.fromisoformat(mark["made"]),
        body="\n".join(body).strip("\n"),
        cells=mark["cells"] or "",
        text=mark["text"] or "",
        samples=tuple(samples.split(",")) if samples else (),
        seconds=None if seconds is None else int(seconds),
        stale=stale,
    )
