"""What agelab prints of runs, for a page: a part of the output, and below it their kernels and QEMU."""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from agelab.analysis.sweep import Sweep, load_sweep
from agelab.base.errors import HostError
from agelab.present.report.blocks import Block
from agelab.present.view.run_tables import run_blocks
from agelab.present.view.summary import result_blocks
from agelab.present.view.sweep import sweep_blocks, write_plots
from agelab.present.view.terminal import print_blocks
from agelab.results.measure import Measure
from agelab.results.run_directory import RunDirectory
from agelab.store.home import default_home
from docs.make.catalogue import Made, Table
from docs.make.page import PROJECT

OF_THIS_STORE = ("  picture ", "  blocks ", "  the digest of the docs: ", "  reused ", "the whole result:")
"""How lines begin that say where something lies, or came from."""
GAP = " ..."
CELLS = re.compile(r"\n\n *(?:cells? +)?status ")
"""The begin of the table of cells."""
SUMMARY_WIDTH, SWEEP_WIDTH = 80, 100
"""Characters of the terminals that they are printed for."""
AGELAB = Path(sys.executable).with_name("agelab")
ENDED = (0, 1)
"""Exit codes of a command that has answered: 1 says that a result differs."""
TWO_MACHINES = "laptop, busy, Debian 12", "server without KVM, Debian 13"
KEY_SHOWN = len("sha256:") + 12
"""Characters of a key that a reader compares."""
WHEN = re.compile(r"\b\d{8}-\d{6}(?=-)")
"""When a run or a bisect began, in its name."""


