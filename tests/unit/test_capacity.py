"""A run that the host has no room for is refused before its first cell."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from agelab.errors import HostError
from agelab.runner.prepare import capacity
from agelab.vm import host
from tests.unit.test_scenario import CORPUS, spec


def test_disks_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=2 * 10**9))
    said = capacity.require_capacity(
        [spec()], [CORPUS], tmp_path, at_once=2, copies=2
    )  # one cell: nothing runs beside it
    assert said == "a cell: up to 1.3 GB of disk and 1.1 GB of memory"
    with pytest.raises(
        HostError, match=r"has 2\.0 GB free, 2 cells at once would take up to 2\.9 GB"
    ) as error:
        capacity.require_capacity([spec(), spec()], [CORPUS] * 2, tmp_path, at_once=2, copies=3)
    assert error.value.exit_code == 3
    assert "AGELAB_HOME" in error.value.hint
    with pytest.raises(HostError, match=r"a cell would take up to 2\.9 GB"):  # what is kept stays
        capacity.require_capacity([spec()], [CORPUS], tmp_path, at_once=1, copies=1, kept=5)


def test_the_same_cells_on_several_kernels_run_side_by_side(tmp_path: Path) -> None:
    said = capacity.require_capacity([spec()], [CORPUS], tmp_path, at_once=2, copies=2, kernels=4)
    assert said.startswith("2 cells at once")


def test_memory_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "memory_available", lambda: 1_080_000_000)
    capacity.require_capacity([spec()], [CORPUS], tmp_path, at_once=1, copies=1)
    with pytest.raises(HostError, match=r"1\.1 GB of memory available, a cell would take 1\.1 GB"):
        capacity.require_capacity([spec(scale="paper")], [CORPUS], tmp_path, at_once=1, copies=1)
