"""Control files: what is read of them, what becomes of it, and the journal."""

import os
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.results.result import End, Sample, Status
from agelab.runner.plan.guest_plan import BootStart, guest_plan
from agelab.runner.plan.phases import phases
from agelab.runner.prepare.control_journal import ControlJournal
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests, resolve
from agelab.scenario import control_file
from tests.build.cell_builder import CORPUS

SCRIPTS = (
    "filesystem-ext3-journal.sh",
    "filesystem-xfs.sh",
    "test-Read1-prepare.sh",
    "test-Read1-perform.sh",
    "test-write-perform.sh",
)
TEXT = "# a comment\n\next3-journal Read1 2\nxfs write 1\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name in SCRIPTS:
        (tmp_path / name).write_text("#!/bin/sh\ntrue\n")
    (tmp_path / "control.ctl").write_text(TEXT)
    return tmp_path / "control.ctl"


def asked(file: Path, **words: Any) -> Any:
    return resolve(RunOptions(**{"control": str(file), **words}))


def test_each_repetition_of_a_line_is_a_cell(file: Path) -> None:
    wanted = asked(file, device="/dev/hda3")
    turns = cell_requests(wanted, 16, (), None)
    assert [turn.name for turn in turns] == [
        ("ext3-journal", "Read1", 1),
        ("ext3-journal", "Read1", 2),
        ("xfs", "write", 1),
    ]
    assert [turn.spec.filesystem.name for turn in turns] == ["ext3", "ext3", "xfs"]
    first = turns[0].spec
    prepare, perform = phases(first.scenario, CORPUS)
    assert prepare.forks == {1: "prepared-1"} and perform.fork_of == "prepared-1"
    plan = guest_plan(first, CORPUS, prepare)
    assert plan["disks"][0]["mkfs"][-1] == "/run/agelab/control/filesystem-ext3-journal.sh"
    assert plan["tell_mount"] and plan["links"] == {
        "/export/experiment/data": "/run/beside",
        "/dev/hda3": "/dev/disk/under-test",
    }
    again = guest_plan(first, CORPUS, perform, BootStart(mounted=("ext3", "rw,data=journal")))
    assert again["disks"][0]["mkfs"] is None
    assert again["disks"][0]["mount"] == [
        "mount", "-t", "ext3", "-o", "rw,data=journal", "/dev/disk/under-test", "/mnt",
    ]  # fmt: skip
    [only] = phases(turns[2].spec.scenario, CORPUS)
    assert [step.run for step in only.steps] == ["/run/agelab/control/test-write-perform.sh"]
    assert set(first.scripts) == set(SCRIPTS)


def deadlines(wanted: Any) -> list[float]:
    return [
        step.deadline
        for turn in cell_requests(wanted, 16, (), None)
        for phase in phases(turn.spec.scenario, CORPUS)
        for step in phase.steps
    ]


@pytest.mark.parametrize(("scale", "default"), [("quick", 600), ("paper", 7200)])
def test_a_control_file_says_how_long_its_scripts_may_take(file: Path, scale: str, default: int) -> None:
    file.write_text("xfs write 1\ndeadline 90\next3-journal Read1 1\ndeadline 40000\nxfs Read1 1\n")
    assert deadlines(asked(file, scale=scale)) == [default, 90, 90, 40000, 40000]


