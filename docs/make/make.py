"""Make blocks of pages again, and say what changed in them."""

import difflib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from agelab.base.errors import AgelabError, HostError
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from docs.make import block, catalogue, proof
from docs.make.catalogue import Catalogue, Table
from docs.make.page import DOCS, PROJECT, wrapped

MOST = 8
"""Changed lines to show of a block."""
DIGEST = re.compile(r"\bsha256:[0-9a-f]{64}\b")
"""A key or a digest of a cell."""

Run = Callable[[RunOptions, Sequence[str]], Sequence[RunDirectory]]
"""Runs options, on each kernel where kernels are named."""


@dataclass
class Outcome:
    """What became of a block."""

    table: Table
    word: str
    """unchanged, changed, failed, or left."""
    why: str = ""
    lines: Sequence[str] = ()
    """The changed lines, each with + or - before it."""
    cells: str = ""
    """How many of its cells ran and how many are not ok."""


@dataclass
class Making:
    """Makes tables one after the other. Several tables of one run have it once."""

    run: Run
    named: bool
    """The user named the tables: those that take no run are made even where their code is the same."""

    _done: dict[object, Sequence[RunDirectory]] = field(default_factory=dict)
    _written: dict[str, block.Block] = field(default_factory=dict)
    """The blocks that the commands that have ended may have written, as they were before."""

    def make(self, table: Table) -> Outcome:
        """Make a block again. Where that fails the old one stays, marked unless it is of this code."""
        try:
            return self._made_of_runs(table) if table.runs else self._made_by_command(table)
        except AgelabError as error:
            mark(table, None)
            return Outcome(table, "failed", "\n".join(filter(None, (str(error), error.hint))))

    def _made_of_runs(self, table: Table) -> Outcome:
        old = block.find(table)
        runs = [run for options in table.asked for run in self._run(options, table.kernels)]
        seconds, cells = _cells(runs)
        made = table.made(runs)
        body = wrapped(made.text).strip("\n")
        of = (proof.cells(table), proof.text(table), proof.samples(runs))
        new = block.Block(table.name, date.today(), body, *of, seconds)
        drawn = [path for path, content in made.files.items() if _write(DOCS / path, content)]
        return _replace(table, old, new, [f"picture docs/{path}" for path in sorted(map(str, drawn))], cells)

    def _run(self, options: RunOptions, kernels: Sequence[str]) -> Sequence[RunDirectory]:
        asked = (options, tuple(kernels))
        if asked not in self._done:
            self._done[asked] = self.run(options, kernels)
        return self._done[asked]

    def _made_by_command(self, table: Table) -> Outcome:
        old = block.find(table)
        if table.name not in self._written:
            if proof.is_current(table, old) and not old.stale and not self.named:
                return Outcome(table, "unchanged", "takes no run, and its code is the same")
            if table.needs and not os.environ.get(table.needs):
                mark(table, None)
                why = f"it takes data that are not part of agelab: {table.needs}=<directory>"
                return Outcome(table, "left", why)
            every = catalogue.read().tables
            self._written |= {other.name: block.find(other) for other in every if other.maker == table.maker}
            _command(table)
        new = replace(block.find(table), text=proof.text(table), made=date.today(), stale=False)
        return _replace(table, self._written.get(table.name, old), new, [], "")


