"""Programs as workloads of agelab crash: a step of a scenario after all that comes before it, and what is refused."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.runner.crash import programs
from agelab.runner.plan.steps import StepPlan
from agelab.scenario.step import Action


def step(name: str, run: str, **changes: object) -> StepPlan:
    action = Action.model_validate({"name": name, "run": run, "origin": "estimated", **changes})
    return replace(StepPlan.of(action, 3, None), expect=action.expect)  # type: ignore[arg-type]


def done(tmp_path: Path, *steps: StepPlan) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script"
    script.write_bytes(programs._script(steps, {"WORD": "it's $HOME"}))
    script.chmod(0o755)
    return subprocess.run([script], cwd=tmp_path, capture_output=True, text=True, check=False)


def test_steps_run_as_their_cell_runs_them(tmp_path: Path) -> None:
    ended = done(
        tmp_path,
        step("one", 'echo "$WORD $REPETITION" > one'),
        step("two", "exit 3", expect=[0, 3]),
        step("three", "cat one > three", sync=True),
    )
    assert (ended.returncode, (tmp_path / "three").read_text()) == (0, "it's $HOME 3\n")


def test_the_first_step_that_fails_ends_them(tmp_path: Path) -> None:
    ended = done(tmp_path, step("one", "false; true"), step("two", "touch two"))
    assert (ended.returncode, ended.stdout) == (1, "step one\n")
    assert not (tmp_path / "two").exists()


@pytest.mark.skipif(not shutil.which("timeout"), reason="no timeout(1) on this host")
def test_a_step_whose_power_is_cut_is_stopped(tmp_path: Path) -> None:
    ended = done(tmp_path, step("one", "exec sleep 60", cut_after=0.1), step("two", "touch two"))
    assert ended.returncode == 0 and (tmp_path / "two").exists()


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("recovery:wrok", "no step of recovery 'wrok'; did you mean work"),
        ("recoveri:work", "no scenario 'recoveri'"),
        ("tum-2005:read1", "agelab crash takes no step of tum-2005"),
    ],
)
def test_a_step_that_cannot_be_is_refused(workload: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        programs.planned(workload, "ext4", "debian:6.1", "today")


def test_only_a_step_has_a_cell(tmp_path: Path) -> None:
    source = tmp_path / "a:b"
    source.write_text("#!/bin/sh\n")
    assert programs.planned(str(source), "ext4", "debian:6.1", "today") is None
    assert programs.planned("create A/new; sync", "ext4", "debian:6.1", "today") is None
    assert programs.is_program("spool") and not programs.is_program("one")
    planned = programs.planned("recovery:work", "xfs", "debian:6.1", "today")
    assert planned and planned[1].filesystem.name == "xfs" and planned[1].disk_bytes >> 20 == 512
