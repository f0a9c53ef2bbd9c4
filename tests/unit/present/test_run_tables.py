"""Runs as show and list print them."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from agelab.analysis.cells import RunSet, load
from agelab.cli.compare import compare
from agelab.present.report.page import build_page
from agelab.present.report.tables import FLASH, flash_tables
from agelab.present.view.run_tables import run_blocks, runs_blocks
from agelab.present.view.summary import result_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from tests.build import run_builder
from tests.build.report_tables import cells


def test_brackets_in_what_a_guest_said_are_shown_as_they_are(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    run_builder.end(run, status=Status.FAILED, reason="no such\n file: [/mnt/a] [bold]\n")
    run.write_plan(run.plan().model_copy(update={"unstated": ("the size of the [disk]",)}))
    print_blocks(run_blocks(run))
    shown = capsys.readouterr().out
    assert "no such file: [/mnt/a] [bold]" in shown and "  - the size of the [disk]\n" in shown


def test_what_the_flash_did_is_one_table_on_a_terminal_and_on_the_page(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    did = dict(zip(FLASH, (30e6, 20e6, 12, 1e6, 3, 0.25), strict=True))
    samples = [run_builder.sample("copy", value, metric) for metric, value in did.items()]
    idle = [run_builder.sample("read", 0, metric) for metric in did]
    run_builder.end(run, 0, [run_builder.sample(), run_builder.sample("read"), *samples, *idle])
    [table] = flash_tables(RunSet((load(run),)), "part1")
    [[step, _, *numbers]] = cells(table)
    assert [cell.text for cell in (step, *numbers)] == ["copy", "30", "20", "12", "1", "3", "0.250"]
    print_blocks(run_blocks(run))
    assert "What the flash did" in capsys.readouterr().out
    [part] = build_page([load(run)]).parts
    assert table in next(section.blocks for section in part.sections if section.id == "part1-drive")


@pytest.mark.parametrize(("end", "status"), [(None, "running"), (Status.INTERRUPTED, "waiting")])
def test_cells_of_a_run_that_is_going_on_are_running_or_wait(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], end: Status | None, status: str
) -> None:
    run_builder.end(run, status=end)
    print_blocks(run_blocks(run))
    print_blocks(runs_blocks([run]))
    assert capsys.readouterr().out.count("interrupted") == 2
    with run.lock():
        print_blocks(run_blocks(run))
        print_blocks(runs_blocks([run]))
        assert run.as_json()["cells"][0]["status"] == "interrupted"
    shown = capsys.readouterr().out
    assert f"  status      {status}\n" in shown and f" 1 {status}\n" in shown and "interrupted" not in shown


@pytest.mark.parametrize(
    ("clock", "accelerator", "emulated"), [("wall", "tcg", True), ("wall", "kvm", False), ("virtual", "tcg", False)]
)
def test_a_wall_clock_without_kvm_is_called_emulated_wherever_it_is_shown(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], clock: str, accelerator: str, emulated: bool
) -> None:
    run_builder.end(run, digest=None)
    plan = run.plan()
    cells = tuple(cell.model_copy(update={"accelerator": accelerator}) for cell in plan.cells)
    run.write_plan(plan.model_copy(update={"clock": clock, "cells": cells}))
    print_blocks(run_blocks(run))
    assert ("EMULATED" in capsys.readouterr().out) is emulated
    print_blocks(runs_blocks([run]))
    assert ("EMULATED" in capsys.readouterr().out) is emulated
    assert ("EMULATED" in CliRunner().invoke(compare, [run.name, run.name]).output) is emulated
    assert run.as_json()["cells"][0]["accelerator"] == accelerator


def test_a_control_file_s_run_shows_the_seconds_of_each_test_on_each_filesystem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = {"directory": "/", "name": "a.ctl", "options": {"control": "a.ctl"}}
    cells = run_builder.cells(["ext3-journal-read1", "xfs-read1", "ext3-journal-write"], (1, 2))
    run = run_builder.begin(tmp_path, cells, command=command)
    took = ((1, 1.2), (1, 1.4), (2, 2.4), (2, 2.6), (3, 9), (3, 9.5))
    for number, (test, seconds) in enumerate(took):
        step = "write" if test == 3 else "read1"
        samples = [run_builder.sample("mkfs", 50), run_builder.sample(step, seconds)]
        run_builder.end(run, number, samples, status=Status.FAILED if number == 5 else Status.OK)
    for blocks in (run_blocks, result_blocks):
        print_blocks(blocks(run))
        shown = capsys.readouterr().out
        assert " ".join(shown.split()).count("test, s ext3-journal xfs read1 1.30 (0.20) 2.50 (0.20) write 9 -") == 1
        assert "was not measured" not in shown and "quickest" not in shown


@pytest.mark.parametrize(
    ("reused", "said"),
    [((), "2 ok, 1 failed"), ((0,), "2 ok (1 reused), 1 failed"), ((0, 1), "2 ok (reused), 1 failed")],
)
def test_a_reused_cell_is_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reused: tuple[int, ...], said: str
) -> None:
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4"], (1, 2, 3)))
    origin = {"run": "first", "host": "there", "ended": "2026-01-01T00:00:00Z"}
    for number, status in enumerate((Status.OK, Status.OK, Status.FAILED)):
        run_builder.end(run, number, status=status, reused=origin if number in reused else None)
    print_blocks(runs_blocks([run]))
    assert said in capsys.readouterr().out
