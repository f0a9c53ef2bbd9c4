"""Runs as an SQLite database: a table of runs, one of cells, one of samples (docs/exports.md)."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from agelab.results import rows
from agelab.results.run_directory import RunDirectory

OF_RUN = ("run", "scenario", "scale", "clock")
OF_SAMPLE = ("step", "repetition", "metric", "value", "unit", "not_measured")
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
    value REAL, unit TEXT NOT NULL, not_measured TEXT
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
