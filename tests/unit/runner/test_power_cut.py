"""Power cuts: where a scenario or a user asks for one, what the guest is told, and what comes of its answers."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from agelab.base.errors import InputError
from agelab.cli.run import run
from agelab.evaluate.derived_samples import recovery_times
from agelab.machine.drive.record import SECTOR, RequestKind
from agelab.machine.vm.guest import MemoryDisk
from agelab.present.view import run_tables as shown
from agelab.results.result import Sample
from agelab.runner.execute import runner
from agelab.runner.execute.disks import DiskFiles
from agelab.runner.execute.power_cut import RecordedDrive
from agelab.runner.plan.cell_drive import Partition
from agelab.runner.plan.guest_plan import BootStart, guest_plan
from agelab.runner.plan.phases import phases
from agelab.scenario import selection
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.metrics import METRICS
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import Action
from harness import recovery
from harness.events import Events
from harness.plan import Disk, Recovery
from harness.step import Outcome
from tests.build.cell_builder import CORPUS, made, spec
from tests.build.crash_record import record, sectors


def action(**changes: Any) -> Action:
    return Action.model_validate({"name": "work", "run": "true", "origin": "estimated", **changes})


# ---- in a scenario ----


def test_a_step_is_cut_at_a_moment_or_in_a_window() -> None:
    assert action().cut_after is None
    assert action(cut_after=2.5).cut_after == (2.5, 2.5)
    assert action(cut_after=[2, 6]).cut_after == (2, 6)


@pytest.mark.parametrize("wrong", [0, -1, [3, 2], [5, 20], 20, [0, 5]])
def test_a_moment_outside_the_step_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError, match=r"cut_after: .* is not between 0 and the deadline, 20 s"):
        action(cut_after=wrong, deadline=20)


def test_the_window_is_the_run_seeds() -> None:
    moments = [replace(spec(), run_seed=seed).cut_at(4, 9) for seed in (1, 2, 3, 4, 5)]
    assert moments == [7.09, 5.18, 8.271, 6.361, 4.451]
    assert spec().cut_at(3, 3) == 3


def changed(**changes: Any) -> Scenario:
    whole = selection.select("recovery-ext4").scenario.model_dump()
    return Scenario.model_validate({**whole, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tests": [{"name": "read", "run": "true", "cut_after": 3, "origin": "inferred"}]},
            "test 'read': only a step's power is cut",
        ),
        ({"curve": {"step": "fill", "after": [1]}}, "a curve and power cuts cannot be combined"),
        ({"tests": [{"name": "fsck", "run": "true", "origin": "inferred"}]}, "a step cannot be called"),
    ],
)
def test_what_does_not_go_with_a_cut_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        changed(**changes)


def test_a_plan_without_a_cut_says_nothing_of_it() -> None:
    plan = made(spec())
    assert "recovery" not in plan
    assert all("cut_after" not in step for step in plan["steps"])


def test_drives_are_recorded_until_the_last_cut_and_nowhere_else() -> None:
    assert [drive.get("record") for drive in made(spec("aging-ext4", drives=()))["drives"]] == [None]
    cell = spec("recovery-ext4", drives=())
    [phase] = phases(cell.scenario, CORPUS)
    first, after = (guest_plan(cell, CORPUS, phase, start) for start in (BootStart(), BootStart(1, 2)))
    [(drive, later)] = zip(first["drives"], after["drives"], strict=True)
    [partition] = drive["partitions"]
    number, room = drive["record"]
    assert number == partition["disk"] + 1 and room > partition["sectors"] * SECTOR
    assert "record" not in later


def test_a_cut_leaves_what_had_reached_the_platters_by_then(tmp_path: Path) -> None:
    kept = (RequestKind.KEPT, 10, sectors("----"), 0)
    left = record(
        tmp_path,
        [
            (RequestKind.WRITE, 3, sectors("o"), 0, 1),  # of another partition
            (RequestKind.KEPT, 3, sectors("-"), 0, 2),
            (RequestKind.WRITE, 10, sectors("abcd"), 0, 1),
            (RequestKind.KEPT, 11, sectors("--"), 0, 20),
            (RequestKind.WRITE, 11, sectors("e"), 21, 22),
            (*kept, 30),
            (RequestKind.DISCARD, 12, sectors("-"), 31, 32),
            (*kept, 40),
        ],
    )
    maps = bytes(range(256)) * 2

    def cut(at: int) -> bytes:
        disk = MemoryDisk(tmp_path / "disk", 5 * SECTOR, written=True)
        disk.path.write_bytes(sectors("vwxy") + b"-" * SECTOR)
        drive = RecordedDrive(left.log, [(disk, Partition(11, 4))])
        with ExitStack() as cleanup:
            drive.keep(DiskFiles(), cleanup)
            disk.path.write_bytes(b"?" * 4 * SECTOR + maps)
            drive.cut(at, DiskFiles())
        assert {path.name for path in tmp_path.iterdir()} == {"log", "base", "disk"}
        return disk.path.read_bytes()

    found = {at: cut(at) for at in (19, 20, 29, 30, 40)}
    assert {at: content[4 * SECTOR :] for at, content in found.items()} == dict.fromkeys(found, maps)
    assert [content[: 4 * SECTOR] for content in found.values()] == [
        sectors("vwxy"),
        sectors("bcxy"),
        sectors("bcxy"),
        sectors("ecdy"),
        sectors("e") + bytes(SECTOR) + sectors("dy"),
    ]


def test_the_plan_has_the_moment_and_what_is_done_after_it() -> None:
    cell = spec("recovery-jfs", run_seed=2)
    [phase] = phases(cell.scenario, CORPUS)
    plan = guest_plan(cell, CORPUS, phase)
    assert {step["name"]: step.get("cut_after") for step in plan["steps"]} == {
        "fill": None,
        "work": 5.18,
        "check": None,
    }
    device = "/dev/disk/under-test"
    wanted = {"repair": ["jfs_fsck", "-p", device], "repair_first": True, "fsck": ["jfs_fsck", "-n", "-f", device]}
    assert plan["recovery"] == {**wanted, "survived": None}
    later = guest_plan(cell, CORPUS, phase, BootStart(1, 2, survived="665\n"))
    assert later["recovery"]["survived"] == "665\n"


def test_each_variant_of_recovery_can_be_repaired() -> None:
    names = {variant.filesystem for variant in selection.select("recovery").variants}
    assert len(names) > 5 and all(selection.filesystem(name).repair for name in names)


def test_a_repair_names_its_device_and_one_that_comes_first_is_there() -> None:
    file = selection.filesystem("ext4").model_dump()
    with pytest.raises(ValidationError, match="repair does not name"):
        Filesystem.model_validate({**file, "repair": ["e2fsck", "-y"]})
    with pytest.raises(ValidationError, match="repair_first needs a repair"):
        Filesystem.model_validate({**file, "repair": [], "repair_first": True})


# ---- asked for ----


def test_a_real_disk_is_refused_where_a_scenario_cuts_the_power(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_request", None)
    with pytest.raises(InputError, match=r"scenario recovery cuts the power: file:/x.* is a real"):
        CliRunner().invoke(run, ["recovery-ext4", "--disks", "file:/x"], catch_exceptions=False)


# ---- after it ----


class Heard(Events):
    """The harness's events."""

    said: list[dict[str, Any]]

    @classmethod
    def none(cls) -> "Heard":
        heard = cls(-1, b"")
        object.__setattr__(heard, "said", [])
        return heard

    def emit(self, event: str, **fields: object) -> None:
        self.said.append({"event": event, **fields})


