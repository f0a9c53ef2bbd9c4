"""Run every reader of runs and check its output with a standard parser of its format."""

import csv
import io
import json
import re
import sqlite3
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import duckdb

from agelab.results import rows
from agelab.results.run_directory import RunDirectory
from tests.build.cli import Cli

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")
FORMULA = re.compile('"*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]')
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?")


def text(out: str, run: RunDirectory) -> None:
    """Text for a terminal: it names the run."""
    assert out.strip()


def of_json(out: str, run: RunDirectory) -> None:
    assert json.loads(out)["schema"] == 1


def of_pairs(out: str, run: RunDirectory) -> None:
    """Each pair of groups says what was compared."""
    said = json.loads(out)
    assert said["schema"] == 4
    assert all({"left", "right", "labels", "cells", "rows"} <= set(pair) for pair in said["pairs"])


def of_csv(out: str, run: RunDirectory) -> None:
    """Numbers are numbers, texts are the run's own but for apostrophes, and no cell of a spreadsheet is a formula."""
    for separator in ",;\t":
        for cell in (one for row in csv.reader(io.StringIO(out, newline=""), delimiter=separator) for one in row):
            assert not FORMULA.match(cell) or NUMBER.fullmatch(cell), (separator, cell)
    reader = csv.DictReader(io.StringIO(out, newline=""))
    for row, other in zip(reader, rows.rows(run), strict=True):
        assert set(row) == set(rows.COLUMNS)
        for name, value in other.items():
            text = "" if value is None else str(value)
            assert row[name].replace("'", "") == text.replace("'", "")
            assert FORMULA.search(text) or row[name] == text
    assert tuple(reader.fieldnames or ()) == rows.COLUMNS


def of_lines(out: str, run: RunDirectory) -> None:
    assert all(tuple(json.loads(line)) == rows.COLUMNS for line in out.split("\n")[:-1])


def of_junit(out: str, run: RunDirectory) -> None:
    [suite] = ElementTree.fromstring(out.encode())
    assert len(suite) == len(run.plan().cells) == int(suite.get("tests", ""))
    assert suite.get("name") == run.name


def of_markdown_page(out: str, run: RunDirectory) -> None:
    assert out.startswith("## ") and run.name in out
    assert not re.search(r"<\w|!\[|\]\(", re.sub(r"\\.", "", out))


def of_sqlite(out: str, run: RunDirectory) -> None:
    assert out == "" and from_sqlite(Path("made.sqlite")) == [*rows.rows(run)]


def of_parquet(out: str, run: RunDirectory) -> None:
    assert out == "" and from_parquet(Path("made.parquet")) == [*rows.rows(run)]


def from_sqlite(path: Path) -> list[dict[str, object]]:
    """The rows of the database, its three tables joined."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.row_factory = sqlite3.Row
        found = connection.execute(
            "SELECT * FROM cells JOIN runs ON runs.id = run_id LEFT JOIN samples ON cells.id = cell_id "
            "ORDER BY run_id, cell, samples.id"
        )
        return [{name: row[name] for name in rows.COLUMNS} for row in found]


def from_parquet(path: Path) -> list[dict[str, object]]:
    with duckdb.connect() as connection:
        [(_, version)] = connection.execute(
            "SELECT key, value FROM parquet_kv_metadata(?) WHERE key = 'agelab_schema'", [str(path)]
        ).fetchall()
        assert version == b"1"
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
        kinds = {name: str(kind) for name, kind, *_ in found.description or ()}
        numbers = {**dict.fromkeys(rows.NUMBERS, "BIGINT"), "value": "DOUBLE"}
        assert kinds == {name: numbers.get(name, "VARCHAR") for name in rows.COLUMNS}
        return [dict(zip(kinds, row, strict=True)) for row in found.fetchall()]


READERS: dict[str, tuple[tuple[str, ...], Callable[[str, RunDirectory], None]]] = {
    "show": (("show", "RUN"), text),
    "show-json": (("show", "RUN", "--json"), of_json),
    "list": (("list",), text),
    "list-json": (("list", "--json"), of_json),
    "csv": (("export", "RUN"), of_csv),
    "jsonl": (("export", "RUN", "--format", "jsonl"), of_lines),
    "sqlite": (("export", "RUN", "--format", "sqlite", "-o", "made.sqlite", "--force"), of_sqlite),
    "parquet": (("export", "RUN", "--format", "parquet", "-o", "made.parquet", "--force"), of_parquet),
    "junit": (("export", "RUN", "--format", "junit"), of_junit),
    "compare": (("compare", "RUN", "RUN", "--all", "--inputs"), text),
    "compare-several": (("compare", "RUN", "RUN", "RUN", "--all", "--inputs"), text),
    "compare-json": (("compare", "RUN", "RUN", "--json", "--all"), of_pairs),
    "sweep": (("sweep", "RUN"), text),
    "sweep-json": (("sweep", "RUN", "--json"), of_json),
    "sweep-plots": (("sweep", "RUN", "--plots", "plots", "--force"), text),
    "replicate": (("replicate", "RUN", "--all"), text),
    "replicate-json": (("replicate", "RUN", "--json"), of_json),
    "replicate-markdown": (("replicate", "RUN", "--markdown"), of_markdown_page),
}
"""Each reader's words, and what of its output must hold."""
PACK, RESUME = ("capsule", "pack", "RUN"), ("resume", "RUN")
REFUSED = {"pack": PACK, "resume": RESUME}
"""Verbs that carry a run further: these runs are not fit for it."""
WORDS = {**{name: words for name, (words, _) in READERS.items()}, **REFUSED, "report": ("report", "RUN")}


class Text(HTMLParser):
    """The text that a page shows, and its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.handlers: list[str] = []
        self.words: list[str] = []
        self.asked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.asked += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


class Readers:
    """Reads runs of a store with every verb that does."""

    def __init__(self, home: Path, cli: Cli) -> None:
        self.home, self._cli = home, cli

    def read(self, words: tuple[str, ...], run: RunDirectory) -> tuple[int, str, str]:
        """Exit code, output and errors of a reader; both without orders for a terminal."""
        code, out, err = self._cli.ended(*(run.name if word == "RUN" else word for word in words))
        assert code in (0, 1, 2), err
        assert not OBEYED.search(out) and not OBEYED.search(err)
        assert err.startswith("agelab: ") and len(err) < 2000 if code == 2 else not err
        return code, out, err

    def good(self, reader: str, run: RunDirectory) -> str:
        """The output of a reader that must succeed."""
        words, holds = READERS[reader]
        code, out, err = self.read(words, run)
        assert code == 0, err
        holds(out, run)
        for drawn in Path("plots").glob("*"):
            assert drawn.suffix == ".svg" and ElementTree.parse(drawn)
        return out

    def refused(self, reader: str, run: RunDirectory) -> str:
        """What is said against a run by a reader that must refuse it, by its name."""
        code, _, err = self.read(WORDS[reader], run)
        assert code == 2 and run.name in err
        return err

    def page(self, run: RunDirectory) -> Text:
        """The report of a run, which asks for nothing and runs nothing."""
        code, out, err = self.read(("report", "RUN", "-o", "page.html"), run)
        assert code == 0 and "page.html" in out, err
        found = Text()
        found.feed(Path("page.html").read_text(encoding="utf-8"))
        assert not found.handlers and "iframe" not in found.elements
        assert all(asked.startswith(("#", "data:")) for asked in found.asked)
        return found
