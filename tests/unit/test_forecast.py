"""``agelab plan``: a run's cells, its time and the differences that it finds, by earlier runs; nothing runs."""

import json
import re
from collections.abc import Sequence
from math import expm1, log
from pathlib import Path
from typing import Any

import pytest

from agelab.cli import main
from agelab.results.result import Status
from agelab.stats.power import smallest_difference
from tests.unit import aging_runs, run_builder

VALUES = {1: 10.0, 2: 10.5, 3: 11.0}
"""What a step took, by run seed; in corpus 2 twice as long."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def make(
    home: Path, variants: Sequence[str] = ("ext4",), corpora: Sequence[int] = (1,), **fields: Any
) -> str:
    """A run of scenario aging with three run seeds of each corpus."""
    cells = [
        run_builder.cell(
            variant,
            seed,
            corpus_seed=corpus,
            machine="pentium4-2800",
            drives=("model:seagate-st3120026as",),
        )
        for variant in variants
        for corpus in corpora
        for seed in VALUES
    ]
    command = {"directory": "/", "name": "aging", "words": {}, "more": {}}
    run = run_builder.begin(
        home, cells, **{"scenario": "aging", "command": command, "provenance": {"vcpus": 1}, **fields}
    )
    for number, cell in enumerate(cells):
        samples = [
            run_builder.sample("copy", VALUES[cell.seed] * cell.corpus_seed, repetition=at) for at in (1, 2)
        ]
        run_builder.end(run, number, samples, host_seconds=60)
    return run.name


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["plan", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_without_an_earlier_run_it_says_which_command_makes_one(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "aging-ext4", "--seeds", "1,2", "--corpora", "1,2", "--jobs", "2"]) == 0
    said = capsys.readouterr().out
    assert "aging, scale quick, virtual clock: 4 cells" in said
    assert "ext4; each with seeds 1,2 of corpora 1,2" in said
    assert "time: not known: no such cell has ended in this store" in said
    assert "  agelab run aging-ext4 --seeds 1,2,3 --jobs 2\n" in said
    found = planned(capsys, "aging-ext4")
    assert found["basis"] is None and found["sizes"][0]["seconds"] is None


def test_the_time_is_what_such_cells_took(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(home)
    found = planned(capsys, "aging-ext4", "--seeds", "1,2,3,4", "--corpora", "1,2", "--jobs", "2")
    rows = {(one["run_seeds"], one["corpora"]): (one["cells"], one["seconds"]) for one in found["sizes"]}
    assert rows[4, 2] == (8, [240, 240])
    assert rows[5, 4] == (20, [600, 600])
    main(["plan", "aging-ext4", "--seeds", "1,2,3,4", "--corpora", "1,2"])
    assert "time: about 8 min, by what such cells took in this store before" in capsys.readouterr().out


def test_a_difference_follows_from_the_spread_within_corpora_of_the_newest_run(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(home, corpora=(1, 2))
    name = make(home, corpora=(1, 2))
    make(home, scale="paper")
    found = planned(capsys, "aging-ext4", "--seeds", "1,2,3,4,5", "--metric", "copy:elapsed")
    assert found["basis"] == name
    logs = [log(value) for value in VALUES.values()]
    own = (sum((one - sum(logs) / 3) ** 2 for one in logs) / 2) ** 0.5
    assert found["spreads"][0]["deviations"] == {"ext4": pytest.approx(own)}
    deviations = smallest_difference(5)
    assert deviations is not None
    assert found["sizes"][0]["differences"] == {"copy elapsed": pytest.approx(expm1(deviations * own))}


def test_it_is_about_the_slowdown_and_the_time_unless_asked_otherwise(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aging_runs.make(home, {"ext4": 1.3, "xfs": 1.5}, seeds=(1, 2, 3))
    found = planned(capsys, "aging", "--filesystem", "ext4,xfs,jfs")
    assert [(one["step"], one["metric"]) for one in found["spreads"]] == [
        ("read", "slowdown"), ("all steps", "elapsed"),
    ]  # fmt: skip
    main(["plan", "aging", "--filesystem", "ext4,xfs,jfs"])
    said = capsys.readouterr().out
    assert "read:slowdown" in said and "all steps:elapsed" in said
    assert "spread of all steps, without mkfs and mount, elapsed, within a corpus" in " ".join(said.split())
    assert "not in that run, so taken to spread like the others: jfs" in said


def test_few_seeds_find_nothing_and_it_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(home)
    main(["plan", "aging-ext4", "--seeds", "1,2,3"])
    said = capsys.readouterr().out
    assert "none: with so few seeds even values that are wholly apart may be chance" in said
    assert (
        planned(capsys, "aging-ext4", "--seeds", "1,2,3")["sizes"][0]["differences"]["all steps elapsed"]
        is None
    )


def test_a_paired_design_has_one_value_a_side_in_each_corpus(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(home)
    words = ("--seeds", "1,2,3,4,5,6", "--corpora", "1,2,3,4,5,6", "--design", "paired")
    found = planned(capsys, "aging-ext4", *words)
    assert len(found["cells"]) == 6
    assert [(one["run_seeds"], one["corpora"], one["cells"]) for one in found["sizes"]] == [
        (6, 6, 6), (10, 10, 10), (20, 20, 20),
    ]  # fmt: skip
    assert found["sizes"][0]["deviations"] == smallest_difference(1, 6)


def test_cells_that_failed_and_runs_of_too_few_seeds_say_nothing_of_a_spread(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aging_runs.make(home, {"ext4": 1.3}, seeds=(1, 2))
    aging_runs.make(home, {"ext4": 1.3}, seeds=(1, 2, 3), statuses={"ext4": Status.FAILED})
    assert planned(capsys, "aging-ext4")["basis"] is None


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (
            "copy",
            "--metric copy: it is STEP:METRIC, the mean over its repetitions, or STEP:REPETITION:METRIC",
        ),
        ("copy:elapst", "no metric 'elapst'; did you mean elapsed?"),
        ("kopy:elapsed", "no step 'kopy' in aging; did you mean copy?"),
        ("copy:9:elapsed", "no metric of .*-aging 'copy:9:elapsed'; did you mean copy:elapsed?"),
    ],
)
def test_a_metric_that_there_is_not_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], metric: str, said: str
) -> None:
    make(home)
    assert main(["plan", "aging-ext4", "--metric", metric]) == 2
    assert re.search(said, capsys.readouterr().err)
