"""A command of agelab about runs, and what it prints, for a page.

The commands of the table are carried out one after the other in a new directory; the last one is shown.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agelab.base.errors import HostError
from agelab.results.run_directory import RunDirectory
from agelab.store.home import default_home
from docs.make.catalogue import Made, Table
from docs.make.page import PROJECT
from docs.make.show import shown_block

AGELAB = Path(sys.executable).with_name("agelab")
ENDED = (0, 1)
"""Exit codes of a command that has answered: 1 says that a result differs."""
WHEN = re.compile(r"\b\d{8}-\d{6}(?=-)")
"""When a run or a bisect began, in its name."""


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show the last command as a reader types it, and its output; no run is called by its day. Raises HostError."""
    names = [run.name for run in runs]
    with tempfile.TemporaryDirectory() as directory:
        for command in table.commands:
            words = command.format(*names, runs=" ".join(names), project=f"{PROJECT}/")
            printed = _printed(words, directory)
    shown = _of_any_day(f"$ .venv/bin/agelab {words}\n{printed}", runs)
    for there, here in ((directory, "..."), (f"{PROJECT}/", ""), (str(default_home()), ".agelab")):
        shown = shown.replace(there, here)
    return shown_block((line.rstrip() for line in shown.strip("\n").split("\n")), runs)


def _of_any_day(text: str, runs: Sequence[RunDirectory]) -> str:
    """Number the runs in place of their seconds, and take the day from every other name."""
    numbered = {
        run.name: f"YYYYMMDD-HHMM{number:02}-{run.plan().scenario}" for number, run in enumerate(runs, 1)
    }
    for name in sorted(numbered, key=len, reverse=True):  # ...-small-1 has ...-small in it
        text = text.replace(name, numbered[name])
    return WHEN.sub("YYYYMMDD-HHMMSS", text)


def _printed(command: str, directory: str) -> str:
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
