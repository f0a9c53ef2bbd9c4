"""The verbs of the command line with their arguments, options and examples."""

import re
from collections.abc import Iterator

import click

from agelab import cli
from agelab.base.verbs import GROUPS, VERBS
from agelab.runner.request.options import OPTIONS, make_variable, option
from docs.make.generated.markdown import code, plain, table

ALSO_OF = "run"
"""The verb whose options others take, too: theirs are named, and described there."""
OF_MAKE = {option(name) for name in OPTIONS if make_variable(name)}
"""Its options that are a variable of make, too: docs/options.md describes them."""
SAME = ("--force", "--json")
"""Options that mean the same of every verb: the page's beginning describes them."""
DEFAULT = re.compile(r"\[default: (.*)\]$")


def sections() -> str:
    """Write a section for each group of verbs, with one below it for each verb and for each of its commands."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    top = click.Context(cli.agelab, info_name="agelab", **cli.agelab.context_settings)
    shared = cli.agelab.get_command(top, ALSO_OF)
    assert shared
    known = set(_described(shared, click.Context(shared, top, ALSO_OF)))
    for group, verbs in GROUPS.items():
        yield f"## {group}\n"
        for name in verbs:
            command = cli.agelab.get_command(top, name)
            assert command
            yield from _section(command, name, top, 3, known if name != ALSO_OF else set())


def _described(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    """List the options with their meanings; the usage has the arguments that have none."""
    records = [param.get_help_record(context) for param in command.get_params(context)]
    return [record for record in records if record and record[1] and not record[0].endswith("--help")]


def _section(
    command: click.Command, name: str, parent: click.Context, depth: int, known: set[tuple[str, str]]
) -> Iterator[str]:
    context = click.Context(command, parent, name)
    yield f"{'#' * depth} {context.command_path}\n"
    for paragraph in (command.help or "").split("\n\n"):
        yield plain(paragraph) + "\n"
    shown = VERBS[name].examples.strip() if parent.parent is None else ""
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    yield "```\n" + "\n".join(filter(None, (usage, "", shown) if shown else (usage,))) + "\n```\n"
    described = _described(command, context)
    if name == ALSO_OF and not known:
        also_of_make = [record for record in described if record[0].split()[0] in OF_MAKE]
        described = [record for record in described if record not in also_of_make]
        shapes = [
            code(shape).replace("\\|", "|") + (f" ({code(found[1])})" if (found := DEFAULT.search(meaning)) else "")
            for shape, meaning in also_of_make
        ]
        yield f"[Options](../options.md) says what these mean; defaults are in brackets: {', '.join(shapes)}.\n"
    if own := [record for record in described if record not in known and record[0] not in SAME]:
        yield table(["option", "meaning"], ([code(option), plain(meaning)] for option, meaning in own))
    if also := [option.split()[0] for option, meaning in described if (option, meaning) in known]:
        yield f"Also, as of [agelab {ALSO_OF}](#agelab-{ALSO_OF}): {', '.join(map(code, also))}.\n"
    if same := [option for option, _ in described if option in SAME]:
        yield f"Also {' and '.join(map(code, same))}.\n"
    if end := (command.epilog or "").replace(cli.examples(shown), "").strip() if shown else command.epilog:
        yield plain(end) + "\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            subcommand = command.get_command(context, below)
            if subcommand:
                yield from _section(subcommand, below, context, depth + 1, known)