FORK: dict[str, Any] = {"name": "d", "members": (), "layers": None, "mkfs": None, "source": None}
DISK = Disk(**FORK, mount=("mount",), umount=("umount",))


class Lost(Exception):
    """The cell has failed."""


def recovered(tmp_path: Path, *, first: bool, mounts: Sequence[int], repair: str = "repair") -> tuple[list[str], Heard]:
    """Return the commands that ran, in order, where the mounts have these exit statuses."""
    ran: list[str] = []
    answers = iter(mounts)
    heard = Heard.none()

    def call(name: str, argv: tuple[str, ...], expect: tuple[int, ...]) -> Outcome:
        ran.append(name)
        if argv[0] == "sh":
            Path(argv[3]).write_text("one\ntwo\n")
            return Outcome(4, "")
        return Outcome(next(answers), "no")

    def do(argv: list[str], what: str) -> None:
        ran.append(argv[0])

    def must(outcome: Outcome, what: str) -> None:
        if outcome.status:
            raise Lost(what)

    todo = Recovery((repair,) if repair else (), first, ("fsck",), "")
    recovery.recover(DISK, todo, 2, call, do, must, tmp_path, heard)
    return ran, heard


def test_a_journal_is_replayed_by_the_mount_and_checked_while_it_is_not_mounted(tmp_path: Path) -> None:
    ran, heard = recovered(tmp_path, first=False, mounts=[0])
    assert ran == ["recovery", "umount", "fsck", "mount"]
    found = {(one["step"], one["metric"]): one["value"] for one in heard.said if one["event"] == "sample"}
    assert found == {("recovery", "mount_status"): 0, ("fsck", "fsck_status"): 4, ("fsck", "fsck_lines"): 2}
    assert {"event": "checked", "step": "fsck", "status": 4, "said": "one\ntwo\n"} in heard.said


