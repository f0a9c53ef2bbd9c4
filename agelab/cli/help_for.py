"""``agelab help``: the help of a verb, by another way."""

import click

from agelab.base.errors import unknown


@click.command("help", epilog="Exit: 0; 2 no such verb.")
@click.argument("words", metavar="[VERB [COMMAND]]", nargs=-1)
@click.pass_context
def help_for(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a VERB, as agelab VERB --help does; without one, all verbs."""
    assert context.parent, "it is a verb"
    at, command = context.parent, context.parent.command
    for word in words:
        names = command.list_commands(at) if isinstance(command, click.Group) else []
        below = command.get_command(at, word) if isinstance(command, click.Group) else None
        if below is None:
            raise unknown("verb" if at is context.parent else f"{command.name} command", word, names)
        at, command = click.Context(below, parent=at, info_name=word), below
    click.echo(command.get_help(at))