def show(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """What ``agelab show`` prints of the cells: all of it, or the lines that the table names."""
    shown = [line for run in runs for line in _cells(run)]
    lines = list(_named(shown, table.lines)) if table.lines else shown
    return _shown(lines, runs)


def promise(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """What two machines print of a cell, side by side: the table's lines, key and digest as far as one looks."""
    [run] = runs
    lines = ["$ make scenario NAME=" + str(table.runs[0]["name"]), "        aged  control slowdown"]
    for words in map(str.split, _cells(run)):
        if words[:1] and words[0] in table.lines:
            lines.append(f" {words[0]:6} {' '.join(words[1:4])}")
        elif words[:1] in (["inputs_key"], ["digest"]):
            lines.append(f" {words[0]:11} {words[1][:KEY_SHOWN]}...")
    columns = zip([TWO_MACHINES[0], *lines], [TWO_MACHINES[1], *lines], strict=True)
    return Made("\n".join(["```", *(f"{one:45} {other}" for one, other in columns), "```"]))


def summary(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """The summary that a run of several cells ends with: its answer, and a bar for each variant."""
    [run] = runs
    text = "\n".join(line.rstrip() for line in _printed(result_blocks(run)).split("\n"))
    _, _, answer = text.partition("\n\n")
    [answer, *_] = CELLS.split(answer, maxsplit=1)
    return _shown(map(_narrow, answer.split("\n")), runs)


def sweep(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """What ``agelab sweep`` prints of runs on several kernels, and its plots."""
    loaded = load_sweep(runs)
    measures = loaded.chosen(table.metrics)
    printed = (line.rstrip() for line in _printed(sweep_blocks(loaded, measures)).split("\n"))
    narrow = (line if "  " in line.strip() else textwrap.fill(line, SWEEP_WIDTH) for line in printed)
    lines = [_shown(narrow, runs).text]
    files = _plots(loaded, measures, table.pictures) if table.pictures else {}
    for path in files:
        shown = os.path.relpath(Path("docs") / path, Path(table.page).parent)
        lines += ["", f"![{path.stem.replace('-', ' ')}, over the kernels]({shown})"]
    return Made("\n".join(lines), files)


def transcript(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """The last of the table's commands as a reader types it, and its output; no run is called by its day.

    All of them are carried out one after the other in a new directory. Raises HostError.
    """
    names = [run.name for run in runs]
    with tempfile.TemporaryDirectory() as directory:
        for command in table.commands:
            words = command.format(*names, runs=" ".join(names), project=f"{PROJECT}/")
            printed = _answer_of(words, directory)
    shown = _of_any_day(f"$ .venv/bin/agelab {words}\n{printed}", runs)
    for there, here in ((directory, "..."), (f"{PROJECT}/", ""), (str(default_home()), ".agelab")):
        shown = shown.replace(there, here)
    return _shown((line.rstrip() for line in shown.strip("\n").split("\n")), runs)


def environment(runs: Sequence[RunDirectory]) -> str:
    """Name the kernels and the QEMU of runs."""
    plans = [run.plan().provenance for run in runs]
    kernels = dict.fromkeys(str(provenance["kernel"]) for provenance in plans)
    return f"Kernel {', '.join(kernels)}; {', '.join(dict.fromkeys(str(provenance['qemu']) for provenance in plans))}."


def _shown(lines: Iterable[str], runs: Sequence[RunDirectory]) -> Made:
    """Put what is printed of runs into a page, with their kernels and QEMU below it."""
    return Made("\n".join(["```", *lines, "```", "", environment(runs)]))


def _printed(blocks: Iterable[Block]) -> str:
    """Return what a terminal shows of blocks."""
    with redirect_stdout(io.StringIO()) as out:
        print_blocks(blocks)
    return out.getvalue().strip("\n")


def _cells(run: RunDirectory) -> list[str]:
    """Return the lines about cells: not the run's own head, nor what the study leaves open."""
    _, _, cells = _printed(run_blocks(run)).partition("\n\n")
    cells, _, _ = cells.partition("\n\nwhat the study leaves open")
    lines = (line.rstrip() for line in cells.split("\n"))
    return "\n".join(line for line in lines if not line.startswith(OF_THIS_STORE)).strip("\n").split("\n")


def _named(lines: Sequence[str], starts: Sequence[str]) -> Iterator[str]:
    """Yield the lines that begin as the table says, with dots where some between them are left out."""
    begins = [words.split() for words in starts]
    at = [number for number, line in enumerate(lines) if any(line.split()[: len(words)] == words for words in begins)]
    for before, number in zip([None, *at], at, strict=False):
        if before is not None and number > before + 1:
            yield GAP
        yield lines[number]


def _narrow(line: str) -> str:
    """Break a line of words; a row of a table stays whole."""
    hang = "  " if line.startswith("- ") else ""
    if "  " in line.strip():
        return line
    return textwrap.fill(line, SUMMARY_WIDTH, subsequent_indent=hang, break_on_hyphens=False)


def _plots(sweep: Sweep, measures: Sequence[Measure], directory: str) -> dict[Path, bytes]:
    with tempfile.TemporaryDirectory() as name:
        drawn = write_plots(sweep, measures, Path(name))
        return {Path(directory) / path.name: path.read_bytes() for path in drawn}


def _of_any_day(text: str, runs: Sequence[RunDirectory]) -> str:
    """Number the runs in place of their seconds, and take the day from every other name."""
    numbered = {run.name: f"YYYYMMDD-HHMM{number:02}-{run.plan().scenario}" for number, run in enumerate(runs, 1)}
    for name in sorted(numbered, key=len, reverse=True):  # ...-small-1 has ...-small in it
        text = text.replace(name, numbered[name])
    return WHEN.sub("YYYYMMDD-HHMMSS", text)


def _answer_of(command: str, directory: str) -> str:
    """Return what a command prints as its answer; how far it is goes to its other output."""
    done = subprocess.run(
        [str(AGELAB), *shlex.split(command)],
        cwd=directory,
        env={**os.environ, "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode not in ENDED:
        message = (done.stderr or done.stdout).split("agelab: ")[-1]
        raise HostError(f"agelab {command} ended with {done.returncode}: {message.strip()}")
    return done.stdout
