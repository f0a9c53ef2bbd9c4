"""Runs as show and list print them."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from agelab.cli.compare import compare
from agelab.model.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.view.run_tables import print_run, print_runs
from tests.unit import run_builder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run of one cell, in the store that is asked, whose cell has a sample and has not ended."""
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    run = run_builder.begin(tmp_path, [run_builder.cell()], label="aging-ext4")
    run_builder.end(run, 0, [run_builder.sample()], status=None, inputs={"seeds": {"run": 1}})
    return run


def test_brackets_in_what_a_guest_said_are_shown_as_they_are(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    run_builder.end(run, status=Status.FAILED, reason="no such\n file: [/mnt/a] [bold]\n")
    run.write_plan(run.plan().model_copy(update={"unstated": ("the size of the [disk]",)}))
    print_run(run)
    shown = capsys.readouterr().out
    assert "no such file: [/mnt/a] [bold]" in shown and "  - the size of the [disk]\n" in shown


@pytest.mark.parametrize(("end", "status"), [(None, "running"), (Status.INTERRUPTED, "waiting")])
def test_cells_of_a_run_that_is_going_on_are_running_or_wait(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], end: Status | None, status: str
) -> None:
    run_builder.end(run, status=end)
    print_run(run)
    print_runs([run])
    assert capsys.readouterr().out.count("interrupted") == 2
    with run.lock():
        print_run(run)
        print_runs([run])
        assert run.as_json()["cells"][0]["status"] == "interrupted"
    shown = capsys.readouterr().out
    assert f"  status      {status}\n" in shown and f" 1 {status}\n" in shown and "interrupted" not in shown


@pytest.mark.parametrize(
    ("clock", "accelerator", "emulated"),
    [("wall", "tcg", True), ("wall", "kvm", False), ("virtual", "tcg", False)],
)
def test_a_wall_clock_without_kvm_is_called_emulated_wherever_it_is_shown(
    run: RunDirectory,
    capsys: pytest.CaptureFixture[str],
    clock: str,
    accelerator: str,
    emulated: bool,
) -> None:
    run_builder.end(run, digest=None)
    plan = run.plan()
    cells = tuple(cell.model_copy(update={"accelerator": accelerator}) for cell in plan.cells)
    run.write_plan(plan.model_copy(update={"clock": clock, "cells": cells}))
    print_run(run)
    assert ("EMULATED" in capsys.readouterr().out) is emulated
    print_runs([run])
    assert ("EMULATED" in capsys.readouterr().out) is emulated
    assert ("EMULATED" in CliRunner().invoke(compare, [run.name, run.name]).output) is emulated
    assert run.as_json()["cells"][0]["accelerator"] == accelerator
