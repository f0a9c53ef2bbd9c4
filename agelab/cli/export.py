"""``agelab export``: results for other programs."""

import sys
from pathlib import Path

import click

from agelab.base.errors import InputError
from agelab.cli.options import OUTPUT, find_runs, force_option, write_output
from agelab.present.view.export import FILES, FORMATS

ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".sqlite": "sqlite", ".parquet": "parquet", ".xml": "junit"}
"""The format that a file's name asks for by its ending."""


@click.command()
@click.argument("names", nargs=-1, metavar="RUN...")
@click.option(
    "--format",
    "format_name",
    type=click.Choice([*FORMATS, *FILES]),
    help="csv (without a file the default), jsonl, sqlite and parquet: every sample. junit: every cell, for CI.",
)
@click.option(
    "-o", "--output", type=OUTPUT, help=f"Write to this file; its ending names the format: {', '.join(ENDINGS)}."
)
@force_option
def export(names: tuple[str, ...], format_name: str | None, output: Path | None) -> None:
    """Write RUN... (default: the latest) in a form that other programs read.

    Of a run that is still going on it writes what there is; other cells are interrupted.
    """
    form = _format(format_name, output)
    if output is None and form in FILES:
        raise InputError(f"{form} is a binary format: name a file for it", hint=f"like -o samples.{form}")
    runs = find_runs(names or ("latest",))
    if form in FILES:
        data = FILES[form](runs)
    else:
        lines = (f"{line}\n" for line in FORMATS[form](runs))
        if output is None:
            sys.stdout.writelines(lines)
            return
        data = "".join(lines).encode()
    assert output
    write_output(output, data)


def _format(format_name: str | None, output: Path | None) -> str:
    """Return the format that is asked for by its name, or by the file's. Raises InputError where the two contradict."""
    named = ENDINGS.get(output.suffix.lower()) if output else "csv"
    if format_name is None and named is None:
        raise InputError(
            f"{output}: its ending names no format", hint=f"say --format, or end the name with {', '.join(ENDINGS)}"
        )
    if output and format_name and named and format_name != named:
        raise InputError(
            f"--format {format_name}: the ending of {output} says {named}",
            hint="leave --format out, or name another file",
        )
    return format_name or named or "csv"
