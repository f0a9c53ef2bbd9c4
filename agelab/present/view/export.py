"""Runs in the formats of ``agelab export``: CSV, JSON lines, JUnit, and databases."""

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from agelab.base import atomic, fileio
from agelab.base.errors import HostError
from agelab.base.plain_path import temp_parent
from agelab.present.view import junit
from agelab.results import rows
from agelab.results.run_directory import RunDirectory

TYPES = {**dict.fromkeys(rows.COLUMNS, "VARCHAR"), **dict.fromkeys(rows.NUMBERS, "BIGINT"), "value": "DOUBLE"}
"""The type of each column."""


def table(runs: Sequence[RunDirectory]) -> bytes:
    """Return the content of the file. Raises HostError without DuckDB."""
    try:
        import duckdb
    except ImportError as error:
        raise HostError(
            "Parquet takes DuckDB, which is not installed",
            hint="pip install 'agelab[parquet]', in a clone .venv/bin/pip install --require-hashes -r "
            "requirements-parquet.txt; or --format sqlite, which takes nothing",
        ) from error
    samples = [row for run in runs for row in rows.typed_rows(run)]
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in TYPES.values())
    with atomic.temp_dir(temp_parent()) as place, duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE samples ({columns})")
        values = [[row[name] for row in samples] for name in TYPES]
        connection.execute(f"INSERT INTO samples SELECT {lists}", values)
        connection.execute(
            f"COPY samples TO '{place}/samples.parquet' "
            f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {{agelab_schema: '{rows.SCHEMA}'}})"
        )
        return fileio.read_bytes(place / "samples.parquet", fileio.LINES)


OF_RUN = ("run", "scenario", "scale", "clock")
OF_SAMPLE = ("step", "repetition", "metric", "value", "unit", "not_measured", "caveat")
OF_CELL = tuple(name for name in rows.COLUMNS if name not in (*OF_RUN, *OF_SAMPLE))

TABLES = f"""
PRAGMA user_version = {rows.SCHEMA};
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL, scenario TEXT NOT NULL, scale TEXT NOT NULL, clock TEXT NOT NULL
) STRICT;
CREATE TABLE cells (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs,
    cell INTEGER NOT NULL,
    variant TEXT NOT NULL, filesystem TEXT NOT NULL, layout TEXT NOT NULL, kernel TEXT NOT NULL,
    machine TEXT NOT NULL, drives TEXT NOT NULL, defaults TEXT NOT NULL, accelerator TEXT NOT NULL,
    seed INTEGER NOT NULL, corpus_seed INTEGER NOT NULL,
    status TEXT NOT NULL, reason TEXT, reused TEXT, disputes TEXT,
    UNIQUE (run_id, cell)
) STRICT;
CREATE TABLE samples (
    id INTEGER PRIMARY KEY,
    cell_id INTEGER NOT NULL REFERENCES cells,
    step TEXT NOT NULL, repetition INTEGER NOT NULL, metric TEXT NOT NULL,
    value REAL, unit TEXT NOT NULL, not_measured TEXT, caveat TEXT
) STRICT;
CREATE INDEX samples_by_place ON samples (metric, step, repetition);
CREATE INDEX samples_by_cell ON samples (cell_id);
"""


def database(runs: Sequence[RunDirectory]) -> bytes:
    """Return the content of the file; the runs and cells have keys of their own, in the order given."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        for run in runs:
            _add(connection, run)
        connection.commit()
        return connection.serialize()


def _add(connection: sqlite3.Connection, run: RunDirectory) -> None:
    cell: tuple[int, int] | None = None
    """The number of the last cell in its run, and its key."""
    run_id: int | None = None
    for row in rows.typed_rows(run):
        if run_id is None:
            run_id = _insert(connection, "runs", [row[name] for name in OF_RUN])
        if cell is None or cell[0] != row["cell"]:
            cell = row["cell"], _insert(connection, "cells", [run_id, *(row[name] for name in OF_CELL)])
        if row["step"] is not None:
            _insert(connection, "samples", [cell[1], *(row[name] for name in OF_SAMPLE)])


def _insert(connection: sqlite3.Connection, table: str, values: Sequence[object]) -> int:
    """Add a row and return its key."""
    places = ", ".join("?" * len(values))
    key = connection.execute(f"INSERT INTO {table} VALUES (NULL, {places})", values).lastrowid
    assert key is not None
    return key


FORMULA = re.compile(r'^(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])|(?<=[;\t\r\n"])(?=[=+\-@\uff1d\uff0b\uff0d\uff20])')
"""The place before a formula: at the beginning of a text, and where a spreadsheet whose separator is not the comma
begins another cell. Full-width signs count, as some languages' spreadsheets take them."""


def _csv(runs: Sequence[RunDirectory]) -> Iterator[str]:
    """RFC 4180, with a head; what is missing is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows.COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        writer.writerows({name: _escape_formula(value) for name, value in row.items()} for row in rows.rows(run))
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
FILES: dict[str, Callable[[Sequence[RunDirectory]], bytes]] = {"sqlite": database, "parquet": table}
"""Each format that is no text, with the content of its file."""
