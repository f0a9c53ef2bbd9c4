"""Which runs can be resumed, and what is asked again."""

import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from agelab.base.errors import InputError
from agelab.cli.resume import resume
from agelab.machine.disk import claim_drives, parse
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.execute.run_plan import refuse_other_inputs
from agelab.runner.prepare.parts import Parts
from agelab.runner.prepare.prepare import prepare
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, resolve
from agelab.store.artefacts import Store
from tests.build import run_builder


def test_a_run_is_not_gone_on_with_from_other_inputs() -> None:
    before = run_builder.plan(provenance={"qemu": "7.2", "host": "a"})
    refuse_other_inputs(before, before.model_copy(update={"provenance": {"qemu": "7.2", "host": "b"}}))
    with pytest.raises(InputError, match=r"r was begun with other inputs \(QEMU 7.2 \| 10.0\)"):
        refuse_other_inputs(before, before.model_copy(update={"provenance": {"qemu": "10.0", "host": "a"}}))


def test_what_was_not_asked_for_is_not_asked_for_again(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resume a run of a verb with fewer options than run, or of a version before an option existed."""
    words = {"kernel": "debian:6.1", "seeds": "1", "jobs": 1, "scale": "quick", "disks": None, "erase": ""}
    command = {"directory": str(tmp_path), "name": "aging-ext4", "options": {**words, "keep_disk": True}}
    run.write_plan(run.plan().model_copy(update={"command": command}))
    asked = []
    monkeypatch.setattr(runner, "run_request", lambda request, *_, **__: asked.append(request.options))
    CliRunner().invoke(resume, ["latest", "--jobs", "3", "--erase", "X"], catch_exceptions=False)
    assert [(one.jobs, one.erase, one.keep_disk, one.proceed, one.curve) for one in asked] == [
        (3, ("X",), True, False, False)
    ]
    CliRunner().invoke(resume, ["latest", "--jobs", "auto"], catch_exceptions=False)
    command["options"] = {**words, "jobs": "auto"}
    run.write_plan(run.plan().model_copy(update={"command": command}))
    CliRunner().invoke(resume, ["latest"], catch_exceptions=False)
    assert [one.jobs for one in asked] == [3, "auto", "auto"]
    command["directory"] = str(tmp_path / "gone")
    run.write_plan(run.plan().model_copy(update={"command": command}))
    with pytest.raises(InputError, match="which is not there any more"):
        CliRunner().invoke(resume, ["latest"], catch_exceptions=False)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A file of the user's, that no signature tells from an empty disk."""
    path = tmp_path / "my notes.tar"
    path.write_bytes(b"notes".ljust(1 << 20, b"\0"))
    return path


@pytest.mark.parametrize("more", [{}, {"until_decided": True}])
def test_a_real_disk_of_a_plan_is_written_to_only_where_the_command_line_names_it_again(
    run: RunDirectory, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, object]
) -> None:
    before = notes.read_bytes()
    with (
        pytest.raises(InputError, match="holds data: 'notes' at byte 0") as held,
        claim_drives([parse(f"file:{notes}")]),
    ):
        pass
    token = held.value.hint.partition("--erase ")[2].split()[0]
    words = {"filesystem": "ext4,xfs", "seeds": "1,2,3,4,5", "disks": f"file:{notes}", "erase": token, **more}
    command = {"directory": str(tmp_path), "name": "aging", "options": words}
    run.write_plan(run.plan().model_copy(update={"command": command}))
    with pytest.raises(InputError, match="must be named on the command line") as refused:
        CliRunner().invoke(resume, ["latest"], catch_exceptions=False)
    with pytest.raises(InputError, match="--disks file:/other is another"):
        CliRunner().invoke(resume, ["latest", "--disks", "file:/other"], catch_exceptions=False)
    paste = shlex.split(refused.value.hint.partition(": ")[2])
    assert paste == ["agelab", "resume", run.name, "--disks", f"file:{notes}?cache=none&aio=native"]
    with pytest.raises(InputError, match="holds data: 'notes' at byte 0"):  # whatever the plan says of erasing it
        CliRunner().invoke(resume, paste[2:], catch_exceptions=False)
    asked: list[RunOptions] = []

    def run_request(request: RunRequest, *_: object, **__: object) -> None:
        asked.append(request.options)
        raise InputError("seen")

    monkeypatch.setattr(runner, "run_request", run_request)
    with pytest.raises(InputError, match="seen"):
        CliRunner().invoke(resume, [*paste[2:], "--erase", token], catch_exceptions=False)
    assert [(one.erase, one.of_plan) for one in asked] == [((token,), False)]
    assert notes.read_bytes() == before