def test_what_has_no_journal_or_cannot_be_mounted_is_repaired_before(tmp_path: Path) -> None:
    assert recovered(tmp_path, first=True, mounts=[0])[0] == ["repair", "recovery", "umount", "fsck", "mount"]
    ran, heard = recovered(tmp_path, first=False, mounts=[32, 0])
    assert ran == ["recovery", "repair-after", "recovery-repaired", "umount", "fsck", "mount"]
    ran, _ = recovered(tmp_path, first=True, mounts=[32, 0])
    assert ran[:4] == ["repair", "recovery", "repair-after", "recovery-repaired"]
    assert {"event": "checked", "step": "recovery", "status": 32, "said": "no"} in heard.said


@pytest.mark.parametrize(
    ("first", "mounts", "repair"), [(True, [32, 32], "fix"), (False, [32, 32], "fix"), (False, [32], "")]
)
def test_what_no_repair_brings_back_fails_the_cell(tmp_path: Path, first: bool, mounts: list[int], repair: str) -> None:
    with pytest.raises(Lost, match="mounting what the power cut and a repair have left"):
        recovered(tmp_path, first=first, mounts=mounts, repair=repair)


def test_of_what_a_check_says_the_beginning_and_the_end_are_told() -> None:
    said = "a" * 1500 + "b" * 1500
    assert recovery.shortened(said) == "a" * 1000 + "\n[...]\n" + "b" * 1000
    assert recovery.shortened("short") == "short"


def sample(step: str, metric: str, value: float, repetition: int = 2) -> Sample:
    return Sample(step=step, metric=metric, value=value, unit=METRICS[metric].unit, repetition=repetition)


def test_the_time_to_recover_has_the_repair_in_it_and_a_mount_that_failed() -> None:
    told = [
        sample("recovery", "elapsed", 0.25),
        sample("recovery", "mount_status", 32),
        sample("repair-after", "elapsed", 2),
        sample("recovery-repaired", "elapsed", 0.5),
        sample("recovery-repaired", "mount_status", 0),
        sample("recovery", "elapsed", 0.125, 4),
        sample("recovery", "mount_status", 0, 4),
    ]
    found = [(one.step, one.repetition, one.value) for one in recovery_times(told)]
    assert found == [("recovery-repaired", 2, 2.75), ("recovery", 4, 0.125)]


def test_a_result_tells_of_the_cut_and_of_what_was_promised() -> None:
    told = [
        sample("work", "cut_after", 7.096574, 1),
        sample("recovery", "mount_status", 32),
        sample("fsck", "fsck_status", 4),
        sample("check", "files_synced", 12, 1),
        sample("check", "files_intact", 9, 1),
        sample("check", "files_damaged", 2, 1),
        sample("check", "files_missing", 1, 1),
    ]
    assert list(shown.recovery_lines(told)) == [
        "work 1: power cut 7.097 s after its begin",
        "recovery: the mount failed, exit 32",
        "fsck: exit 4",
        "check: 12 files were synced: 9 intact, 2 damaged, 1 missing",
    ]
