"""Look at crash states of several filesystems, each for a budget, and say what was found.

    .venv/bin/python -m bench.crash [--budget MINUTES] [--write]

Each is ``agelab crash one`` with the options that stand in the table. A budget is the host's time: with more of it more
disks are looked at, the states and distinct disks stay the same.
"""

import sys
from collections import Counter
from collections.abc import Sequence

from agelab.base.types import Defaults
from agelab.cli.options import open_store, say
from agelab.runner.crash import crash
from agelab.runner.crash.crash import Answer as Looked
from agelab.runner.crash.oracle import Kind
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid

ASKED: Sequence[tuple[str, Defaults, tuple[str, ...]]] = (
    ("ext4", "today", ()),
    ("btrfs", "today", ()),
    ("xfs", "today", ()),
    ("f2fs", "today", ()),
    ("reiserfs", "period", ()),
    ("ext3", "period", ()),
    ("ext4", "today", ("flush", "fua")),
)
"""Filesystem, defaults, and what the drive ignores."""
HEAD = (
    "filesystem",
    "states",
    "distinct disks",
    "looked at",
    "a second",
    "lost promises",
    "damage",
    "of torn writes",
)


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("--budget", type=float, default=2.0, metavar="MINUTES")
    return command.run(parser, lambda options: found(options.budget))


def found(minutes: float) -> Answer:
    """Ask of all of them."""
    store = open_store()
    rows = []
    for filesystem, defaults, ignored in ASKED:
        question = crash.ask("one", filesystem, "debian:6.1", defaults, budget=minutes, ignored=ignored, seed=1)
        rows.append(_row(crash.run(question, store, say)))
    text = "\n".join(grid(HEAD, rows, ["---", *["---:"] * (len(HEAD) - 1)]))
    return Answer(
        {"crash-states": f"{text}\n\n`agelab crash one`, seed 1, kernel debian:6.1, {minutes:g} minutes each."}
    )


def _row(answer: Looked) -> list[str]:
    question = answer.question
    name = f"{question.filesystem}, {question.defaults}" + "".join(f", ignores {word}" for word in question.ignored)
    kinds = Counter(
        "torn" if found.is_torn else "lost" if Kind(found.kind).is_promise else "damage" for found in answer.violations
    )
    rate = answer.looked / answer.look_seconds if answer.look_seconds else 0
    numbers = (
        answer.states,
        answer.disks,
        answer.looked,
        f"{rate:.1f}",
        kinds["lost"],
        kinds["damage"],
        kinds["torn"],
    )
    return [name, *map(str, numbers)]


if __name__ == "__main__":
    sys.exit(main())