def _command(table: Table) -> None:
    """Run the command that writes the block. Raises HostError that has its last line."""
    data = [os.environ[table.needs]] if table.needs else []
    argv = [sys.executable, "-m", table.module, *data, "--write"]
    done = subprocess.run(argv, cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise HostError(f"{table.module} ended with {done.returncode}: {' '.join(last)}")


def _replace(table: Table, old: block.Block, new: block.Block, pictures: Sequence[str], cells: str) -> Outcome:
    """Put a block in place of the old one; one that says the same, of the same code, stays as it is."""
    lines = [*_changes(old.body, new.body), *pictures]
    if lines or old.stale or (old.cells, old.text, old.samples) != (new.cells, new.text, new.samples):
        block.replace(table, new)
    return Outcome(table, "changed" if lines else "unchanged", "", lines, cells)


def _changes(old: str, new: str) -> list[str]:
    """List the lines that differ."""
    rows = difflib.unified_diff(old.split("\n"), new.split("\n"), n=0, lineterm="")
    return [row for row in rows if row[1:].strip() and not row.startswith(("---", "+++", "@@"))]


def _cells(runs: Sequence[RunDirectory]) -> tuple[int, str]:
    """Return how many seconds the cells took, one at a time, and how they ended, in words.

    Raises HostError where a cell was interrupted: it says nothing yet.
    """
    ends = [run.end(number) for run in runs for number in range(len(run.plan().cells))]
    if cut := sum(1 for end in ends if end is None or end.status is Status.INTERRUPTED):
        raise HostError(f"{cut} of {len(ends)} cells were interrupted", hint="the same command goes on with them")
    seconds = sum(end.host_seconds for end in ends if end)
    reused = sum(1 for end in ends if end and end.reused)
    bad = sum(1 for end in ends if end and end.status is not Status.OK)
    summary = f"{len(ends)} cells, {reused} reused" + (f", {bad} not ok" if bad else "")
    return round(seconds), summary


def _write(path: Path, content: bytes) -> bool:
    """Write a picture where it differs from the one that is there. Returns True if it does."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def described(outcome: Outcome) -> str:
    """Return what became of a block, in lines."""
    table = outcome.table
    head = f"{outcome.word:<9}  {table.name} ({table.page})"
    head += f": {outcome.cells}" if outcome.cells else ""
    lines = [head]
    if outcome.why:
        lines += [f"           {line}" for line in outcome.why.splitlines()]
    lines += [f"           {line[:150]}" for line in outcome.lines[:MOST]]
    if more := len(outcome.lines) - MOST:
        lines += [f"           and {more} more lines: git diff {table.page}"] if more > 0 else []
    return "\n".join(lines)


# ---- without a run ----


def mark(table: Table, runs: Path | None) -> bool | None:
    """Have a block say what is proved of it: that it is of an earlier code, unless it is of this one.

    Where the store with these runs has the samples that a block was made of, they are the proof.
    Returns True for a block that says now that it is of an earlier code, False for one that is proved, None for one
    that stays as it is.
    """
    old = block.find(table)
    new = old
    if not proof.is_current(table, old):
        same = proof.makes_the_same(table, old, runs) if runs else None
        new = replace(old, text=proof.text(table)) if same else old
    new = replace(new, stale=not proof.is_current(table, new))
    if new == old:
        return None
    block.replace(table, new)
    return new.stale


def pages() -> list[Path]:
    """List the pages that may have blocks."""
    return [PROJECT / "README.md", *sorted(DOCS.rglob("*.md"))]


def errors(tables: Catalogue, where: Sequence[Path], runs: Path) -> Iterator[str]:
    """Yield what is wrong: a block that is of another code and does not say so, or that is not in its place."""
    for table in tables.tables:
        try:
            yield from _wrong(table, runs)
        except AgelabError as error:
            yield "\n  ".join(filter(None, (str(error), error.hint)))
    known = {(table.path, table.name) for table in tables.tables}
    for page in where:
        try:
            names = [each.name for each in block.blocks(page)]
        except AgelabError as error:
            if page not in {table.path for table in tables.tables}:  # else it was told
                yield str(error)
            continue
        place = page.relative_to(PROJECT) if page.is_relative_to(PROJECT) else page
        for name in names:
            if (page, name) not in known:
                yield f"{place}: docs/tables.toml has no table {name} in this page"
        for number, line in block.outside(page):
            if DIGEST.search(line):
                yield f"{place}:{number}: a digest that is in no table: nobody can tell which code it is of"


def _wrong(table: Table, runs: Path) -> Iterator[str]:
    there = block.find(table)
    current = proof.is_current(table, there)
    if current and there.stale:
        yield (
            f"{table.page}: table {table.name} is of this code, and says that it is of an earlier one\n"
            f"  take that out: {table.command} STALE=1"
        )
    if current or there.stale:
        return
    if there.cells != proof.cells(table):
        why = "the keys of its cells have changed"
    elif proof.makes_the_same(table, there, runs):
        yield (
            f"{table.page}: table {table.name} is made by other code, which makes the same of the same samples\n"
            f"  have its mark say so: {table.command} STALE=1"
        )
        return
    else:
        why = "other code makes its text, and this store does not prove that it is the same"
    yield (
        f"{table.page}: table {table.name} is of an earlier code (made {there.made}): {why}\n"
        f"  make it again: {table.command}; or have the page say so: {table.command} STALE=1"
    )
