"""The promise: equal inputs, equal digests, on a loaded host, from another directory and with disks held elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from agelab.results.records import CellTiming
from agelab.results.run_directory import RunDirectory
from tests.vm.cells import SMALL, agelab, newest, run, shown
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm
HELD = {"files": "files of the host", "memory": "in the host's memory"}


@pytest.fixture(scope="module")
def quiet() -> list[dict[str, Any]]:
    """Two cells of small.toml, their disks in memory, on a host of which the tests take no more."""
    return cells("memory", "ext4,btrfs")


def cells(where: str, filesystems: str, *words: str, cwd: Path | None = None) -> list[dict[str, Any]]:
    """Run small.toml with its disks held there; none of them is left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGELAB_DISKS", where)
        done = agelab("run", str(SMALL), "--filesystem", filesystems, "--keep-disk", *words, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"disks in {where}: " in done.stderr
    made = newest(SMALL)
    assert json.loads((made / "plan.json").read_text())["provenance"]["disks"] == HELD[where]
    assert not list(made.glob("cells/*/*disk-*")) + list(made.glob("cells/*/fork-*"))
    assert str(made / "cells/0/disk-") in next(made.glob("cells/0/domain-0.xml")).read_text()
    return shown(made.name)


def test_the_same_inputs_give_the_same_digests(quiet: list[dict[str, Any]], tmp_path: Path) -> None:
    _same_on_a_loaded_host(quiet, tmp_path)


@pytest.mark.full
def test_the_same_inputs_give_the_same_digests_on_other_filesystems(tmp_path: Path) -> None:
    _same_on_a_loaded_host(cells("memory", "reiserfs,xfs"), tmp_path)


def _same_on_a_loaded_host(quiet: list[dict[str, Any]], directory: Path) -> None:
    with both_cores_busy():
        loaded = cells("files", ",".join(cell["variant"] for cell in quiet), "--timing", cwd=directory)
    assert [cell["status"] for cell in quiet] == ["ok", "ok"]
    for one, other in zip(quiet, loaded, strict=True):
        assert one["samples"] == other["samples"], one["variant"]
        for what in ("inputs_key", "digest", "disk"):
            assert one[what] and one[what] == other[what]
    # Two filesystems: a digest over nothing would be the same for both.
    assert len({cell["digest"] for cell in quiet}) == 2
    assert all(cell["inputs_key"].startswith("sha256:") for cell in quiet)
    _every_step_is_measured(quiet[0])
    timings = [RunDirectory(newest(SMALL)).beside(number, CellTiming) for number in range(2)]
    boots = [boot for timing in timings if timing for boot in timing.boots]
    assert len(boots) == 4 and all(boot.steps and boot.ready and boot.processor for boot in boots)


def _every_step_is_measured(cell: dict[str, list[dict[str, object]]]) -> None:
    elapsed = {(s["step"], s["repetition"]): s["value"] for s in cell["samples"] if s["metric"] == "elapsed"}
    expected = [("mkfs", 1), ("mount", 1), ("mount", 2), ("read", 1)]
    expected += [(name, turn) for name in ("copy", "delete") for turn in range(1, 5)]
    assert sorted(elapsed) == sorted(expected)
    read = {s["metric"]: s["value"] for s in cell["samples"] if s["step"] == "read"}
    # The reboot emptied the caches: all that is left of four half copies of 24 MiB comes from the disk.
    assert isinstance(read["bytes_read"], int) and read["bytes_read"] > 40 << 20
    [ratio] = [s for s in cell["samples"] if s["metric"] == "throughput_ratio"]
    assert isinstance(ratio["value"], float) and 0.2 < ratio["value"] < 2


def test_another_run_seed_and_another_corpus_give_other_digests(quiet: list[dict[str, Any]]) -> None:
    [one] = [cell for cell in quiet if cell["variant"] == "ext4"]
    others = run(str(SMALL), "--filesystem", "ext4", "--seeds", "2", "--corpora", "1,2")
    found = [one, *others]
    assert [(cell["seed"], cell["corpus_seed"]) for cell in found] == [(1, 1), (2, 1), (2, 2)]
    assert len({cell["inputs_key"] for cell in found}) == len({cell["digest"] for cell in found}) == 3


@pytest.mark.full
def test_another_corpus_leaves_the_first_ones_digest(quiet: list[dict[str, Any]]) -> None:
    [one] = [cell for cell in quiet if cell["variant"] == "ext4"]
    first, second = run(str(SMALL), "--filesystem", "ext4", "--corpora", "1,2")
    assert (first["inputs_key"], first["digest"]) == (one["inputs_key"], one["digest"])
    assert second["digest"] != one["digest"]
