"""``agelab new``: a scenario of the user's own to begin with."""

from pathlib import Path

import click

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.base.verbs import as_called
from agelab.cli.options import OUTPUT, force_option, write_output

TEMPLATE = Path(__file__).with_name("new.toml")


@click.command(epilog="Exit: 0; 2 wrong input.")
@click.argument("file", type=OUTPUT)
@force_option
def new(file: Path) -> None:
    """Write FILE, a scenario of your own: it runs as it is, and a comment says what each line is for.

    It ages two filesystems for a minute and reads them back, beside an unaged control. The scenario has the file's
    name: mine.toml is scenario mine.
    """
    if file.suffix != ".toml":
        raise InputError(f"{file}: the name of a scenario's file ends in .toml", hint=f"agelab new {file}.toml")
    text = fileio.read_text(TEMPLATE).replace("mine.toml", file.name)
    write_output(file, text.encode())
    click.echo(as_called(f"{file}: try it in one small cell: agelab run {file} --check"))