def test_a_run_without_real_disks_takes_none_when_it_goes_on(run: RunDirectory, tmp_path: Path) -> None:
    command = {"directory": str(tmp_path), "name": "aging-ext4", "options": {}}
    run.write_plan(run.plan().model_copy(update={"command": command}))
    with pytest.raises(InputError, match="the plan has no real disks"):
        CliRunner().invoke(resume, ["latest", "--disks", "file:/a"], catch_exceptions=False)


@pytest.mark.parametrize("words", [{"disks": "file:{notes}"}, {"control": "{notes}"}])
def test_whoever_reads_a_plan_writes_to_nothing_that_it_names(
    notes: Path, tmp_path: Path, words: dict[str, str]
) -> None:
    there = {name: word.format(notes=notes) for name, word in words.items()}
    if "control" in there:
        notes.write_text("filesystem ext4\n")
    command = {"directory": str(tmp_path), "name": "aging-ext4", "options": there}
    options = RunOptions.from_plan(run_builder.plan(command=command))
    before = sorted(tmp_path.iterdir()), notes.read_bytes()
    with pytest.raises(InputError, match="only a command line may name it"):
        prepare(
            replace(resolve(RunOptions(name="aging-ext4")), options=options.changed(jobs=1)),
            cast(Parts, None),
            Store(tmp_path / "store"),
            Progress(),
            ExitStack(),
        )
    assert (sorted(tmp_path.iterdir()), notes.read_bytes()) == before


ASKED = {"directory": ".", "name": "aging-ext4", "options": {}}
"""The command as a run stores it."""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ({}, "does not say what was asked for"),
        ({**ASKED, "options": {"control": "mine/control.ctl"}}, "is of a control file, which has its own journal"),
    ],
)
def test_what_cannot_be_resumed_is_said(run: RunDirectory, command: dict[str, object], said: str) -> None:
    run.write_plan(run.plan().model_copy(update={"command": command}))
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(resume, ["latest"], catch_exceptions=False)


def test_a_run_that_has_ended_is_shown_and_nothing_runs(run: RunDirectory) -> None:
    run_builder.end(run, status=Status.FAILED)
    run.write_plan(run.plan().model_copy(update={"command": {**ASKED, "options": {"control": None}}}))
    done = CliRunner().invoke(resume, [], standalone_mode=False)
    assert done.return_value == 1 and "status      failed" in done.output
    assert done.output.startswith(f"{run.name}: nothing is left to run: each of its cells has ended\n")


@pytest.mark.parametrize("name", ["lock", "samples.jsonl", "cells", "cells/0"])
def test_a_run_with_links_of_somebody_else_is_not_written_to(run: RunDirectory, tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes").write_text("no newline at its end")
    path = run.path / name
    path.rename(tmp_path / "elsewhere") if path.exists() else None
    path.symlink_to(mine if "cells" in name else mine / "notes")
    with pytest.raises(InputError, match=f"{name} is a link: nothing is written"), run.lock():
        run.append(0, run_builder.sample())
    assert [one.read_text() for one in mine.iterdir()] == ["no newline at its end"]
