"""Write a shell script that runs both neighbours of the change again, side by side."""

import shlex
import sys
from pathlib import Path

from agelab.base import templates
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.kernel_runs import options_of
from agelab.bisect.question import BisectQuestion
from agelab.bisect.virtual_clock_rule import SEEDS_NEEDED

SCRIPT_FILE = "reproduce.sh"


def write(directory: BisectDirectory, question: BisectQuestion, before: str, after: str, name: str) -> None:
    (directory.path / SCRIPT_FILE).write_text(
        text(directory.path.parents[1], question, before, after, name), encoding="utf-8"
    )


def text(home: Path, question: BisectQuestion, before: str, after: str, name: str) -> str:
    """Return the script in POSIX sh. In the virtual clock it reproduces the digits, as the images are the same."""
    seeds = 1 if question.symptom else SEEDS_NEEDED
    options = options_of(question).changed(seeds=tuple(range(1, seeds + 1)))
    options = options.changed(fresh=options.guest_clock == "virtual")  # it runs again what the bisect has run
    change = f"The first bad kernel between {question.good} and {question.bad}: {name}"
    return templates.fill(
        "reproduce.sh",
        {},
        summary=" ".join(change.split()),
        agelab=str(Path(sys.executable).with_name("agelab")),
        home=home,
        directory=question.directory,
        before=before,
        after=after,
        run=shlex.join(options.arguments()),
        real_disks=options.real_disks,
        metric=shlex.join(["--metric", question.criterion]) if question.metric else "",
        step=question.profiled_step,
    )
