"""``agelab plan``: a run's cells, its time and the differences that it finds, by earlier runs; nothing runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agelab.present.report.command import settling_command
from tests.build import run_builder
from tests.build.cli import Cli
from tests.build.scenario_builder import PROJECT

VALUES = {1: 10.0, 2: 10.5, 3: 11.0}
"""What a step took, by run seed; in corpus 2 twice as long."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def make(home: Path, variants: Sequence[str] = ("ext4",), corpora: Sequence[int] = (1,), **fields: Any) -> str:
    """A run of scenario aging with three run seeds of each corpus."""
    cells = [
        run_builder.cell(
            variant, seed, corpus_seed=corpus, machine="pentium4-2800", drives=("model:seagate-st3120026as",),
        )
        for variant in variants
        for corpus in corpora
        for seed in VALUES
    ]  # fmt: skip
    command = {"directory": "/", "name": "aging", "options": {}}
    run = run_builder.begin(
        home, cells, **{"scenario": "aging", "command": command, "provenance": {"vcpus": 1}, **fields}
    )
    for number, cell in enumerate(cells):
        samples = [run_builder.sample("copy", VALUES[cell.seed] * cell.corpus_seed, repetition=at) for at in (1, 2)]
        run_builder.end(run, number, samples, host_seconds=60)
    return run.name


def test_without_an_earlier_run_the_time_is_not_known(home: Path, cli: Cli) -> None:
    said = cli.out("plan", "aging-ext4", "--seeds", "1,2", "--corpora", "1,2", "--jobs", "2")
    assert "aging, scale quick, virtual clock: 4 cells" in said
    assert "ext4; each with seeds 1,2 of corpora 1,2" in said
    assert "time: not known: no such cell has ended in this store" in said
    assert cli.json("plan", "aging-ext4", "--json")["seconds"] is None


def test_the_time_is_what_such_cells_took(home: Path, cli: Cli) -> None:
    make(home)
    found = cli.json("plan", "aging-ext4", "--seeds", "1,2,3,4", "--corpora", "1,2", "--jobs", "2", "--json")
    assert (len(found["cells"]), found["seconds"]) == (8, [240, 240])
    shown = cli.out("plan", "aging-ext4", "--seeds", "1,2,3,4", "--corpora", "1,2")
    assert "time: about 8 min, by what such cells took in this store before" in shown


def test_a_paired_design_has_a_cell_for_each_pair(home: Path, cli: Cli) -> None:
    words = ("--seeds", "1,2,3,4,5,6", "--corpora", "1,2,3,4,5,6", "--design", "paired")
    assert len(cli.json("plan", "aging-ext4", *words, "--json")["cells"]) == 6


def test_a_real_disk_is_said_to_be_overwritten(home: Path, tmp_path: Path, cli: Cli) -> None:
    disk = tmp_path / "disk.img"
    disk.touch()
    assert f"data: the run overwrites file:{disk}" in " ".join(
        cli.out("plan", "aging-ext4", "--disks", f"file:{disk}").split()
    )
    assert "overwrites" not in cli.out("plan", "aging-ext4")


@pytest.mark.parametrize(("name", "offered"), [("aging", True), ("docs/howto/ten-lines.toml", False)])
def test_more_corpora_are_offered_where_a_run_takes_them(home: Path, name: str, offered: bool) -> None:
    (home / "files").mkdir()
    options = {"corpus": str(home / "files"), "seeds": "1,2,3,4,5"}
    command = {"directory": str(PROJECT), "name": name, "options": options}
    run = run_builder.begin(home, [run_builder.cell("ext4", 1)], command=command)
    assert ("--corpora 1,2" in settling_command(run.plan(), corpora=True)) == offered
    assert "--corpora" not in settling_command(run.plan())
