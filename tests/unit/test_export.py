"""Results for other programs: what they read is what the run has, whatever is in its names and reasons."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from pathlib import Path

import pytest

import agelab
from agelab.cli import main
from agelab.errors import InputError
from agelab.model.result import End, Status
from agelab.model.sanitize import escape_controls
from agelab.results import rows as table
from agelab.results.digest import digest, inputs_key
from agelab.results.run_directory import RunDirectory
from agelab.view import study_tables
from tests.unit import run_builder

HOSTILE = 'a | b <script>alert("x")</script> \x1b[2J \x00 ]]> `c` \ud800'.encode("utf-8", "replace").decode()
PAGE = Path(__file__).parents[2] / "docs" / "exports.md"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    return tmp_path


def made(home: Path, ends: dict[str, End | None]) -> RunDirectory:
    """A run with a cell for each variant, whose copies took 61 and 62.5 seconds."""
    run = run_builder.begin(home, run_builder.cells(ends, drives=("model:a", "model:b")), scenario="small")
    for number, end in enumerate(ends.values()):
        rows = []
        if end is None or end.status is Status.OK:
            rows = [
                run_builder.sample("copy", value, repetition=turn) for turn, value in ((1, 61.0), (2, 62.5))
            ]
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


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["export", *words]) == 0
    return capsys.readouterr().out


def test_csv_and_json_lines_have_every_sample_and_every_cell(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = several(home)
    rows = list(csv.DictReader(io.StringIO(said(capsys))))
    objects = [json.loads(line) for line in said(capsys, run.name, "--format", "jsonl").splitlines()]
    assert [tuple(one) for one in objects] == [table.COLUMNS] * len(rows)
    assert [one["variant"] for one in objects] == ["ext4"] * 3 + ["jfs", "reiser4"] + ["xfs"] * 3
    assert [one["value"] for one in objects[:3]] == [61.0, 62.5, None]
    assert (objects[2]["not_measured"], rows[2]["value"], rows[0]["drives"]) == (
        "no arm",
        "",
        "model:a+model:b",
    )
    assert (objects[3]["reason"], objects[3]["step"], objects[-1]["status"]) == (
        escape_controls(HOSTILE),
        None,
        "interrupted",
    )


def test_a_ci_system_sees_each_cell(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several(home)
    file = tmp_path / "cells.xml"
    assert said(capsys, "--format", "junit", "-o", str(file)) == ""
    [suite] = ElementTree.parse(file).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1", "time": "5.000",
    }  # fmt: skip
    assert [[child.tag for child in case] for case in suite] == [
        ["system-out"],
        ["failure"],
        ["skipped"],
        ["error"],
    ]
    assert suite[1][0].get("type") == "panicked" and "<script>" in (suite[1][0].text or "")


def test_tables_of_steps_are_those_of_the_studies(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several(home)
    lines = said(capsys, "--format", "minutes").splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["step", "ext4", "jfs", "reiser4", "xfs"],
        ["copy", "(mean", "of", "2)", "1:01.75", "-", "-", "-"],
    ]
    assert lines[4] == "reiser4, seed 1: unsupported: no module"
    assert "61.75" in said(capsys, "--format", "seconds")


@pytest.mark.parametrize(
    ("value", "text"),
    [("0", "0:00.00"), ("59.995", "1:00.00"), ("59.994", "0:59.99"), ("3599.999", "60:00.00")],
)
def test_minutes_are_rounded_as_a_whole(value: str, text: str) -> None:
    assert study_tables.minutes(Fraction(value)) == text


def test_markdown_stays_in_its_cells_whatever_is_in_a_reason(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several(home)
    lines = said(capsys, "--format", "markdown").splitlines()
    assert lines[2] == "| step | ext4 | jfs | reiser4 | xfs |"
    [hostile] = [line for line in lines if line.startswith("- jfs")]
    assert not re.search(r"(?<!\\)[<>|`]", hostile.removeprefix("- "))
    assert "\x1b" not in hostile and "\x00" not in hostile


@pytest.mark.parametrize("form", ["csv", "jsonl", "junit", "markdown", "minutes", "seconds"])
def test_a_run_of_which_nothing_is_ok_breaks_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    made(home, {"ext4": End(status=Status.FAILED, reason="oh", host_seconds=1)})
    assert "ext4" in said(capsys, "--format", form)


def test_what_is_not_there_or_cannot_be_written_is_one_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several(home)
    assert main(["export", "yesterday"]) == 2
    assert main(["export", "-o", "/nowhere/file"]) == 2
    assert "agelab: /nowhere/file cannot be written: No such file" in capsys.readouterr().err


def test_the_example_of_the_page_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several(home)
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    scope: dict[str, object] = {}
    for text in examples:
        exec(text, scope)
    assert "61.0" in capsys.readouterr().out


def test_a_frame_has_the_columns_of_the_page(home: Path) -> None:
    run = several(home)
    frame = agelab.load(run.name, home=home)
    assert tuple(frame.columns) == table.COLUMNS
    assert frame["value"].sum() == 2 * (61.0 + 62.5) and str(frame["value"].dtype) == "float64"
    named = set(re.findall(r"`(\w+)`", PAGE.read_text().split("## Columns")[1].split("A cell without")[0]))
    assert named - {"csv", "jsonl", "interrupted"} == set(table.COLUMNS)
    with pytest.raises(InputError, match="no run 'x'"):
        agelab.load("x", home=home)
