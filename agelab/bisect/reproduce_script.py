"""Write a shell script that runs both neighbours of the change again, side by side."""

import shlex
import sys
from pathlib import Path

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
    run = shlex.join(options.arguments())
    step = question.profiled_step
    profile = " ${PROFILE:+--profile}" if step else ""
    shown = shlex.join(["--metric", question.criterion]) if question.metric else ""
    lines = [
        "#!/bin/sh",
        f"# {' '.join(f'The first bad kernel between {question.good} and {question.bad}: {name}'.split())}",
        "# This runs the last good kernel and the first bad one, and puts them side by side.",
        *(["# With PROFILE=1 it also says in which functions of the kernel they differ."] if profile else []),
        "set -u",
        f"agelab=${{AGELAB:-{shlex.quote(str(Path(sys.executable).with_name('agelab')))}}}",
        f'export AGELAB_HOME="${{AGELAB_HOME:-{home}}}"',
        f"cd {shlex.quote(question.directory)} || exit",
        f"before={shlex.quote(before)}",
        f"after={shlex.quote(after)}",
    ]
    if not options.real_disks:
        lines += [
            f'said=$("$agelab" run {run} --kernel "$before" --kernel "$after"{profile})',
            "status=$?",
            "printf '%s\\n' \"$said\"",
            'set -- $(printf \'%s\\n\' "$said" | sed -n "s/.*: .*agelab\'* sweep //p")',
        ]
    else:  # real disks serve one run after the other
        lines += [
            "status=0",
            "set --",
            'for kernel in "$before" "$after"; do',
            f'  said=$("$agelab" run {run} --kernel "$kernel") || status=$?',
            "  printf '%s\\n' \"$said\"",
            '  set -- "$@" $(printf \'%s\\n\' "$said" | sed -n "s/.*: .*agelab\'* show \\([^ ]*\\).*/\\1/p")',
            "done",
        ]
    lines += [
        'test $# -eq 2 || exit "$status"',
        f'"$agelab" sweep "$@" {shown}'.rstrip(),
    ]
    if profile:
        lines.append(f'test -z "${{PROFILE:-}}" || "$agelab" profile "$2" {shlex.quote(step)} --against "$1"')
    return "\n".join(lines) + "\n"
