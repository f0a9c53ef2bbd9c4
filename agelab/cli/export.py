"""``agelab export``: results for other programs, and as tables for a mail or an issue."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from agelab import atomic
from agelab.cli.options import find_runs, replaceable
from agelab.cli.types import SELECTION
from agelab.errors import InputError
from agelab.view.export import FILES, FORMATS


@click.command()
@click.argument("names", type=SELECTION, nargs=-1, metavar="RUN...")
@click.option(
    "--format",
    "wanted",
    type=click.Choice([*FORMATS, *FILES]),
    default="csv",
    show_default=True,
    help="csv, jsonl, sqlite and parquet: every sample. junit: every cell, for CI. The others: what each step took, a "
    "column for each variant: as Markdown, or as plain text in minutes (m:ss.cc) or seconds.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file, in place of the output; sqlite and parquet need one.",
)
def export(names: tuple[str, ...], wanted: str, output: Path | None) -> None:
    """Write RUN... (default: the latest) in a form that other programs read.

    A run that is still going on is written as far as it is: what has not ended is interrupted.
    """
    if wanted in FORMATS:
        _write(FORMATS[wanted](find_runs(names or ("latest",))), output)
        return
    if output is None:
        raise InputError(f"{wanted} is no text: name a file for it", hint=f"like -o samples.{wanted}")
    path = replaceable(output)
    atomic.write(path, FILES[wanted](find_runs(names or ("latest",))))


def _write(lines: Iterable[str], output: Path | None) -> None:
    """Write the lines to a file, or to standard output. Raises InputError where the file cannot be written."""
    if output is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    text = "".join(f"{line}\n" for line in lines)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error
