"""Power cuts in real guests: the recovery is measured, what had been synced is looked for, the cell goes on."""

from pathlib import Path

import pytest

from tests.vm.cells import run, scenario, step, values

pytestmark = pytest.mark.vm


def test_with_barriers_every_synced_file_survives_a_power_cut() -> None:
    [cell] = run("recovery-ext4")
    assert cell["status"] == "ok", cell["reason"]
    found = values(cell)
    assert 7.09 <= found["work", "cut_after"] < 7.11
    assert ("work", "elapsed") not in found  # it never ended
    assert found["recovery", "mount_status"] == found["fsck", "fsck_status"] == 0
    assert found["recovery", "recovery_time"] == found["recovery", "elapsed"] > 0
    assert found["recovery", "bytes_read"] > 100_000  # the journal, from a cold drive
    assert found["check", "files_synced"] == found["check", "files_intact"] > 50
    # Without a promise some are not what they were: the power was cut.
    assert 0 < found["check", "files_unsynced"] > found["check", "unsynced_whole"]


@pytest.mark.full
def test_without_barriers_a_drives_cache_takes_promised_files_with_it_twice_in_the_same_way() -> None:
    [cell] = run("recovery-ext3", "--seeds", "2")
    found = values(cell)
    assert found["check", "files_damaged"] + found["check", "files_missing"] > 0
    [again] = run("recovery-ext3", "--seeds", "2")
    assert (again["inputs_key"], again["digest"], again["samples"]) == (
        cell["inputs_key"],
        cell["digest"],
        cell["samples"],
    )
    [today] = run("recovery-ext3", "--seeds", "2", "--defaults", "today")
    found = values(today)
    assert found["check", "files_synced"] == found["check", "files_intact"] > 0


@pytest.mark.full
def test_what_has_no_journal_is_repaired_first() -> None:
    [cell] = run("recovery-ext2")
    found = values(cell)
    assert found["repair", "fsck_status"] == 1 and found["fsck", "fsck_status"] == 0
    assert found["recovery", "recovery_time"] > found["repair", "elapsed"] > found["recovery", "elapsed"]


@pytest.mark.full
def test_a_cell_goes_on_after_each_cut_and_fails_where_there_was_none(tmp_path: Path) -> None:
    steps = (
        step("first", "echo a > a; sync; echo 1 > $SAFE; sleep 60", "cut_after = 2")
        + step("second", '[ "$(cat a)$(cat $SAFE)" = a1 ]; echo 2 > $SAFE; sleep 60', "cut_after = 0.5")
        + step("third", '[ "$(cat a)$(cat $SAFE)" = a2 ]')
        + step("short", "true", "cut_after = 5")
        + step("never", "true")
    )
    [cell] = run(str(scenario(tmp_path, steps)), code=1)
    assert (cell["status"], cell["reason"]) == (
        "failed",
        "step short, repetition 1, ended before its power was to be cut, 5 s after it began",
    )
    found = [(one["step"], one["repetition"]) for one in cell["samples"] if one["metric"] == "recovery_time"]
    assert found == [("recovery", 2), ("recovery", 3)]
    assert "never" not in {one["step"] for one in cell["samples"]}
