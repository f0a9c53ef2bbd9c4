"""Corpus seeds beside run seeds: which cells they make, what each cell reads, and where several mean nothing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from agelab.base.errors import InputError
from agelab.base.types import Whole
from agelab.capsule import replay
from agelab.capsule.pack import pack
from agelab.capsule.replay import unpack
from agelab.capsule.verify import open_capsule
from agelab.cli import agelab
from agelab.machine.disk import parse
from agelab.present.view import cell_names, run_tables
from agelab.present.view.junit import junit_lines
from agelab.present.view.terminal import print_blocks
from agelab.results import rows
from agelab.results.result import Cell
from agelab.runner.execute import companion_disk
from agelab.runner.prepare import input_data
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests, planned_cells, resolve
from agelab.scenario import selection
from agelab.scenario.seeds import Seeds
from agelab.store.artefacts import Store
from tests.build import run_builder
from tests.build.capsule_builder import made_run

SMALL = str(Path(__file__).parents[2] / "vm" / "small.toml")
BOTH = (Seeds(1, 1), Seeds(1, 2), Seeds(2, 1), Seeds(2, 2))


def crossed(variants: Sequence[str] = ("ext4",), corpora: Sequence[int] = (1, 2)) -> tuple[Cell, ...]:
    """The cells of two run seeds with each corpus."""
    return tuple(
        run_builder.cell(variant, seed, corpus_seed=corpus)
        for variant in variants
        for corpus in corpora
        for seed in (1, 2)
    )


def test_every_run_seed_goes_with_every_corpus() -> None:
    options = RunOptions(name="aging-ext4", seeds=(1, 2), corpora=(1, 2))
    assert tuple(one.name for one in planned_cells(options)) == tuple(("ext4", "single", two) for two in BOTH)


def test_a_paired_design_takes_the_first_with_the_first() -> None:
    options = RunOptions(name="aging-ext4", seeds=(5, 6), corpora=(1, 2), design="paired")
    assert [one.name[2] for one in planned_cells(options)] == [Seeds(1, 5), Seeds(2, 6)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"seeds": "1,2", "design": "paired"},
         "--design paired: 2 run seeds and 1 corpora do not go in pairs"),
        ({"corpora": "1,1"}, "--corpora .*: each corpus seed once, from 0 to"),
        ({"corpora": "1,x"}, "--corpora '1,x': corpus seeds are whole numbers separated by commas"),
        ({"corpora": "-1"}, "--corpora '-1': corpus seeds are whole numbers"),
        ({"seeds": "5-1"}, "--seeds '5-1': run seeds are whole numbers"),
        ({"seeds": "1-"}, "--seeds '1-': run seeds are whole numbers"),
        ({"seeds": "1-3,2"}, "--seeds .*: each run seed once"),
        ({"seeds": "0-2147483647"}, "--seeds '0-2147483647': run seeds are whole numbers"),
        ({"corpora": ""}, "--corpora '': corpus seeds are whole numbers"),
        ({"design": "nested"}, "no --design 'nested'"),
        ({"corpora": "1,2", "log": "x"}, "--corpora 1,2: the operations of --log are the same for every corpus seed"),
        ({"corpora": "1,2", "disk": "ab"},
         "--corpora 1,2: what lies on the stored disk is the same for every corpus seed"),
        ({"corpora": "1,2", "control": "x.ctl", "name": None},
         "--corpora 1,2: the data of a control file are the same for every corpus seed"),
    ],
)  # fmt: skip
def test_seeds_that_make_no_design_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        RunOptions(**{"name": "aging-ext4", **words})


def test_a_range_is_all_seeds_from_its_first_to_its_last() -> None:
    asked: dict[str, Any] = {"seeds": "1-3,7", "corpora": "2-2,5-6"}
    options = RunOptions(name="aging-ext4", **asked)
    assert (options.seeds, options.corpora) == ((1, 2, 3, 7), (2, 5, 6))
    assert RunOptions.from_words(options.to_plan()).seeds == options.seeds


def test_a_modelled_drive_that_there_is_not_is_told_by_reading_the_options() -> None:
    with pytest.raises(InputError, match="no drive 'seagate'"):
        resolve(RunOptions(name="aging-ext4", disks=(parse("model:seagate"),)))


@pytest.mark.parametrize(
    ("files", "said"),
    [({"ports": 1}, "no tree of one sort 'ports'; did you mean portage"), ({"portage": 0}, "0 files are not 1 to")],
)
def test_trees_that_a_corpus_has_not_are_told_by_reading_the_options(files: dict[str, int], said: str) -> None:
    chosen = selection.select("fedorchuk-2008")
    assert chosen.scenario.corpus
    told = {tree: Whole(value=count, origin="estimated") for tree, count in files.items()}
    corpus = chosen.scenario.corpus.model_copy(update={"files": told})
    wrong = replace(chosen, scenario=chosen.scenario.model_copy(update={"corpus": corpus}))
    with pytest.raises(InputError, match=said):
        resolve(RunOptions(name="fedorchuk-2008"), wrong)


def test_several_corpora_are_refused_where_nothing_is_drawn_by_them() -> None:
    with pytest.raises(InputError, match="scenario small draws nothing"):
        resolve(RunOptions(name=SMALL, corpus="/data", corpora=(1, 2)))
    resolve(RunOptions(name=SMALL, corpora=(1, 2)))
    resolve(RunOptions(name=SMALL, corpus="/data", corpora=(2,)))


def test_several_corpora_of_ones_own_data_are_taken_where_steps_draw_by_them() -> None:
    assert resolve(RunOptions(name="aging-ext4", corpus="/data", corpora=(1, 2)))


def test_a_bisect_takes_one_corpus() -> None:
    words = ["--scenario", "aging", "--variant", "ext4", "--good", "5.10", "--bad", "6.1"]
    done = CliRunner().invoke(agelab, ["bisect", *words, "--metric", "copy:elapsed", "--corpora", "1,2"])
    assert "a bisect measures one corpus; --corpora 1,2 names 2" in str(done.exception)


def test_a_plan_says_the_corpora_and_the_design_again() -> None:
    options = RunOptions(name="aging-ext4", seeds=(1, 2), corpora=(1, 2), design="paired")
    assert RunOptions.from_words(json.loads(json.dumps(options.to_plan()))) == options.changed(
        directory=options.directory
    )
    assert options.arguments() == ["aging-ext4", "--seeds", "1,2", "--corpora", "1,2", "--design", "paired"]


@dataclass(frozen=True)
class FakeVariant:
    history: str | None


@dataclass(frozen=True)
class FakeSpec:
    """What names a cell's data."""

    corpus_seed: int
    variant: FakeVariant = FakeVariant(None)


