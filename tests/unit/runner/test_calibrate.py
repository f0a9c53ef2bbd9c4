"""calibrate: what it runs, and what it says of the same cell twice."""

import gzip
import hashlib
from pathlib import Path

import pytest

from agelab.cli import calibrate as verb
from agelab.results import run_directory, run_lookup
from agelab.results.key_and_digest import digest
from agelab.results.result import End, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from tests.build.cli import Cli
from tests.build.compared_runs import ONE, Values, make

ELAPSED = dict(ONE)


class Runs:
    """Stands in for the guests: what each run seed takes, in the first run and in the second."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.first, self.second = dict(ELAPSED), {1: ELAPSED[1]}
        self.clock = "virtual"
        self.inputs: list[dict[str, str]] = [{}, {}]
        self.ends: dict[int, Status | None] = {}
        self.asked: list[RunOptions] = []

    def execute(self, options: RunOptions) -> RunDirectory:
        number = len(self.asked)
        self.asked.append(options)
        values: Values = (self.first, self.second)[number]
        assert options.seeds == tuple(values)
        name = make(self.home, {"ext4": values}, clock=self.clock, inputs=self.inputs[number], ends=self.ends)
        return run_lookup.find(self.home / "runs", name)


@pytest.fixture
def runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs(home)
    monkeypatch.setattr(verb, "execute", found.execute)
    return found


def test_the_first_seed_is_run_twice_and_five_are_a_spread(runs: Runs, cli: Cli) -> None:
    shown = cli.out("calibrate", "aging-ext4", "--layout", "raid0", "--scale", "paper")
    first, second = runs.asked
    assert (first.seeds, second.seeds) == ((1, 2, 3, 4, 5), (1,))
    assert second.fresh and second.changed(seeds=first.seeds, fresh=False) == first
    assert (first.layout, first.scale) == ("raid0", "paper")
    assert "ext4, single: seeds 1,2,3,4,5, and seed 1 once more\n" in shown
    assert "  A/A: the same twice, to the last digit: 2 samples, all differences 0\n" in shown
    assert "holds the median over all run seeds with 93.75 %" in shown
    assert "copy 1.20 1.00 1.40 0.40 33.33" in [" ".join(line.split()) for line in shown.splitlines()]
    assert "seeks" not in shown


def test_all_shows_every_metric(runs: Runs, cli: Cli) -> None:
    lines = [" ".join(line.split()) for line in cli.out("calibrate", "aging-ext4", "--all").splitlines()]
    assert lines[lines.index("seeks") + 1] == "copy 7 7 7 0 0.00"


@pytest.mark.parametrize("seeds", ["1", "1,2,3,4"])
def test_fewer_than_five_seeds_are_refused_before_anything_runs(runs: Runs, cli: Cli, seeds: str) -> None:
    assert f"--seeds {seeds}: calibrating takes at least 5 run seeds" in cli.err(
        "calibrate", "aging-ext4", "--seeds", seeds
    )
    assert runs.asked == []


def test_other_seeds_are_the_users(runs: Runs, cli: Cli) -> None:
    runs.first = {seed: float(seed) for seed in (7, 3, 9, 11, 20, 21)}
    runs.second = {7: 7.0}
    shown = cli.out("calibrate", "aging-ext4", "--seeds", "7,3,9,11,20,21")
    assert "and seed 7 once more" in shown and "with 96.88 %" in shown


def test_another_sample_is_loud(runs: Runs, cli: Cli) -> None:
    runs.second = {1: 1.000001}
    shown = cli.out("calibrate", "aging-ext4", code=1)
    assert "  A/A FAILED: EQUAL INPUTS AND DIFFERENT SAMPLES: 1 of 2 samples differ; first:\n" in shown
    assert "  sample copy 1 elapsed: 1.0 | 1.000001\n  digest: sha256:" in shown
    assert "please report it" in shown


def test_another_map_alone_is_loud(runs: Runs, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal samples are not enough: what came back beside them (where files lie) is compared by its hash."""

    def execute(options: RunOptions) -> RunDirectory:
        run = runs.execute(options)
        content = b"" if len(runs.asked) == 1 else b"elsewhere"
        back = {"aged/extents": hashlib.sha256(content).hexdigest()}
        extents = run.cell_directory(0) / run_directory.map_file("aged/extents")
        extents.parent.mkdir(parents=True)
        extents.write_bytes(gzip.compress(content))
        said = digest(Status.OK, run.samples()[0], back)
        run.finish(0, End(status=Status.OK, digest=said, maps=back, host_seconds=1))
        run.verify()
        return run

    monkeypatch.setattr(verb, "execute", execute)
    shown = cli.out("calibrate", "aging-ext4", code=1)
    assert "A/A FAILED: EQUAL INPUTS AND DIFFERENT SAMPLES: 0 of 2 samples differ; first:\n" in shown
    assert "  digest: sha256:" in shown and "  maps.aged/extents: " in shown


def test_other_inputs_are_no_proof(runs: Runs, cli: Cli) -> None:
    runs.inputs[1] = {"kernel": "upgraded meanwhile"}
    shown = cli.out("calibrate", "aging-ext4", code=1)
    assert "A/A FAILED: the second execution had other inputs; 0 of 2 samples differ\n" in shown
    assert "  input kernel: nothing | upgraded meanwhile\n" in shown


def test_a_cell_that_is_not_ok_is_no_figure_and_an_exit_code(runs: Runs, cli: Cli) -> None:
    runs.ends = {5: Status.HUNG}
    shown = cli.out("calibrate", "aging-ext4", code=1)
    assert "A/A: the same twice" in shown
    assert "  not ok, in no figure below: seed 5 of " in shown and ": hung: it stopped\n" in shown
    assert "with 87.5 %" in shown and "33.33" not in shown and "4 seeds" in shown


def test_a_cell_that_did_not_finish_proves_nothing(runs: Runs, cli: Cli) -> None:
    runs.ends = {1: Status.INTERRUPTED}
    assert "  no A/A: not finished: " in cli.out("calibrate", "aging-ext4", code=1)


def test_programs_get_the_proof_and_every_spread(runs: Runs, cli: Cli) -> None:
    found = cli.json("calibrate", "aging-ext4", "--json")
    assert (found["schema"], found["clock"]) == (3, "virtual")
    assert [found["run"], found["again"]] == [path.name for path in sorted((runs.home / "runs").glob("*/"))]
    [variant] = found["variants"]
    cell, *_ = run_lookup.find(runs.home / "runs", found["run"]).as_json()["cells"]
    assert variant["same_twice"] == {
        "seed": 1, "proven": True, "inputs_key": cell["inputs_key"], "digests": [cell["digest"]] * 2,
        "compared": 2, "inputs": [], "samples": [], "endings": [],
    }  # fmt: skip
    assert [row["metric"] for row in variant["series"]] == ["elapsed", "seeks"]
    elapsed = variant["series"][0]
    assert elapsed["values"] == {"1": 1, "2": 1.1, "3": 1.2, "4": 1.3, "5": 1.4}
    assert (elapsed["summary"]["spread"], elapsed["spread_relative"]) == (0.4, pytest.approx(1 / 3))
    assert (elapsed["summary"]["median"], elapsed["summary"]["coverage"]) == (1.2, 0.9375)
    runs.asked.clear()
    runs.second = {1: 9.0}
    assert not cli.json("calibrate", "aging-ext4", "--json", code=1)["variants"][0]["same_twice"]["proven"]
