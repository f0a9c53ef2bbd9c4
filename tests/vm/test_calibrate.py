"""The floor of a small scenario, from real guests: the same cell twice, in the virtual clock and in the wall clock."""

import json
import time
from pathlib import Path

import pytest

from tests.vm.cells import agelab, scenario, step

pytestmark = pytest.mark.vm
SEEDS = [1, 2, 3, 4, 5]
COPY = step("copy", 'cp -r "$SOURCE/." copy')


def test_the_same_cell_twice_is_the_same_and_five_seeds_are_a_floor(tmp_path: Path) -> None:
    file = str(scenario(tmp_path, COPY, mib=8))
    began = time.monotonic()
    # The five go two at a time, the one of A/A by itself: that must not matter either.
    done = agelab("calibrate", file, "--jobs", "2", "--json")
    print(f"{time.monotonic() - began:.1f} host seconds")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    [variant] = found["variants"]
    assert [(cell["seed"], cell["status"]) for cell in variant["cells"]] == [(seed, "ok") for seed in SEEDS]
    twice = variant["same_twice"]
    assert twice["proven"] and twice["samples"] == twice["inputs"] == twice["endings"] == []
    [digest] = set(twice["digests"])
    assert digest.startswith("sha256:")
    # It was carried out twice: two runs, each with a guest's own console and time on the host.
    ends = [json.loads(agelab("show", found[run], "--json").stdout)["cells"][0] for run in ("run", "again")]
    assert found["run"] != found["again"] and [end["seed"] for end in ends] == [1, 1]
    assert twice["compared"] == len(ends[0]["samples"]) > 20
    [elapsed] = [row for row in variant["series"] if (row["step"], row["metric"]) == ("copy", "elapsed")]
    values = [elapsed["values"][str(seed)] for seed in SEEDS]
    assert len(set(values)) > 1, "run seeds that change nothing have no spread"
    assert elapsed["summary"]["spread"] == round(max(values) - min(values), 6) > 0
    assert elapsed["summary"]["median"] == sorted(values)[2]
    assert 0 < elapsed["spread_relative"] < 0.5
    compared = json.loads(agelab("compare", found["run"], found["again"], "--json").stdout)
    [pair] = compared["pairs"]
    assert [cell["samples"] for cell in pair["cells"]] == [[]]
    assert {row["verdict"] for row in pair["rows"]} <= {"equal", "not known", "not measured"}


@pytest.mark.full
def test_in_real_time_the_same_thing_twice_is_this_hosts_floor(tmp_path: Path) -> None:
    delete = step("delete", "rm -r copy")
    file, disk = str(scenario(tmp_path, COPY + delete)), tmp_path / "disk.img"
    with disk.open("wb") as image:
        image.truncate(400 << 20)
    began = time.monotonic()
    done = agelab("calibrate", file, "--disks", f"file:{disk}?cache=writeback&aio=threads", "--json")
    print(f"{time.monotonic() - began:.1f} host seconds")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    ran = [(cell["run"], cell["seed"], cell["status"]) for cell in found["cells"]]
    assert ran == [(run, seed, "ok") for run in (found["run"], found["again"]) for seed in SEEDS]
    recorded = found["recorded"]
    assert found["emulated"] is (recorded["host"]["accelerator"] == "tcg")
    elapsed = {one["step"]: one for one in recorded["floors"] if one["metric"] == "elapsed"}
    assert {"mkfs", "mount", "copy", "delete"} <= set(elapsed)
    for one in elapsed.values():
        # No two medians of A and A' are farther apart than the floor, and real time is never the same twice.
        assert 0 < one["floor_relative"] >= one["apart_relative"]
        assert len(one["widest"]["first"]) == len(one["widest"]["second"]) == len(SEEDS)
    hosts = json.loads(agelab("calibrate", "--show", "--json").stdout)["hosts"]
    [host] = [host for host in hosts if host["host"] == recorded["host"]]
    assert recorded["runs"] in [one["runs"] for one in host["calibrations"]]
    # What A left did not keep A' from the disk; it keeps everybody else, who does not name it.
    refused = agelab("calibrate", file, "--disks", f"file:{disk}")
    assert refused.returncode == 2 and "holds data: ext4" in refused.stderr
