"""Which runs can be resumed, and what is asked again."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from agelab.cli.resume import resume
from agelab.errors import InputError
from agelab.model.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.execute.run_plan import refuse_other_inputs
from tests.unit import run_builder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run of one cell, in the store that is asked, whose cell has a sample and has not ended."""
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    run = run_builder.begin(tmp_path, [run_builder.cell()], label="aging-ext4")
    run_builder.end(run, 0, [run_builder.sample()], status=None, inputs={"seeds": {"run": 1}})
    return run


def test_a_run_is_not_gone_on_with_from_other_inputs() -> None:
    before = run_builder.plan(provenance={"qemu": "7.2", "host": "a"})
    refuse_other_inputs(before, before.model_copy(update={"provenance": {"qemu": "7.2", "host": "b"}}))
    with pytest.raises(InputError, match=r"r was begun with other inputs \(qemu\)"):
        refuse_other_inputs(before, before.model_copy(update={"provenance": {"qemu": "10.0", "host": "a"}}))


def test_what_was_not_asked_for_is_not_asked_for_again(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resume a run of a verb with fewer options than run, or of a version before an option existed."""
    words = {"kernel": "debian:6.1", "seeds": "1", "jobs": 1, "scale": "quick", "disks": None, "erase": ""}
    command = {"directory": str(tmp_path), "name": "aging-ext4", "words": words, "more": {"keep_disk": True}}
    run.write_plan(run.plan().model_copy(update={"command": command}))
    asked = []
    monkeypatch.setattr(runner, "run_request", lambda request, *_, **__: asked.append(request.options))
    CliRunner().invoke(resume, ["latest", "--jobs", "3", "--erase", "X"], catch_exceptions=False)
    assert [(one.jobs, one.erase, one.keep_disk, one.proceed, one.curve) for one in asked] == [
        (3, ("X",), True, False, False)
    ]
    CliRunner().invoke(resume, ["latest", "--jobs", "auto"], catch_exceptions=False)
    command["words"] = {**words, "jobs": "auto"}
    run.write_plan(run.plan().model_copy(update={"command": command}))
    CliRunner().invoke(resume, ["latest"], catch_exceptions=False)
    assert [one.jobs for one in asked] == [3, "auto", "auto"]
    command["directory"] = str(tmp_path / "gone")
    run.write_plan(run.plan().model_copy(update={"command": command}))
    with pytest.raises(InputError, match="which is not there any more"):
        CliRunner().invoke(resume, ["latest"], catch_exceptions=False)


ASKED = {"directory": ".", "name": "aging-ext4", "words": {}, "more": {}}
"""The command as a run stores it."""


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
def test_what_cannot_be_resumed_is_said(run: RunDirectory, command: dict[str, object], said: str) -> None:
    run.write_plan(run.plan().model_copy(update={"command": command}))
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(resume, ["latest"], catch_exceptions=False)


def test_a_run_that_has_ended_is_shown_and_nothing_runs(run: RunDirectory) -> None:
    run_builder.end(run, status=Status.FAILED)
    run.write_plan(run.plan().model_copy(update={"command": {**ASKED, "words": {"control": None}}}))
    done = CliRunner().invoke(resume, [], standalone_mode=False)
    assert done.return_value == 1 and "status      failed" in done.output
    assert done.output.startswith(f"{run.name}: nothing is left to run: each of its cells has ended\n")
