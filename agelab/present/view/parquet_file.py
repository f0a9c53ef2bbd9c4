"""Runs as a Parquet file: one table with a row for each sample (docs/exports.md). DuckDB writes it."""

from collections.abc import Sequence

from agelab.base import atomic, fileio
from agelab.base.errors import HostError
from agelab.base.plain_path import temp_parent
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
    found = [row for run in runs for row in rows.typed_rows(run)]
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in TYPES.values())
    with atomic.temp_dir(temp_parent()) as place, duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE samples ({columns})")
        values = [[row[name] for row in found] for name in TYPES]
        connection.execute(f"INSERT INTO samples SELECT {lists}", values)
        connection.execute(
            f"COPY samples TO '{place}/samples.parquet' "
            f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {{agelab_schema: '{rows.SCHEMA}'}})"
        )
        return fileio.read_bytes(place / "samples.parquet", fileio.LINES)
