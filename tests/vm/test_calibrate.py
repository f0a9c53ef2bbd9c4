"""The floor of a small scenario, from real guests, and that the same cell twice is the same."""

import json
import time
from pathlib import Path

from tests.vm.cells import agelab, real_guests, scenario, step

pytestmark = real_guests
SEEDS = [1, 2, 3, 4, 5]
COPY = step("copy", 'cp -r "$SOURCE/." copy')


def test_the_same_cell_twice_is_the_same_and_five_seeds_are_a_floor(tmp_path: Path) -> None:
    file = str(scenario(tmp_path, COPY))
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
    [elapsed] = [row for row in variant["floors"] if (row["step"], row["metric"]) == ("copy", "elapsed")]
    values = [elapsed["values"][str(seed)] for seed in SEEDS]
    assert len(set(values)) > 1, "run seeds that change nothing make no floor"
    assert elapsed["floor"] == round(max(values) - min(values), 6) > 0
    assert elapsed["summary"]["median"] == sorted(values)[2]
    assert 0 < elapsed["floor_relative"] < 0.5
    compared = json.loads(agelab("compare", found["run"], found["again"], "--json").stdout)
    [pair] = compared["pairs"]
    assert [cell["samples"] for cell in pair["cells"]] == [[]]
    assert {row["verdict"] for row in pair["rows"]} <= {"no floor", "not measured"}
