"""Runs in the formats of ``agelab export``: CSV, JSON lines, JUnit, and databases."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence

from agelab.present.view import junit, parquet_file, sqlite_file
from agelab.results import rows
from agelab.results.run_directory import RunDirectory

FORMULA = re.compile(
    r'^(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])|(?<=[;\t\r\n"])(?=[=+\-@\uff1d\uff0b\uff0d\uff20])'
)
"""The place before a formula: at the beginning of a text, and where a spreadsheet whose separator is not the comma
begins another cell. Full-width signs count, as some languages' spreadsheets take them."""


def _csv(runs: Sequence[RunDirectory]) -> Iterator[str]:
    """RFC 4180, with a head; what is missing is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows.COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        writer.writerows(
            {name: _escape_formula(value) for name, value in row.items()} for row in rows.rows(run)
        )
    yield from text.getvalue().split("\n")[:-1]


def _escape_formula(value: object) -> object:
    """Put an apostrophe before what a spreadsheet would run as a formula in a text; leave numbers as they are.

    By OWASP's "CSV Injection": a cell that begins so is run, whether or not it is in quotes.
    """
    return FORMULA.sub("'", value) if isinstance(value, str) else value


def _jsonl(runs: Sequence[RunDirectory]) -> Iterator[str]:
    """One object a line (jsonlines.org), all with the same names."""
    yield from (json.dumps(row) for run in runs for row in rows.rows(run))


FORMATS: dict[str, Callable[[Sequence[RunDirectory]], Iterator[str]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "junit": junit.junit_lines,
}
"""Each format of text, by the name that ``agelab export`` knows it by, with its lines."""
FILES: dict[str, Callable[[Sequence[RunDirectory]], bytes]] = {
    "sqlite": sqlite_file.database,
    "parquet": parquet_file.table,
}
"""Each format that is no text, with the content of its file."""
