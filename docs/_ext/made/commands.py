"""Every verb with its arguments and options, as click has them."""

from collections.abc import Iterator

import click

from agelab import cli
from made.markdown import code, plain, table


def every() -> str:
    """A section for each verb, one below it for each of its commands."""
    top = click.Context(cli.agelab, info_name="agelab")
    found = ((name, cli.agelab.get_command(top, name)) for name in cli.agelab.list_commands(top))
    return "\n".join(line for name, one in found if one for line in _section(one, name, top, 2))


def _section(command: click.Command, name: str, parent: click.Context, depth: int) -> Iterator[str]:
    context = click.Context(command, parent, name)
    yield f"{'#' * depth} {context.command_path}\n"
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    yield f"```\n{usage}\n```\n"
    for paragraph in (command.help or "").split("\n\n"):
        yield plain(paragraph) + "\n"
    records = [param.get_help_record(context) for param in command.get_params(context)]
    # An argument without words of its own stands in the usage.
    said = [record for record in records if record and record[1] and not record[0].endswith("--help")]
    if said:
        yield table(["option", "what"], ([code(option), plain(what)] for option, what in said))
    if command.epilog:
        yield plain(command.epilog) + "\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found:
                yield from _section(found, below, context, depth + 1)
