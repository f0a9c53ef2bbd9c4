"""Results for other programs: what they read is what the run has, whatever is in its names and reasons."""

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import agelab
from agelab.base.errors import InputError
from agelab.base.sanitize import escape_controls
from agelab.results import rows as table
from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.result import End, Status
from agelab.results.run_directory import RunDirectory
from tests.build import hostile_runs, run_builder
from tests.build.cli import Cli
from tests.build.run_readers import from_parquet, from_sqlite

HOSTILE = 'a | b <script>alert("x")</script> \x1b[2J \x00 ]]> `c` \ud800'.encode("utf-8", "replace").decode()
DOCS = Path(__file__).parents[3] / "docs"
PAGE, REFERENCE = DOCS / "report.md", DOCS / "reference" / "result.md"


pytestmark = pytest.mark.usefixtures("home")


def made(home: Path, ends: dict[str, End | None]) -> RunDirectory:
    """A run with a cell for each variant, whose copies took 61 and 62.5 seconds."""
    run = run_builder.begin(home, run_builder.cells(ends, drives=("model:a", "model:b")), scenario="small")
    for number, end in enumerate(ends.values()):
        rows = []
        if end is None or end.status is Status.OK:
            rows = [run_builder.sample("copy", value, repetition=turn) for turn, value in ((1, 61.0), (2, 62.5))]
            rows.append(run_builder.sample("copy", None, "seeks", why="no arm"))
        for row in rows:
            run.append(number, row)
        if end and end.digest:
            run.write_inputs(number, {})
            measured = digest(end.status, rows, {})
            end = end.model_copy(update={"digest": measured, "inputs_key": inputs_key({})})
        if end:
            run.finish(number, end)
    return run


def several(home: Path) -> RunDirectory:
    return made(
        home,
        {
            "ext4": End(status=Status.OK, digest="sha256:1", inputs_key="sha256:2", host_seconds=3),
            "jfs": End(status=Status.PANICKED, reason=HOSTILE, host_seconds=2),
            "reiser4": End(status=Status.UNSUPPORTED, reason="no module", host_seconds=0),
            "xfs": None,
        },
    )


def test_csv_and_json_lines_have_every_sample_and_every_cell(home: Path, cli: Cli) -> None:
    run = several(home)
    rows = list(csv.DictReader(io.StringIO(cli.out("export"))))
    objects = [json.loads(line) for line in cli.out("export", run.name, "--format", "jsonl").splitlines()]
    assert [tuple(one) for one in objects] == [table.COLUMNS] * len(rows)
    assert [one["variant"] for one in objects] == ["ext4"] * 3 + ["jfs", "reiser4"] + ["xfs"] * 3
    assert [one["value"] for one in objects[:3]] == [61.0, 62.5, None]
    assert (objects[2]["not_measured"], rows[2]["value"], rows[0]["drives"]) == ("no arm", "", "model:a+model:b")
    assert (objects[3]["reason"], objects[3]["step"], objects[-1]["status"]) == (
        escape_controls(HOSTILE),
        None,
        "interrupted",
    )


def test_a_ci_system_sees_each_cell(home: Path, tmp_path: Path, cli: Cli) -> None:
    several(home)
    file = tmp_path / "cells.xml"
    assert cli.out("export", "--format", "junit", "-o", file) == ""
    [suite] = ElementTree.parse(file).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1", "time": "5.000",
    }  # fmt: skip
    assert [[child.tag for child in case] for case in suite] == [["system-out"], ["failure"], ["skipped"], ["error"]]
    assert suite[1][0].get("type") == "panicked" and "<script>" in (suite[1][0].text or "")


@pytest.mark.parametrize("form", ["csv", "jsonl", "junit"])
def test_a_run_of_which_nothing_is_ok_breaks_nothing(home: Path, cli: Cli, form: str) -> None:
    made(home, {"ext4": End(status=Status.FAILED, reason="oh", host_seconds=1)})
    assert "ext4" in cli.out("export", "--format", form)


def test_what_is_not_there_or_cannot_be_written_is_one_line(home: Path, cli: Cli) -> None:
    several(home)
    cli.run("export", "yesterday", code=2)
    assert "agelab: /nowhere/file cannot be written: /nowhere is not a directory" in cli.err(
        "export", "-o", "/nowhere/file"
    )


