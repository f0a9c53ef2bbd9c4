"""``agelab bisect``: which kernel changed a result."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from agelab.base.errors import InputError, goes_on
from agelab.bisect.bisect_directory import BisectQuestion
from agelab.cli.options import json_option, open_store
from agelab.cli.run_options import shared_options
from agelab.cli.types import MEASURE

STEP = [sys.executable, "-m", "agelab.cli.bisect_step"]
"""The command that judges git's current commit; the bisect's directory comes after it."""


@click.command(
    epilog="Exit: 0 one kernel is found, 1 several are left and none of them can be judged, 2 wrong input, 3 the host "
    "cannot do it, 130 interrupted: go on with --continue."
)
@click.option("--scenario", default=None, help="The scenario that each step runs.")
@click.option("--variant", default=None, help="Which of its variants, where it has several.")
@click.option(
    "--metric",
    default=None,
    metavar=MEASURE,
    help="What is held against the ends: copy:elapsed (the mean of all copies), copy:1:elapsed, ...",
)
@click.option(
    "--symptom",
    type=click.Choice(["panic", "hang", "fail", "boot"]),
    default=None,
    help="In place of a metric: what a bad kernel does. boot: its guest does not boot in time.",
)
@click.option(
    "--good",
    default=None,
    help="A kernel from before the change: a version, a spec; a git ref with --tree.",
)
@click.option("--bad", default=None, help="One with it.")
@click.option("--tree", "path", default=None, help="A git tree of Linux, to search its commits.")
@click.option("--dirty", is_flag=True, help="Leave out of account what --tree has changed and not committed.")
@click.option(
    "--config", multiple=True, help="A fragment of configuration for every commit's kernel, or a line of it."
)
@click.option("--patches", multiple=True, help="A patch, or a directory of them, for every commit's kernel.")
@click.option("--base", default=None, help="A distribution's .config in place of the small one.")
@click.option(
    "--kernels",
    default="",
    help='The kernels between good and bad in their order, in place of all that the mirror has: "5.10 6.1 6.12".',
)
@click.option("--threshold", default=None, help="Where bad begins, in the metric's unit; else midway.")
@click.option("--relative", default=None, metavar="PERCENT", help="The same from good's median on: 10%.")
@click.option("--rounds", default=60, show_default=True, help="Wall clock: rounds that a step may take.")
@click.option(
    "--alpha", default="0.01", show_default=True, help="Wall clock: the chance of a wrong answer, at most."
)
@click.option(
    "--profile",
    "profile_neighbours",
    is_flag=True,
    help="When the change is found: the functions of the kernel in which the step differs on its two sides.",
)
@click.option(
    "--continue",
    "proceed",
    default=None,
    metavar="BISECT",
    help="Go on with a bisect (or latest), with no other option but its real disks and what they are erased by.",
)
@shared_options
@json_option
def bisect(proceed: str | None, as_json: bool, **words: Any) -> int:
    """Find the kernel that changed a result: between two packaged kernels, or two commits of a git tree.

    Both ends are measured first. Each step is a run of its own; all that was measured, git's log and the answer are
    kept below bisects/ in the store.
    """
    from agelab.bisect import answer, search
    from agelab.bisect.bisect_directory import BisectDirectory
    from agelab.bisect.kernel_runs import KernelRuns
    from agelab.cli.bisect_question import parse_question
    from agelab.present.view.bisect import FLAME_GRAPH, answer_lines, follow_log, show_profiles
    from agelab.results import checksummed

    store = open_store()
    if proceed is None:
        directory = BisectDirectory.create(store, parse_question(words))
    else:
        _nothing_else(words)
        directory = BisectDirectory.find(store, proceed)
        directory.require_own(store)
    question = directory.question()
    if proceed is not None:
        _same_disks(question, directory.name, words)
    _same_files(question)
    with goes_on(_continuing_command(question, directory.name)):
        with follow_log(directory):
            directory.log_line(f"bisect {directory.name}, each detail in {directory.log}")
            measure = KernelRuns(directory, store)
            judge = search.make_judge(directory, measure, question.words["jobs"])
            found = search.run_search(directory, judge, [*STEP, str(directory.path)])
        text = "\n".join(answer_lines(found))
        checksummed.write(directory.path / "answer.txt", text)
        click.echo(found.model_dump_json(indent=1) if as_json else text)
        if question.profile:
            with follow_log(directory):
                profiled = answer.take_profiles(directory, store, found)
            show_profiles(directory.path / FLAME_GRAPH, profiled, quiet=as_json)
    return 0 if found.found else 1


def _nothing_else(words: dict[str, Any]) -> None:
    """Refuse options beside --continue, whose question is asked already, but for real disks. Raises InputError."""
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    names = {option.name: option.opts[0] for option in context.command.params}
    given = [word for word in words if context.get_parameter_source(word) is not default]
    if other := [names[word] for word in given if word not in ("disks", "erase")]:
        raise InputError(f"--continue goes on with what was asked: leave {', '.join(other)} out")


def _continuing_command(question: BisectQuestion, name: str) -> str:
    """Return the command that goes on with a bisect; real disks must be named again."""
    from agelab.bisect.kernel_runs import options_of

    return shlex.join(["agelab", "bisect", "--continue", name, *options_of(question).named_again()])


def _same_disks(question: BisectQuestion, name: str, words: dict[str, Any]) -> None:
    """Refuse real disks that the command line does not name, too, as what may be lost on them. Raises InputError."""
    from agelab.bisect.kernel_runs import options_of

    asked, command = options_of(question), _continuing_command(question, name)
    again = asked.asked_again(words["disks"], words["erase"], command)
    again.require_asked()
    if again.erase != asked.erase:
        raise InputError("the bisect erases other disks than --erase names", hint=f"go on with {command}")


def _same_files(question: BisectQuestion) -> None:
    """Refuse to go on with other files than it was begun with, or without them. Raises InputError."""
    from agelab.bisect.kernel_runs import require_unchanged

    if not Path(question.directory).is_dir():
        raise InputError(f"the bisect was begun in {question.directory}, which is not there any more")
    require_unchanged(question)
