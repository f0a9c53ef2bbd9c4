"""A modelled drive that stops answering: what may be asked, what the guest is told, and how it is replaced."""

from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.evaluate.cell_status import CellStatus
from agelab.results.result import Status
from agelab.runner.execute.phases import PassProgress
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.plan.phases import phases
from agelab.runner.plan.steps import DriveFailure
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells
from harness import drives as guest
from harness.dilation import Dilation
from harness.plan import Fork, Layers
from harness.step import Cut, Hung, Place, command
from tests.build.cell_builder import CORPUS
from tests.build.run_builder import begin, sample
from tests.build.run_builder import cell as run_cell


def planned(**options: Any) -> dict[str, Any]:
    """The guest's plan of the one boot of a cell whose drive fails."""
    [cell] = planned_cells(RunOptions(name="aging-ext4", **options))
    [phase] = phases(cell.scenario, CORPUS, failure=cell.failure)
    return guest_plan(cell, CORPUS, phase)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1@copy", DriveFailure(1, "copy", 1, 0)),
        ("0@copy:3", DriveFailure(0, "copy", 3, 0)),
        ("1@copy:3+1.5", DriveFailure(1, "copy", 3, 1.5)),
        ("1@copy+2", DriveFailure(1, "copy", 1, 2)),
    ],
)
def test_where_a_drive_fails_is_read(text: str, found: DriveFailure) -> None:
    assert DriveFailure.parse(text) == found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fail": "copy:3"}, "say DRIVE@STEP"),
        ({"fail": "1@copy:0"}, "repetitions from 1"),
        ({"fail": "1@copy"}, "layout single does not survive the loss of a drive"),
        ({"fail": "1@copy", "layout": "raid0"}, "layout raid0 does not survive the loss of a drive"),
        ({"fail": "2@copy", "layout": "raid1"}, "layout raid1 has 2 members, from 0"),
        ({"fail": "1@copy", "layout": "raid1", "disks": "model:none"}, "model:none is not modelled"),
        ({"fail": "1@coppy", "layout": "raid1"}, "did you mean copy?"),
        ({"fail": "1@read", "layout": "raid1"}, "a drive fails in a step that makes the disk: copy, delete"),
    ],
)
def test_what_cannot_fail_is_said_in_one_line(options: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as error:
        planned(**options)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_repetition_that_there_is_not_is_said() -> None:
    with pytest.raises(InputError, match="step copy has 12 repetitions"):
        planned(fail="1@copy:13", layout="raid1")


@pytest.mark.parametrize(("layout", "drive"), [("raid1", 1), ("raid5", 2)])
def test_the_guest_is_told_the_drive_the_moment_and_how_it_is_replaced(layout: str, drive: int) -> None:
    plan = planned(fail=f"{drive}@copy:3+1.5", layout=layout)
    told = plan["failing"]
    assert (told["drive"], told["member"]) == (f"drive{drive}", drive)
    assert plan["drives"][drive]["name"] == told["drive"]
    moments = [(one["name"], one["repetition"]) for one in plan["steps"] if "fail_after" in one]
    assert moments == [("copy", 3)]
    assert [one["fail_after"] for one in plan["steps"] if "fail_after" in one] == [1.5]
    assert told["fsck"][0] == "e2fsck" and len(plan["steps"]) > 20


def test_a_drive_that_was_to_fail_and_did_not_is_told(tmp_path: Path) -> None:
    [cell] = planned_cells(RunOptions(name="aging-ext4", layout="raid1", fail="1@copy:3+1.5"))
    ended = [PassProgress(begin(tmp_path / name, [run_cell()]), 0, cell) for name in ("late", "failed")]
    ended[1].record(sample("copy", 1.5, "failed_after", 3))
    for progress in ended:
        progress.judge_last_boot(CellStatus(Status.OK), "")
    why = "--fail 1@copy:3+1.5: the repetition ended before the drive was to fail"
    assert [one.status for one in ended] == [CellStatus(Status.FAILED, why), CellStatus(Status.OK)]


def test_without_a_failure_the_plan_has_no_word_of_it() -> None:
    [cell] = planned_cells(RunOptions(name="aging-ext4", layout="raid1"))
    plan = guest_plan(cell, CORPUS, phases(cell.scenario, CORPUS)[0])
    assert "failing" not in plan and not any("fail_after" in step for step in plan["steps"])


def test_the_replacement_is_one_command_that_names_the_new_member() -> None:
    layers = Layers("/dev/md{number}", (("make",),), (("open",),), (("close",),), {}, {}, False)
    attached = guest.Attached((), [["a"], ["b"]], lambda *_: None)
    disk = Fork("under-test", ((0, 0), (1, 0)), layers, (), ())
    attached.made[disk.name] = guest.places(disk, ("a", "b"), 0)
    commands = (("mdadm", "{device}", "--add", "{failed}"), ("sh", "-c", "x || :", "{device}"))
    assert attached.replacing(disk, 1, commands) == (
        "sh", "-ec", "mdadm /dev/md0 --add /dev/b\nsh -c 'x || :' /dev/md0",
    )  # fmt: skip


def test_a_command_goes_on_after_what_is_done_in_its_midst(tmp_path: Path) -> None:
    done: list[int] = []
    place = Place(tmp_path, tmp_path, dilation=Dilation())
    environment = {"PATH": "/usr/bin:/bin"}
    ended = command(["sleep", "0.3"], place, environment, 60, tmp_path, cut=Cut(0, done.append, goes_on=True))
    assert ended.status == 0 and len(done) == 1
    with pytest.raises(Hung):
        command(["sleep", "60"], place, environment, 0.1, tmp_path, cut=Cut(0, done.append, goes_on=True))
    assert len(done) == 2
