"""A run that the host has no room for is refused before its first cell; --jobs auto takes what there is room for."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agelab.base.errors import HostError
from agelab.machine.vm import host
from agelab.runner.prepare import capacity
from agelab.runner.prepare.capacity import RunNeeds
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from tests.build.cell_builder import CORPUS, spec


def needed(*cells: str, copies: int = 2, **more: Any) -> RunNeeds:
    return capacity.needs([spec(scale=scale) for scale in cells], [CORPUS] * len(cells), copies=copies, **more)


def with_host(
    monkeypatch: pytest.MonkeyPatch, *, disk: float = 1e12, memory: float = 1e12, processors: int = 64
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=int(disk)))
    monkeypatch.setattr(host, "memory_available", lambda: int(memory))
    monkeypatch.setattr(host, "processors", lambda: processors)
    monkeypatch.setattr(host, "memory_is_limited", lambda: False)
    monkeypatch.delenv(capacity.DISKS_VARIABLE, raising=False)


def test_disks_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_host(monkeypatch, disk=2e9)
    said = needed("quick").require(tmp_path, 2)  # one cell: nothing runs beside it
    assert said == "a cell: up to 1.3 GB of disk and 1.1 GB of memory"
    with pytest.raises(HostError, match=r"has 2\.0 GB free, 2 cells at once would take up to 2\.9") as error:
        needed("quick", "quick", copies=3).require(tmp_path, 2)
    assert error.value.exit_code == 3
    assert "AGELAB_HOME" in error.value.hint
    with pytest.raises(HostError, match=r"a cell would take up to 2\.9 GB"):  # what is kept stays
        needed("quick", copies=1, kept=5).require(tmp_path, 1)


def test_the_same_cells_on_several_kernels_run_side_by_side(tmp_path: Path) -> None:
    assert needed("quick", kernels=4).require(tmp_path, 2).startswith("2 cells at once")


def test_memory_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_host(monkeypatch, memory=1_080_000_000)
    needed("quick", copies=1).require(tmp_path, 1)
    with pytest.raises(HostError, match=r"1\.1 GB of memory available, a cell would take 1\.1 GB"):
        needed("paper", copies=1).require(tmp_path, 1)


@pytest.mark.parametrize(
    ("there", "jobs"),
    [
        ({}, 10),
        ({"processors": 3}, 3),
        ({"processors": 1}, 1),
        ({"memory": 2.5e9}, 3),  # 0.54 to leave on the host, 0.54 for each cell
        ({"disk": 2.2e9}, 2),  # 0.54 to leave, 0.79 for two copies of each cell's disk
        ({"memory": 1e8}, 1),  # refused by its name, as a cell that was asked for
    ],
)
def test_auto_is_as_many_cells_as_processors_memory_and_disk_allow(
    there: dict[str, Any], jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_host(monkeypatch, **there)
    wanted = needed(*["quick"] * 5, kernels=2)
    found, line = wanted.at_once(tmp_path, "virtual")
    assert found == jobs
    assert line.startswith(f"{jobs} at a time (cells: 10; processors: ")
    if "memory" in there and jobs == 1:
        with pytest.raises(HostError, match="a cell would take"):
            wanted.require(tmp_path, found)
    else:
        assert wanted.require(tmp_path, found)
        if jobs < 10 and "processors" not in there:
            with pytest.raises(HostError):
                wanted.require(tmp_path, found + 1)


def test_a_cell_may_have_more_guests_than_one_each_with_a_copy_of_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_host(monkeypatch, disk=2.2e9, memory=3e9)
    cell = needed("quick", beside=2)
    assert cell.require(tmp_path, 2) == "a cell with 2 guests: up to 1.7 GB of disk and 1.6 GB of memory"
    assert cell.require(tmp_path, 9) == cell.require(tmp_path, 3)
    assert cell.at_once(tmp_path, "virtual")[0] == 3
    with_host(monkeypatch, disk=2e9, memory=3e9)
    assert cell.at_once(tmp_path, "virtual")[0] == 2
    with pytest.raises(HostError, match=r"a cell with 3 guests would take up to 2\.1 GB"):
        cell.require(tmp_path, 3)
    two = needed("quick", "quick", beside=2)
    assert two.disk(4) == 2 * needed("quick").disks + 2 * cell.copy + capacity.HEADROOM
    assert not cell.fit_in_memory(3, "virtual")[0] and cell.fit_in_memory(1, "virtual")[0]


def test_a_request_says_how_many_guests_follow_the_making_side_by_side() -> None:
    for words, beside in (
        ({"name": "aging-ext4"}, 2),
        ({"name": "aging-ext4", "measure": False, "keep_disk": True}, 0),
        ({"name": "aging-ext4", "clock": "wall"}, 0),
    ):
        request = resolve(RunOptions(**words))
        assert capacity.needs_of(request, request.planned(), [CORPUS]).beside == beside


def test_what_is_kept_is_no_room_for_more_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_host(monkeypatch, disk=4.6e9)
    assert needed(*["quick"] * 6).at_once(tmp_path, "virtual")[0] == 5
    assert needed(*["quick"] * 6, kept=6).at_once(tmp_path, "virtual")[0] == 2


def test_in_the_wall_clock_auto_lets_no_cell_disturb_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_host(monkeypatch)
    jobs, why = needed("quick", "quick").at_once(tmp_path, "wall")
    assert (jobs, why) == (1, "1 at a time: in the wall clock cells disturb each other")


def test_disks_lie_in_memory_where_half_of_it_holds_them_and_their_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = needed("quick", "quick")  # 1.32 GB each
    with_host(monkeypatch, memory=2.7e9)
    assert wanted.fit_in_memory(1, "virtual") == (True, "disks in memory: up to 1.3 GB with the guests, of 2.7 GB")
    assert wanted.fit_in_memory(2, "virtual") == (
        False,
        "disks in files: in memory they would take up to 2.6 GB with the guests, of 2.7 GB",
    )
    with_host(monkeypatch, memory=5.4e9)
    assert wanted.fit_in_memory(2, "virtual")[0] and wanted.fit_in_memory(99, "virtual")[0]


def test_disks_stay_in_files_where_memory_would_be_measured_is_limited_or_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_host(monkeypatch)
    wanted = needed("quick")
    assert wanted.fit_in_memory(1, "virtual")[0]
    assert wanted.fit_in_memory(1, "wall")[1].startswith("disks in files: in the wall clock")
    monkeypatch.setattr(host, "memory_is_limited", lambda: True)
    assert wanted.fit_in_memory(1, "virtual")[1].startswith("disks in files: a control group")
    monkeypatch.setenv(capacity.DISKS_VARIABLE, "files")
    assert wanted.fit_in_memory(1, "virtual") == (False, "disks in files: AGELAB_DISKS asks for it")


@pytest.mark.parametrize(
    ("group", "file", "limit", "limited"),
    [
        ("0::/a/b", "a/memory.max", "1000000", True),
        ("0::/a/b", "a/b/memory.max", "1000000", True),
        ("0::/a/b", "a/b/memory.max", "max", False),
        ("0::/a/b", "a/b/memory.max", "9" * 15, False),
        ("0::/", "other/memory.max", "1000000", False),
        ("5:memory:/a\n0::/", "memory/a/memory.limit_in_bytes", "1000000", True),
        ("5:memory:/a\n0::/", "memory/a/memory.limit_in_bytes", "9223372036854771712", False),
    ],
)
def test_a_control_group_that_limits_memory_is_seen(
    group: str, file: str, limit: str, limited: bool, tmp_path: Path
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text(group + "\n")
    (tmp_path / "meminfo").write_text("MemTotal:       24000000 kB\nMemFree: 1 kB\n")
    (tmp_path / "groups" / file).parent.mkdir(parents=True)
    (tmp_path / "groups" / file).write_text(limit + "\n")
    assert host.memory_is_limited(tmp_path, tmp_path / "groups") is limited
