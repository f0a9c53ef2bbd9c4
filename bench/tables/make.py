"""Make blocks of pages again, and say what changed in them."""

import difflib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from agelab.base.errors import AgelabError, HostError
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.run.request.options import RunOptions
from bench.page import DOCS, wrapped
from bench.tables import block, catalogue, dependencies
from bench.tables.catalogue import PROJECT, Table
from bench.tables.made import maker

MOST = 8
"""Changed lines to show of a block."""

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
            mark(table)
            return Outcome(table, "failed", "\n".join(filter(None, (str(error), error.hint))))

    def _made_of_runs(self, table: Table) -> Outcome:
        old, key = block.find(table), dependencies.key(table)
        runs = [run for options in table.asked for run in self._run(options, table.kernels)]
        seconds, cells = _cells(runs)
        made = maker(table)(table, runs)
        new = block.Block(table.name, key, date.today(), seconds, wrapped(made.text).strip("\n"))
        drawn = [path for path, content in made.files.items() if _write(DOCS / path, content)]
        return _replace(table, old, new, [f"picture docs/{path}" for path in sorted(map(str, drawn))], cells)

    def _run(self, options: RunOptions, kernels: Sequence[str]) -> Sequence[RunDirectory]:
        what = (options, tuple(kernels))
        if what not in self._done:
            self._done[what] = self.run(options, kernels)
        return self._done[what]

    def _made_by_command(self, table: Table) -> Outcome:
        old, key = block.find(table), dependencies.key(table)
        if table.name not in self._written:
            if old.of == key and not old.stale and not self.named:
                return Outcome(table, "unchanged", "takes no run, and its code is the same")
            if table.needs and not os.environ.get(table.needs):
                mark(table)
                why = f"it takes data that are not part of agelab: {table.needs}=<directory>"
                return Outcome(table, "left", why)
            every = catalogue.read().tables
            self._written |= {one.name: block.find(one) for one in every if one.maker == table.maker}
            _command(table)
        new = replace(block.find(table), of=key, made=date.today(), stale=False)
        return _replace(table, self._written.get(table.name, old), new, [], "")


def _command(table: Table) -> None:
    """Run the command that writes the block. Raises HostError that has its last line."""
    data = [os.environ[table.needs]] if table.needs else []
    argv = [sys.executable, "-m", f"bench.{table.maker}", *data, "--write"]
    done = subprocess.run(argv, cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise HostError(f"bench.{table.maker} ended with {done.returncode}: {' '.join(last)}")


def mark(table: Table) -> bool:
    """Have the block say that it is of an earlier code, where it is. Returns whether it did not say so before."""
    found = block.find(table)
    stale = found.of != dependencies.key(table)
    if stale != found.stale:
        block.replace(table, replace(found, stale=stale))
    return stale and not found.stale


def put(name: str, text: str) -> None:
    """Put a text into the block of that name, for a maker that is a command: ``make`` says what it is of then."""
    [table] = catalogue.read().named(name)
    old = block.find(table)
    new = block.Block(name, dependencies.key(table), date.today(), old.seconds, wrapped(text).strip("\n"))
    if (new.of, new.body, False) != (old.of, old.body, old.stale):
        block.replace(table, new)


def _replace(
    table: Table, old: block.Block, new: block.Block, pictures: Sequence[str], cells: str
) -> Outcome:
    """Put a block in place of the old one; one that says the same, of the same code, stays as it is."""
    lines = [*_changes(old.body, new.body), *pictures]
    if lines or old.of != new.of or old.stale:
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
        raise HostError(
            f"{cut} of {len(ends)} cells were interrupted", hint="the same command goes on with them"
        )
    seconds = sum(end.host_seconds for end in ends if end)
    reused = sum(1 for end in ends if end and end.reused)
    bad = sum(1 for end in ends if end and end.status is not Status.OK)
    said = f"{len(ends)} cells, {reused} reused" + (f", {bad} not ok" if bad else "")
    return round(seconds), said


def _write(path: Path, content: bytes) -> bool:
    """Write a picture where it differs from the one that is there. Returns whether it does."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def described(outcome: Outcome) -> str:
    """Return what became of a block, in lines."""
    table = outcome.table
    said = f"{outcome.word:<9}  {table.name} ({table.page})"
    said += f": {outcome.cells}" if outcome.cells else ""
    lines = [said]
    if outcome.why:
        lines += [f"           {line}" for line in outcome.why.splitlines()]
    lines += [f"           {line[:150]}" for line in outcome.lines[:MOST]]
    if more := len(outcome.lines) - MOST:
        lines += [f"           and {more} more lines: git diff {table.page}"] if more > 0 else []
    return "\n".join(lines)
