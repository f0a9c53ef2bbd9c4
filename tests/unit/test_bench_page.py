"""The benches whose tables are in the docs refuse runs of another scenario."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agelab.results.run_directory import RunDirectory
from bench.page import command
from tests.unit import aging_runs


def test_a_run_of_another_scenario_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    name = aging_runs.make(tmp_path, {"ext4": 1.4})
    monkeypatch.setattr(sys, "argv", ["bench", "--run", name])
    made: list[str] = []

    def report(runs: Sequence[RunDirectory]) -> str:
        made.extend(run.name for run in runs)
        return ""

    def write(runs: Sequence[RunDirectory], text: str) -> None:
        raise AssertionError("nothing is to be written")

    assert command("a bench", "aging", "1", report, write) == 0
    assert command("a bench", "space", "1", report, write) == 2
    assert made == [name]
    assert f"{name} is a run of scenario aging: this table is of space" in capsys.readouterr().err
