"""The verbs of the command line with their arguments and options."""

from collections.abc import Iterator

import click

from agelab import cli
from generated.markdown import code, plain, table


def sections() -> str:
    """Write a section for each verb, with one below it for each of its commands."""
    top = click.Context(cli.agelab, info_name="agelab")
    commands = ((name, cli.agelab.get_command(top, name)) for name in cli.agelab.list_commands(top))
    return "\n".join(
        line for name, command in commands if command for line in _section(command, name, top, 2)
    )


def _section(command: click.Command, name: str, parent: click.Context, depth: int) -> Iterator[str]:
    context = click.Context(command, parent, name)
    yield f"{'#' * depth} {context.command_path}\n"
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    yield f"```\n{usage}\n```\n"
    for paragraph in (command.help or "").split("\n\n"):
        yield plain(paragraph) + "\n"
    records = [param.get_help_record(context) for param in command.get_params(context)]
    # The usage has the arguments that have no description.
    described = [record for record in records if record and record[1] and not record[0].endswith("--help")]
    if described:
        yield table(["option", "meaning"], ([code(option), plain(meaning)] for option, meaning in described))
    if command.epilog:
        yield plain(command.epilog) + "\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            subcommand = command.get_command(context, below)
            if subcommand:
                yield from _section(subcommand, below, context, depth + 1)