def test_data_of_the_first_corpus_keep_their_name_and_others_have_their_seed_behind_it() -> None:
    specs: Any = [FakeSpec(seed, FakeVariant(history)) for history in ("churn", "git") for seed in (1, 2)]
    found = input_data.named_data(specs, ["a", "b", "same", "same"])
    assert found == {"churn": "a", "churn@2": "b", "git": "same"}
    again = [input_data.carried_data(found, one.variant.history, one.corpus_seed) for one in specs]
    assert again == ["a", "b", "same", "same"]


def test_each_cell_reads_the_corpus_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(spec: Any, store: Any) -> Any:
        made.append(spec.seed)
        return f"corpus {spec.seed}"

    monkeypatch.setattr(input_data, "make", make)
    options = RunOptions(name="aging-ext4", seeds=(1, 2), corpora=(4, 3))
    specs = planned_cells(options)
    nowhere: Any = None
    found: Any = input_data.corpora(resolve(options), specs, None, nowhere, lambda _: None)
    assert found == ["corpus 4", "corpus 4", "corpus 3", "corpus 3"]
    assert made == [4, 3]


def test_each_cell_reads_the_history_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def obtain(history: Any, size: int, seed: int, store: Any) -> Any:
        return SimpleNamespace(name=f"{history.name} {seed}", parts=8)

    said: list[str] = []
    monkeypatch.setattr("agelab.data.history.artefact.obtain_history", obtain)
    options = RunOptions(name="aging-curve", filesystem="ext4", corpora=(1, 2))
    specs, nowhere = planned_cells(options), cast(Any, None)
    found: Any = input_data.corpora(resolve(options), specs, None, nowhere, said.append)
    assert [one.name for one in found] == [f"{spec.variant.history} {spec.corpus_seed}" for spec in specs]
    assert len(said) == len(set(said)) == len({one.name for one in found})


