"""A run that the host has no room for is refused before its first cell; --jobs auto takes what there is room for."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agelab.errors import HostError
from agelab.runner.prepare import capacity
from agelab.runner.prepare.capacity import RunNeeds
from agelab.vm import host
from tests.unit.test_scenario import CORPUS, spec


def needed(*cells: str, copies: int = 2, **more: Any) -> RunNeeds:
    return capacity.needs(
        [spec(scale=scale) for scale in cells], [CORPUS] * len(cells), copies=copies, **more
    )


def with_host(
    monkeypatch: pytest.MonkeyPatch, *, disk: float = 1e12, memory: float = 1e12, processors: int = 64
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=int(disk)))
    monkeypatch.setattr(host, "memory_available", lambda: int(memory))
    monkeypatch.setattr(host, "processors", lambda: processors)


def test_disks_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_host(monkeypatch, disk=2e9)
    said = needed("quick").require(tmp_path, 2)  # one cell: nothing runs beside it
    assert said == "a cell: up to 1.3 GB of disk and 1.1 GB of memory"
    with pytest.raises(
        HostError, match=r"has 2\.0 GB free, 2 cells at once would take up to 2\.9 GB"
    ) as error:
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


def test_what_is_kept_is_no_room_for_more_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_host(monkeypatch, disk=4.6e9)
    assert needed(*["quick"] * 6).at_once(tmp_path, "virtual")[0] == 5
    assert needed(*["quick"] * 6, kept=6).at_once(tmp_path, "virtual")[0] == 2


def test_in_the_wall_clock_auto_lets_no_cell_disturb_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_host(monkeypatch)
    jobs, why = needed("quick", "quick").at_once(tmp_path, "wall")
    assert (jobs, why) == (1, "1 at a time: in the wall clock cells disturb each other")
