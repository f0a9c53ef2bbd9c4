"""``agelab export``: results for other programs, and as tables for a mail or an issue."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agelab.cli.options import open_store

if TYPE_CHECKING:
    from agelab.results.run_directory import RunDirectory

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With what a formula begins."""


def _csv(runs: "Sequence[RunDirectory]") -> Iterator[str]:
    """RFC 4180, with a head; what is missing is empty, and what a spreadsheet would run is marked as text."""
    import csv
    import io

    from agelab.results import rows

    text = io.StringIO()
    writer = csv.DictWriter(text, rows.COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows.rows(run))
    yield from text.getvalue().split("\n")[:-1]


def _inert(value: object) -> object:
    """A text that a spreadsheet would take for a formula, with an apostrophe before it; numbers are no texts.

    By OWASP's "CSV Injection": a cell that begins so is run, whether or not it is in quotes.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _jsonl(runs: "Sequence[RunDirectory]") -> Iterator[str]:
    """An object a line (jsonlines.org), all with the same names."""
    import json

    from agelab.results import rows

    yield from (json.dumps(row) for run in runs for row in rows.rows(run))


def _junit(runs: "Sequence[RunDirectory]") -> Iterator[str]:
    from agelab.view import junit

    yield from junit.lines(runs)


def _steps(layout: str) -> "Callable[[Sequence[RunDirectory]], Iterator[str]]":
    def lines(runs: "Sequence[RunDirectory]") -> Iterator[str]:
        from agelab.view import study_tables

        yield from study_tables.LAYOUTS[layout]([study_tables.table(run) for run in runs])

    return lines


FORMATS = {
    "csv": _csv,
    "jsonl": _jsonl,
    "junit": _junit,
    "markdown": _steps("markdown"),
    "minutes": _steps("minutes"),
    "seconds": _steps("seconds"),
}


@click.command()
@click.argument("names", nargs=-1, metavar="RUN...")
@click.option(
    "--format",
    "wanted",
    type=click.Choice(list(FORMATS)),
    default="csv",
    show_default=True,
    help="csv and jsonl: every sample. junit: every cell, for CI. The others: what each step took, a column for each "
    "variant: as Markdown, or as plain text in minutes (m:ss.cc) or seconds.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file, in place of the output."
)
def export(names: tuple[str, ...], wanted: str, output: Path | None) -> None:
    """Write RUN... (default: the latest) in a form that other programs read.

    A run that is still going on is written as far as it is: what has not ended is interrupted.
    """
    from agelab.results import run_directory

    store = open_store()
    runs = [run_directory.find(store.runs, name) for name in names or ("latest",)]
    _write(FORMATS[wanted](runs), output)


def _write(lines: Iterable[str], output: Path | None) -> None:
    """To the file, or without one to the output. Raises InputError for a file that cannot be written."""
    if output is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    from agelab.errors import InputError

    text = "".join(f"{line}\n" for line in lines)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error