def test_the_disk_beside_is_made_once_for_each_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: Any = SimpleNamespace(specs=[FakeSpec(2), FakeSpec(2), FakeSpec(1)])
    monkeypatch.setattr(companion_disk, "_obtain", lambda prepared, number, *_: f"of cell {number}")
    nothing: Any = None
    found: Any = companion_disk.obtain(prepared, nothing, nothing, nothing)
    assert found == {1: "of cell 2", 2: "of cell 0"}


def test_a_cell_is_named_by_its_corpus_where_there_are_several() -> None:
    every = crossed()
    assert cell_names.name_seeds(every[3], every) == "seed 2 of corpus 2"
    assert cell_names.name_seeds(every[3], every[2:]) == "seed 2 of corpus 2"
    assert cell_names.name_seeds(every[1], every[:2]) == "seed 2"
    assert cell_names.list_cells(every, every) == "ext4"
    assert cell_names.list_cells(every[:2], every) == "ext4 (seeds 1,2 of corpus 1)"


def test_exports_and_lists_name_the_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_builder.begin(tmp_path, crossed())
    for number in range(4):
        run_builder.end(run, number, [run_builder.sample()])
    assert [(row["seed"], row["corpus_seed"]) for row in rows.rows(run)] == [(1, 1), (2, 1), (1, 2), (2, 2)]
    assert "ext4, single, 6.1, seed 1 of corpus 2" in "\n".join(junit_lines([run]))
    print_blocks(run_tables.run_blocks(run))
    assert "period defaults, seed 1 of corpus 2" in capsys.readouterr().out
    print_blocks(run_tables.runs_blocks([run]))
    head, line = capsys.readouterr().out.splitlines()[:2]
    assert "corpora" in head and "1-2" in line


def test_a_capsule_carries_the_data_of_each_corpus_and_replays_the_cells_that_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    words = {"seeds": "1", "corpora": "1,2", "design": "crossed"}
    made = pack(made_run(store, words=words, corpora=(1, 2)), store, tmp_path / "c.capsule", carry=True)
    found = open_capsule(made.path)
    assert [cell.cell.name for cell in found.cells] == [
        (variant, "single", Seeds(corpus, 1)) for variant in ("ext4", "xfs") for corpus in (1, 2)
    ]
    parts = unpack(found, tmp_path / "parts")
    assert parts
    images = [input_data.carried_data(parts.data, None, seed).image for seed in (1, 2)]
    assert [one.read_bytes().rstrip(b"\0") for one in images] == [b"data of the run", b"data of the run, another"]
    request = replay.replay_request(found, (1, 2), tmp_path, jobs=1, corpus=None, kernel=None)
    again = [one.spec.name for one in cell_requests(request, 1, (), None)]
    assert again == [found.cells[1].cell.name, found.cells[2].cell.name]


def test_the_seeds_that_decided_a_question_are_replayed_without_the_question(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    words = {"seeds": "1", "until_decided": True, "ask": "worst:copy:elapsed", "budget": 5.0}
    made = pack(made_run(store, words=words), store, tmp_path / "c.capsule")
    found = open_capsule(made.path)
    request = replay.replay_request(found, (0,), tmp_path, jobs=1, corpus=None, kernel=None)
    assert not request.options.given("until_decided", "ask", "budget")
    assert [spec.name for spec in request.planned()] == [found.cells[0].cell.name]