def test_the_examples_of_the_page_run(
    home: Path, cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    several(home)
    monkeypatch.chdir(home)
    for form in ("sqlite", "parquet"):
        assert f"-o samples.{form}" in PAGE.read_text()
        cli.out("export", "-o", f"samples.{form}")
    exports = PAGE.read_text().split("## Exports")[1].split("\n## ")[0]
    examples = re.findall(r"^```python\n(.*?)^```", exports, re.MULTILINE | re.DOTALL)
    assert len(examples) == 3
    scope: dict[str, object] = {}
    outs = []
    for text in examples:
        exec(text, scope)
        outs.append(capsys.readouterr().out)
    assert "61.0" in outs[0]
    assert outs[1].splitlines()[0] == "ext4 6.1 copy 61.75"
    assert re.search(r"ext4 +│ +6\.1 +│ +copy +│ +61\.75", outs[2])


READ_BACK = {"sqlite": from_sqlite, "parquet": from_parquet}


@pytest.mark.parametrize("form", READ_BACK)
def test_what_is_read_back_is_what_was_measured(home: Path, cli: Cli, form: str) -> None:
    runs = [several(home), several(home)]
    odd = run_builder.begin(home, run_builder.cells(["ext4"], [2**63 - 1]))
    values = [0.1, 1e-300, 2**53, -5, 0, 61.12345678901234]
    run_builder.end(odd, 0, [run_builder.sample("copy", value, repetition=at) for at, value in enumerate(values, 1)])
    path = home / f"samples.{form}"
    assert cli.out("export", *(run.name for run in (*runs, odd)), "--format", form, "-o", path) == ""
    found = READ_BACK[form](path)
    assert found == [row for run in (*runs, odd) for row in table.rows(run)]
    assert [row["value"] for row in found[-len(values) :]] == values
    assert {type(row["value"]) for row in found} == {float, type(None)}


@pytest.mark.parametrize("form", READ_BACK)
def test_hostile_text_is_text_in_a_file_for_programs(home: Path, cli: Cli, form: str) -> None:
    for word in (*hostile_runs.HOSTILE.values(), "x'); DROP TABLE runs; --"):
        run = run_builder.begin(home, run_builder.cells([word or "-"]), scenario=word)
        run_builder.end(run, 0, [run_builder.sample(word, 1.0), run_builder.sample(word, None, why=word or "-")])
        path = home / "hostile"
        cli.out("export", run.name, "--format", form, "-o", path, "--force")
        assert READ_BACK[form](path) == [*table.rows(run)]


@pytest.mark.parametrize("form", READ_BACK)
def test_a_file_for_programs_is_whole_or_what_it_was(home: Path, cli: Cli, form: str) -> None:
    run = run_builder.begin(home, run_builder.cells(["ext4"], [1, 2**64]))
    path = home / "samples"
    path.write_text("before")
    err = cli.err("export", run.name, "--format", form, "-o", path, "--force")
    assert f"{run.name}, cell 1: seed {2**64} does not fit into a column of 64 bits" in err
    assert path.read_text() == "before" and not list(home.glob(".samples*"))
    link = home / "link"
    link.symlink_to(path)
    several(home)
    for words, why in ((["-o", str(link)], "it is a link"), ([], f"{form} is a binary format: name a file for it")):
        assert why in cli.err("export", "--format", form, *words)
    assert path.read_text() == "before" and link.is_symlink()


def test_without_duckdb_one_line_says_what_to_install(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    several(home)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    first, hint = cli.err("export", "--format", "parquet", "-o", home / "x", code=3).splitlines()
    assert first == "agelab: Parquet takes DuckDB, which is not installed"
    assert "pip install 'agelab[parquet]'" in hint and "-r requirements-parquet.txt" in hint
    cli.run("export", "--format", "sqlite", "-o", home / "x")


def test_a_frame_has_the_columns_of_the_page(home: Path) -> None:
    run = several(home)
    frame = agelab.load(run.name, home=home)
    assert tuple(frame.columns) == table.COLUMNS
    assert frame["value"].sum() == 2 * (61.0 + 62.5) and str(frame["value"].dtype) == "float64"
    columns = REFERENCE.read_text().split("## Columns of an export")[1].split("A cell without")[0]
    named = set(re.findall(r"`(\w+)`", columns))
    assert named - {"csv", "jsonl", "sqlite", "parquet", "interrupted"} == set(table.COLUMNS)
    with pytest.raises(InputError, match="no run 'x'"):
        agelab.load("x", home=home)
