"""Layouts in real guests: each repeats to the last digit, and a drive of an array may fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.vm.cells import CONTROL, COPY, MEASURES, OWN, READ, measured, run, scenario, step

pytestmark = pytest.mark.vm
TEST = READ.replace("[[steps]]", "[[tests]]").replace('caches = "reboot"', "")
AGAIN = step("again", 'cp -r "$SOURCE/." again', "sync = true")
CYCLE = """
[[steps]]
repeat = 4

[[steps.cycle]]
name = "copy"
run = 'cp -r "$SOURCE/." copy'
sync = true
origin = "estimated"

[[steps.cycle]]
name = "delete"
run = 'rm -r copy'
sync = true
origin = "estimated"
"""
DEGRADED = step("read", "find . -type f -print0 | xargs -0 cat > /dev/null", 'caches = "remount"')


def full(*parameters: Any) -> list[Any]:
    """Layouts with packages, and thus images, of their own, and what runs twice: for the long tests."""
    return [pytest.param(*(one if isinstance(one, tuple) else [one]), marks=pytest.mark.full) for one in parameters]


def one(words: list[str]) -> dict[str, Any]:
    """The cell of a run."""
    [cell] = run(*words)
    assert cell["status"] == "ok", cell["reason"]
    return cell


def same_twice(words: list[str]) -> dict[str, Any]:
    """The cell of a run that gives the same key and digest twice."""
    [cell], [again] = run(*words, "--fresh"), run(*words, "--fresh")
    assert cell["status"] == "ok", cell["reason"]
    assert (cell["inputs_key"], cell["digest"]) == (again["inputs_key"], again["digest"])
    return cell


@pytest.mark.parametrize(
    ("layout", "cells"),
    [("raid1", one), *full(("raid1", same_twice), ("dm-crypt", same_twice), ("lvm-snapshot", same_twice))],
)
def test_a_layout_has_the_same_digest_twice_and_is_followed_to_its_drives(
    tmp_path: Path, layout: str, cells: Callable[[list[str]], dict[str, Any]]
) -> None:
    """That one over drives has the same twice, tests/vm/test_drives.py shows of RAID-0 with each change."""
    path = scenario(tmp_path, COPY + TEST + CONTROL, head=MEASURES, mib=8)
    cell = cells([str(path), "--layout", layout, "--disks", OWN])
    found = measured(cell, "aged/map")
    assert found["drive_extents"] >= found["extents"] > 0 and found["drive_layout_score"] > 0.5


@pytest.mark.parametrize("layout", full("dm-integrity", "dm-cache", "bcache"))
def test_a_layout_of_which_the_kernel_tells_too_little_is_not_followed(tmp_path: Path, layout: str) -> None:
    path = scenario(tmp_path, COPY + TEST + CONTROL, head=MEASURES, mib=8)
    # dm-integrity holds its journal in memory, and a guest has more of it beside a modelled drive.
    words = [str(path), "--layout", layout, *(["--disks", OWN] if layout == "dm-integrity" else [])]
    cell = same_twice(words)
    found = {s["metric"]: s for s in cell["samples"] if s["step"] == "aged/map"}
    assert found["extents"]["value"] > 0
    for metric in ("drive_extents", "drive_layout_score"):
        assert found[metric]["value"] is None
        assert found[metric]["not_measured"].startswith("the kernel does not tell where ")


@pytest.mark.full
def test_a_snapshot_costs_until_everything_was_written_once(tmp_path: Path) -> None:
    """What is written for the first time is read and written elsewhere before, and never again."""
    path = scenario(tmp_path, CYCLE, mib=16)
    [plain] = run(str(path), "--layout", "single", "--disks", OWN)
    [kept] = run(str(path), "--layout", "lvm-snapshot", "--disks", OWN)
    made, made_twice = measured(plain, "mkfs"), measured(kept, "mkfs")
    assert made["bytes_read"] < 1 << 20 < 0.9 * made["bytes_written"] < made_twice["bytes_read"]
    assert made_twice["bytes_written"] > 1.9 * made["bytes_written"]
    before, after = ([repetition(cell, number) for cell in (plain, kept)] for number in (1, 4))
    assert before[1]["elapsed"] > 3 * before[0]["elapsed"]
    assert before[1]["bytes_read"] > 0.9 * before[0]["bytes_written"]
    assert after[1]["elapsed"] < 2 * after[0]["elapsed"] and after[1]["bytes_read"] < 1 << 20


def repetition(cell: dict[str, Any], number: int) -> dict[str, Any]:
    """Metric to value of a repetition of step copy."""
    found = (s for s in cell["samples"] if (s["step"], s["repetition"]) == ("copy", number))
    return {s["metric"]: s["value"] for s in found}


def took(step: dict[str, Any]) -> float:
    """Seconds of a step and its sync: whoever writes more than may be dirty waits in the step itself."""
    return float(step["elapsed"] + step["sync_elapsed"])


@pytest.mark.parametrize(("layout", "drive"), [("raid1", 1), pytest.param("raid5", 2, marks=pytest.mark.full)])
def test_a_drive_that_fails_is_replaced_and_the_filesystem_is_whole(tmp_path: Path, layout: str, drive: int) -> None:
    path = scenario(tmp_path, COPY + AGAIN + DEGRADED, mib=8)
    words = [str(path), "--layout", layout, "--disks", OWN]
    [cell] = run(*words, "--fail", f"{drive}@copy+0.05")
    assert cell["status"] == "ok", cell["reason"]
    failed = measured(cell, "copy")
    assert failed["failed_after"] == pytest.approx(0.05, abs=0.01)
    assert took(failed) > 30 > took(measured(cell, "again"))  # until the drive is given up
    assert measured(cell, "read")["bytes_read"] > 7 << 20
    rebuilt = measured(cell, "rebuild")
    assert rebuilt["bytes_written"] > 8 << 20 and rebuilt["elapsed"] > 0
    assert measured(cell, "fsck")["fsck_status"] == 0


@pytest.mark.full
@pytest.mark.parametrize(("layout", "members"), [("raid1", 2), ("dm-crypt", 1)])
def test_a_layout_lies_on_files_in_the_wall_clock(tmp_path: Path, layout: str, members: int) -> None:
    files = [tmp_path / f"disk{number}.img" for number in range(members)]
    for file in files:
        with file.open("wb") as disk:
            disk.truncate(320 << 20)
    path = scenario(tmp_path, COPY + TEST, head=MEASURES, mib=8)
    disks = ",".join(f"file:{file}" for file in files)
    [cell] = run(str(path), "--layout", layout, "--disks", disks)
    assert cell["status"] == "ok", cell["reason"]
    assert cell["digest"] is None and len(cell["drives"]) == members
    assert measured(cell, "copy")["bytes_written"] > 0
    assert measured(cell, "aged/map")["drive_extents"] >= measured(cell, "aged/map")["extents"] > 0