NO_NUMBERS = ["9" * 5000, "10000", "\N{ARABIC-INDIC DIGIT THREE}", "\N{SUPERSCRIPT TWO}", "-1", "1.5", "0x1"]
"""Python's int() raises for thousands of digits, and takes those of other scripts."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has no test"),
        *(
            (f"deadline {words}\nxfs write 1\n", ":1: deadline <seconds>: a whole number of the guest's")
            for words in ("", "0", "soon", "2000001", "5 6", *(NO_NUMBERS[:1] + NO_NUMBERS[2:]))
        ),
        *((f"xfs write {digits}\n", r":1: '.{1,20}' is not a number of repetitions") for digits in NO_NUMBERS),
        *((f"xfs {name} 1\n", f":1: a test cannot be called {name}") for name in ("mount", "Boot", "prepare-1")),
        ("xfs prepare 1\n", ":1: a test cannot be called prepare"),
    ],
)
def test_what_is_no_control_file_is_told_with_its_line(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        control_file.read(file)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        control_file.read(file.with_name("none"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\n", "is no text"),
        *((f"xfs write {digits} end ok\n".encode(), r"journal\.log:1: '.{1,20}' is no") for digits in NO_NUMBERS),
    ],
)
def test_a_journal_that_is_none_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    ControlJournal(tmp_path).path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        opened(ControlJournal(tmp_path), proceed=True)


def test_what_has_ended_is_not_run_again(file: Path) -> None:
    wanted = asked(file)
    left = cell_requests(wanted, 16, (), None, {("ext3-journal", "Read1", 1), ("xfs", "write", 1)})
    assert [turn.name for turn in left] == [("ext3-journal", "Read1", 2)]


def test_every_error_is_named_with_its_line(file: Path) -> None:
    file.write_text("xfs write\nxfs write 0\nminix write 1\nxfs gone 1\nxfs write 1\nxfs write 2\nx/y write 1\n")
    with pytest.raises(InputError) as caught:
        control_file.read(file)
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1] for line in lines] == ["1", "2", "3", "4", "6", "7"]
    for line, words in zip(
        lines,
        (
            "three words; there are 2",
            "'0' is not a number",
            "minix does not",
            "there is no",
            "line 5 is xfs-write in",
            "letters",
        ),
        strict=True,
    ):
        assert words in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"control": None}, "name a scenario, or a control file"),
        ({"control": None, "proceed": True}, "--continue goes with --control"),
        ({"control": ""}, "--control: name a file"),
        ({"filesystem": "xfs"}, "names its filesystem: leave --filesystem out"),
        ({"seeds": "1,2"}, "names its seeds: leave --seeds out"),
        ({"device": "hda3"}, "--device hda3: name a device file, like /dev/hda3"),
        ({"device": "/etc/passwd"}, "--device /etc/passwd: name a device file"),
        ({"device": "/dev/../etc/passwd"}, "name a device file"),
        ({"keep_disk": True}, "neither kept nor forked: leave --keep-disk out"),
        ({"trace": True}, "a control file's tests are not performed under strace"),
    ],
)
def test_what_does_not_go_together_is_refused(file: Path, words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked(file, **words)


def test_its_results_are_of_the_scale_of_its_machine_and_say_nothing_of_that_machines_study(file: Path) -> None:
    (file.parent / "data").mkdir()
    assert asked(file, scale="quick").scale_name == "quick"
    assert asked(file, scale=None).scale_name == "paper"
    assert asked(file).selection.scenario.unstated == ()


def opened(journal: ControlJournal, *, proceed: bool) -> dict[tuple[str, str, int], str]:
    with journal.opened(proceed=proceed) as ended:
        return ended


def test_the_journal_tells_what_has_been_done_and_where_to_go_on(tmp_path: Path, file: Path) -> None:
    journal, line = ControlJournal(tmp_path), control_file.read(file).lines[0]
    assert opened(journal, proceed=False) == {}
    assert not journal.path.exists()  # nothing had begun
    journal.begin(line, 1)
    for step in ("prepared-1/mkfs 1", "prepared-1/prepare 1", "ready", "read1 1"):
        journal.step(line, 1, step)
    took = Sample(step="read1", metric="elapsed", value=12.5, unit="s")
    journal.end(line, 1, End(status=Status.OK, host_seconds=1), [took])
    journal.begin(line, 2)
    journal.end(line, 2, End(status=Status.FAILED, reason="read1:\n exit 1", host_seconds=1), [took])
    assert journal.path.read_text() == (
        "ext3-journal Read1 1 begin\next3-journal Read1 1 filesystem\next3-journal Read1 1 prepare\n"
        "ext3-journal Read1 1 perform\next3-journal Read1 1 end ok\n"
        "ext3-journal Read1 2 begin\next3-journal Read1 2 end failed: read1: exit 1\n"
    )
    assert (tmp_path / "results.log").read_text() == "Read1 ext3-journal 12.500000\n"
    with pytest.raises(InputError, match="a run has been started here"):
        opened(journal, proceed=False)
    assert opened(journal, proceed=True) == {("ext3-journal", "Read1", 1): "ok", ("ext3-journal", "Read1", 2): "failed"}


def test_what_was_interrupted_is_run_again(tmp_path: Path, file: Path) -> None:
    journal, line = ControlJournal(tmp_path), control_file.read(file).lines[0]
    opened(journal, proceed=False)
    for repetition, reason in ((1, None), (2, "the host went away")):
        journal.begin(line, repetition)
        journal.end(line, repetition, End(status=Status.INTERRUPTED, reason=reason, host_seconds=1), [])
    journal.begin(line, 3)
    assert opened(journal, proceed=True) == {}


def test_without_a_journal_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to continue"):
        opened(ControlJournal(tmp_path), proceed=True)


def test_two_runs_do_not_share_a_journal(tmp_path: Path, file: Path) -> None:
    journal, line = ControlJournal(tmp_path), control_file.read(file).lines[0]
    with journal.opened(proceed=False):
        journal.begin(line, 1)
        with pytest.raises(InputError, match="a run is still going on here"):
            opened(journal, proceed=True)


@pytest.mark.parametrize("torn", ["b", "begin", "end", "end o", "end failed: the last wor", "end ok"])
def test_a_line_that_was_cut_off_is_not_joined_with_the_next(tmp_path: Path, file: Path, torn: str) -> None:
    """Whoever is killed, or has no room, while a line is written: a test whose end it does not tell is run again."""
    journal, line = ControlJournal(tmp_path), control_file.read(file).lines[0]
    journal.path.write_text(f"ext3-journal Read1 1 {torn}")
    journal.results.write_text("Read1 ext3-jour")
    told = {("ext3-journal", "Read1", 1): torn.split(":")[0].removeprefix("end ")}
    known = told if torn in ("end failed: the last wor", "end ok") else {}
    assert opened(journal, proceed=True) == known
    took = Sample(step="read1", metric="elapsed", value=1, unit="s")
    journal.begin(line, 2)
    journal.end(line, 2, End(status=Status.OK, host_seconds=1), [took])
    assert opened(journal, proceed=True) == {**known, ("ext3-journal", "Read1", 2): "ok"}
    assert journal.path.read_text().splitlines() == [
        f"ext3-journal Read1 1 {torn}", "ext3-journal Read1 2 begin", "ext3-journal Read1 2 end ok",
    ]  # fmt: skip
    assert journal.results.read_text().splitlines()[1] == "Read1 ext3-journal 1.000000"


def test_no_character_of_a_journal_can_be_cut_in_two(tmp_path: Path, file: Path) -> None:
    """Half of one would make it no text, and nothing could be continued."""
    journal, line = ControlJournal(tmp_path), control_file.read(file).lines[0]
    journal.end(line, 1, End(status=Status.FAILED, reason="no such file: Zoë ж\U0001f600", host_seconds=1), [])
    assert journal.path.read_bytes().isascii()
    assert opened(journal, proceed=True) == {("ext3-journal", "Read1", 1): "failed"}


@pytest.mark.parametrize("proceed", [True, False])
@pytest.mark.parametrize("name", ["journal.log", "results.log"])
@pytest.mark.parametrize("kind", ["directory", "pipe", "device", "link"])
def test_a_journal_that_is_no_file_is_refused_before_anything_is_run(
    tmp_path: Path, kind: str, name: str, proceed: bool
) -> None:
    path = tmp_path / name
    if name == "results.log" and proceed:
        (tmp_path / "journal.log").touch()
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "mine").touch()
        path.symlink_to("/dev/zero" if kind == "device" else tmp_path / "mine")
    with pytest.raises(InputError, match=rf"{name} is (not a regular file|a link): a run's notes cannot go there"):
        opened(ControlJournal(tmp_path), proceed=proceed)


def test_a_control_file_names_packages_for_the_guest(file: Path) -> None:
    file.write_text("packages sysbench fio\npackages fio\n" + file.read_text())
    assert control_file.read(file).selection.workload.packages == ("fio", "sysbench")
    file.write_text("packages\npackages Fio=3\n" + file.read_text())
    with pytest.raises(InputError) as caught:
        control_file.read(file)
    assert [line.partition(f"{file}:")[2] for line in str(caught.value).splitlines()] == [
        "1: packages <name> ...: names of Debian packages",
        "2: packages <name> ...: names of Debian packages",
    ]
