"""The promise: equal inputs, equal digests, on a loaded host and from another directory."""

import json
from pathlib import Path
from typing import Any

import pytest

from agelab.results.records import CellTiming
from agelab.results.run_directory import RunDirectory
from tests.vm.cells import SMALL, agelab, newest, run, scenario, step
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def quiet() -> list[dict[str, Any]]:
    """Two cells of small.toml on a host of which the tests take no more."""
    return run(str(SMALL), "--filesystem", "ext4,btrfs")


def test_the_same_inputs_give_the_same_digests(quiet: list[dict[str, Any]], tmp_path: Path) -> None:
    _same_on_a_loaded_host(quiet, tmp_path)


@pytest.mark.full
def test_the_same_inputs_give_the_same_digests_on_other_filesystems(tmp_path: Path) -> None:
    _same_on_a_loaded_host(run(str(SMALL), "--filesystem", "reiserfs,xfs"), tmp_path)


def _same_on_a_loaded_host(quiet: list[dict[str, Any]], directory: Path) -> None:
    variants = ",".join(cell["variant"] for cell in quiet)
    with both_cores_busy():
        loaded = run(str(SMALL), "--filesystem", variants, "--timing", cwd=directory)
    assert [cell["status"] for cell in quiet] == ["ok", "ok"]
    for one, other in zip(quiet, loaded, strict=True):
        assert one["samples"] == other["samples"], one["variant"]
        assert (one["inputs_key"], one["digest"]) == (other["inputs_key"], other["digest"])
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


def test_disks_in_memory_and_in_files_give_the_same_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = step("copy", 'cp -r "$SOURCE" a && sync') + step("read", "cat a/*/* | wc -c", 'caches = "reboot"')
    path = scenario(tmp_path, steps, "ext4", "xfs", mib=8)
    results = []
    for where, named in (("files", "files of the host"), ("memory", "in the host's memory")):
        monkeypatch.setenv("AGELAB_DISKS", where)
        done = agelab("run", str(path), "--keep-disk")
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"disks in {where}: " in done.stderr
        run_directory = newest(path)
        assert json.loads((run_directory / "plan.json").read_text())["provenance"]["disks"] == named
        assert not list(run_directory.glob("cells/*/*disk-*")) + list(run_directory.glob("cells/*/fork-*"))
        cells = json.loads(agelab("show", run_directory.name, "--json").stdout)["cells"]
        results.append([(cell["inputs_key"], cell["digest"], cell["disk"]) for cell in cells])
        domain = next(run_directory.glob("cells/0/domain-0.xml")).read_text()
        assert str(run_directory / "cells/0/disk-3") in domain
    assert results[0] == results[1] and all(digest and disk for _, digest, disk in results[0])


def test_another_run_seed_gives_another_digest(quiet: list[dict[str, Any]]) -> None:
    [one] = [cell for cell in quiet if cell["variant"] == "ext4"]
    [other] = run(str(SMALL), "--filesystem", "ext4", "--seeds", "2")
    assert (one["seed"], other["seed"]) == (1, 2)
    assert one["inputs_key"] != other["inputs_key"]
    assert one["digest"] != other["digest"]


def test_another_corpus_gives_another_digest_and_leaves_the_first_ones(quiet: list[dict[str, Any]]) -> None:
    [one] = [cell for cell in quiet if cell["variant"] == "ext4"]
    first, second = run(str(SMALL), "--filesystem", "ext4", "--corpora", "1,2")
    assert [(cell["seed"], cell["corpus_seed"]) for cell in (first, second)] == [(1, 1), (1, 2)]
    assert (first["inputs_key"], first["digest"]) == (one["inputs_key"], one["digest"])
    assert second["inputs_key"] != one["inputs_key"] and second["digest"] != one["digest"]
