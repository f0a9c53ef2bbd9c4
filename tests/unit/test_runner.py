"""What a run refuses before its first cell, and what compare says."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from agelab.cli.compare import compare
from agelab.cli.options import open_store
from agelab.cli.resume import resume
from agelab.cli.run import run as run_command
from agelab.errors import HostError, InputError
from agelab.model.result import Cell, End, RunPlan, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.execute.run_plan import refuse_other_inputs
from agelab.runner.prepare import capacity
from agelab.view.input_diff import _short
from agelab.view.run_tables import print_run, print_runs
from agelab.vm import host
from tests.unit.test_scenario import CORPUS, spec


def test_disks_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=2 * 10**9))
    said = capacity.require_capacity(
        [spec()], [CORPUS], tmp_path, at_once=2, copies=2
    )  # one cell: nothing runs beside it
    assert said == "a cell: up to 1.3 GB of disk and 1.1 GB of memory"
    with pytest.raises(
        HostError, match=r"has 2\.0 GB free, 2 cells at once would take up to 2\.9 GB"
    ) as error:
        capacity.require_capacity([spec(), spec()], [CORPUS] * 2, tmp_path, at_once=2, copies=3)
    assert error.value.exit_code == 3
    assert "AGELAB_HOME" in error.value.hint
    with pytest.raises(HostError, match=r"a cell would take up to 2\.9 GB"):  # what is kept stays
        capacity.require_capacity([spec()], [CORPUS], tmp_path, at_once=1, copies=1, kept=5)


def test_the_same_cells_on_several_kernels_run_side_by_side(tmp_path: Path) -> None:
    said = capacity.require_capacity([spec()], [CORPUS], tmp_path, at_once=2, copies=2, kernels=4)
    assert said.startswith("2 cells at once")


def test_memory_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "memory_available", lambda: 1_080_000_000)
    capacity.require_capacity([spec()], [CORPUS], tmp_path, at_once=1, copies=1)
    with pytest.raises(HostError, match=r"1\.1 GB of memory available, a cell would take 1\.1 GB"):
        capacity.require_capacity([spec(scale="paper")], [CORPUS], tmp_path, at_once=1, copies=1)


def test_a_list_of_no_drives_is_not_the_machines_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_request", None)
    with pytest.raises(InputError, match="no drive ''"):
        CliRunner().invoke(run_command, ["aging-ext4", "--disks", ""], catch_exceptions=False)


def _run(home: Path, seed: int, value: float, status: Status | None) -> str:
    run = RunDirectory.create(home / "runs", "aging-ext4")
    cell = Cell(
        variant="ext4", filesystem="ext4", layout="single", kernel="6.1", machine="m", drives=("model:none",),
        defaults="period", seed=seed,
    )  # fmt: skip
    plan = RunPlan(
        run=run.name, scenario="aging", scale="quick", clock="virtual", cells=(cell,), provenance={}
    )
    run.write_plan(plan)
    run.write_inputs(0, {"seeds": {"run": seed}})
    run.append(0, Sample(step="copy", metric="elapsed", value=value, unit="s"))
    if status:
        run.finish(0, End(status=status, host_seconds=1))
    return run.name


@pytest.mark.parametrize(
    ("seed", "value", "status", "said"),
    [
        (1, 1.5, Status.OK, "  equal inputs, equal samples\n"),
        (2, 1.5, Status.OK, "  input seeds.run: 1 | 2\n"),
        (1, 1.6, Status.OK, "EQUAL INPUTS AND DIFFERENT SAMPLES"),
        (1, 1.6, None, "  not finished: "),
        (1, 1.6, Status.INTERRUPTED, "  not finished: "),
    ],
)
def test_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, value: float, status: Status | None, said: str
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    left, right = _run(tmp_path, 1, 1.5, Status.OK), _run(tmp_path, seed, value, status)
    shown = CliRunner().invoke(compare, [left, right]).output
    assert said in shown
    if status is not Status.OK:
        assert "EQUAL INPUTS" not in shown


def test_real_time_that_is_not_the_same_twice_breaks_no_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    names = [_run(tmp_path, 1, value, Status.OK) for value in (1.5, 1.6)]
    for name in names:
        run = RunDirectory(tmp_path / "runs" / name)
        run.write_plan(run.plan().model_copy(update={"clock": "wall"}))
    shown = CliRunner().invoke(compare, names).output
    assert "sample copy 1 elapsed: 1.5 | 1.6" in shown and "real time is not the same twice" in shown
    assert "EQUAL INPUTS" not in shown


def test_brackets_in_what_a_guest_said_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = _run(tmp_path, 1, 1.5, None)
    run = RunDirectory(tmp_path / "runs" / name)
    run.finish(0, End(status=Status.FAILED, reason="no such\n file: [/mnt/a] [bold]\n", host_seconds=1))
    run.write_plan(run.plan().model_copy(update={"unstated": ("the size of the [disk]",)}))
    print_run(run)
    shown = capsys.readouterr().out
    assert "no such file: [/mnt/a] [bold]" in shown and "  - the size of the [disk]\n" in shown


@pytest.mark.parametrize(("end", "status"), [(None, "running"), (Status.INTERRUPTED, "waiting")])
def test_cells_of_a_run_that_is_going_on_are_running_or_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], end: Status | None, status: str
) -> None:
    run = RunDirectory(tmp_path / "runs" / _run(tmp_path, 1, 1.5, end))
    print_run(run)
    print_runs([run])
    assert capsys.readouterr().out.count("interrupted") == 2
    with run.lock():
        print_run(run)
        print_runs([run])
        assert run.as_json()["cells"][0]["status"] == "interrupted"
    shown = capsys.readouterr().out
    assert f"  status      {status}\n" in shown and f" 1 {status} " in shown and "interrupted" not in shown


@pytest.mark.parametrize(
    ("clock", "accelerator", "emulated"),
    [("wall", "tcg", True), ("wall", "kvm", False), ("virtual", "tcg", False)],
)
def test_a_wall_clock_without_kvm_is_called_emulated_wherever_it_is_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    clock: str,
    accelerator: str,
    emulated: bool,
) -> None:
    run = RunDirectory(tmp_path / "runs" / _run(tmp_path, 1, 1.5, Status.OK))
    plan = run.plan()
    cells = tuple(cell.model_copy(update={"accelerator": accelerator}) for cell in plan.cells)
    run.write_plan(plan.model_copy(update={"clock": clock, "cells": cells}))
    print_run(run)
    assert ("EMULATED" in capsys.readouterr().out) is emulated
    print_runs([run])
    assert ("EMULATED" in capsys.readouterr().out) is emulated
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    assert ("EMULATED" in CliRunner().invoke(compare, [run.name, run.name]).output) is emulated
    assert run.as_json()["cells"][0]["accelerator"] == accelerator


def test_a_store_whose_path_qemu_cannot_take_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "my disk"))
    with pytest.raises(InputError, match="cannot carry a path with ' '"):
        open_store()


def test_a_long_input_is_shown_from_where_it_parts() -> None:
    head = "x" * 100
    shown = _short(head + "one", head + "two")
    assert shown == "..." + "x" * 20 + "one | ..." + "x" * 20 + "two"


def test_a_run_is_not_gone_on_with_from_other_inputs() -> None:
    before = RunPlan(
        run="r",
        scenario="aging",
        scale="quick",
        clock="virtual",
        cells=(),
        provenance={"qemu": "7.2", "host": "a"},
    )
    refuse_other_inputs(before, before.model_copy(update={"provenance": {"qemu": "7.2", "host": "b"}}))
    with pytest.raises(InputError, match=r"r was begun with other inputs \(qemu\)"):
        refuse_other_inputs(before, before.model_copy(update={"provenance": {"qemu": "10.0", "host": "a"}}))


def test_what_was_not_asked_for_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a verb that has fewer options than run, or before an option was there."""
    run = RunDirectory(tmp_path / "runs" / _run(tmp_path, 1, 1.5, None))
    words = {"kernel": "debian:6.1", "seeds": "1", "jobs": 1, "scale": "quick", "disks": None, "erase": ""}
    command = {"directory": str(tmp_path), "name": "aging-ext4", "words": words, "more": {"keep_disk": True}}
    run.write_plan(run.plan().model_copy(update={"command": command}))
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    asked = []
    monkeypatch.setattr(runner, "run_request", lambda request, *_, **__: asked.append(request.options))
    CliRunner().invoke(resume, ["latest", "--jobs", "3", "--erase", "X"], catch_exceptions=False)
    assert [(one.jobs, one.erase, one.keep_disk, one.proceed, one.curve) for one in asked] == [
        (3, ("X",), True, False, False)
    ]
    command["directory"] = str(tmp_path / "gone")
    run.write_plan(run.plan().model_copy(update={"command": command}))
    with pytest.raises(InputError, match="which is not there any more"):
        CliRunner().invoke(resume, ["latest"], catch_exceptions=False)


ASKED = {"directory": ".", "name": "aging-ext4", "words": {}, "more": {}}
"""What a run keeps of its command."""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ({}, "does not say what was asked for"),
        (
            {**ASKED, "words": {"control": "mine/control.ctl"}},
            "is of a control file, which has a journal of its own",
        ),
    ],
)
def test_what_cannot_be_resumed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: dict[str, object], said: str
) -> None:
    run = RunDirectory(tmp_path / "runs" / _run(tmp_path, 1, 1.5, None))
    run.write_plan(run.plan().model_copy(update={"command": command}))
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(resume, ["latest"], catch_exceptions=False)


def test_a_run_that_has_ended_is_shown_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path / "runs" / _run(tmp_path, 1, 1.5, Status.FAILED))
    run.write_plan(run.plan().model_copy(update={"command": {**ASKED, "words": {"control": None}}}))
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    done = CliRunner().invoke(resume, [], standalone_mode=False)
    assert done.return_value == 1 and "status      failed" in done.output
    assert done.output.startswith(f"{run.name}: nothing is left to run: each of its cells has ended\n")
