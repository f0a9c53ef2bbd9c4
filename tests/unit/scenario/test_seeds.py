"""Corpus seed and run seed: how cells that differ in them are named and gathered."""

import re
from pathlib import Path

import pytest

from agelab.analysis.cells import RunSet, load, run_sets, seed_groups
from agelab.analysis.published.run_columns import run_columns
from agelab.results.conditions import between, text
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import Seeds, seeds_key, seeds_text
from tests.build import aging_runs, run_builder
from tests.build.cli import Cli


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([(1, 1)], "seed 1"),
        ([(1, 1), (1, 2)], "seeds 1,2"),
        ([(3, 1), (3, 2)], "seeds 1,2 of corpus 3"),
        ([(1, 1), (1, 2), (2, 1), (2, 2)], "seeds 1,2 of corpora 1,2"),
        ([(1, 1), (1, 2), (2, 1)], "seeds 1,2 of corpus 1, seed 1 of corpus 2"),
        ([(1, 1), (2, 2)], "seed 1 of corpus 1, seed 2 of corpus 2"),
        ([], "seeds "),
    ],
)
def test_seeds_are_named_corpus_by_corpus(found: list[tuple[int, int]], text: str) -> None:
    assert seeds_text(Seeds(*one) for one in found) == text


def test_a_cell_of_the_first_corpus_is_named_by_its_run_seed_alone() -> None:
    assert [seeds_key(Seeds(1, 4)), seeds_key(Seeds(2, 4))] == ["4", "4@2"]


def sets(home: Path, *names: str) -> list[RunSet]:
    return run_sets(load(RunDirectory(home / "runs" / name)) for name in names)


def test_cells_that_differ_in_their_seeds_alone_are_one_group(tmp_path: Path) -> None:
    name = aging_runs.make(tmp_path, {"ext4": 1.2, "xfs": 1.3}, seeds=(1, 2), corpora=(2, 1))
    run = load(RunDirectory(tmp_path / "runs" / name))
    crossed = [Seeds(1, 1), Seeds(1, 2), Seeds(2, 1), Seeds(2, 2)]
    for groups in (seed_groups(run), sets(tmp_path, name)[0].groups):
        assert [one.variant for one in groups] == ["ext4", "xfs"]
        assert all([*one.counted] == crossed for one in groups)
    slowdown = seed_groups(run)[0].series["read", 1, "slowdown"]
    assert [seeds for seeds, _ in slowdown.values] == crossed


def test_runs_of_other_corpus_seeds_stand_together_and_runs_of_other_data_do_not(tmp_path: Path) -> None:
    names = [
        aging_runs.make(tmp_path, {"ext4": 1.2}, corpora=corpora, data=data)
        for corpora, data in (((1,), "one"), ((2,), "two"), ((1, 2), "one; two"), ((1,), "mine"))
    ]
    assert [len(one.runs) for one in sets(tmp_path, *names)] == [3, 1]
    runs = [load(RunDirectory(tmp_path / "runs" / name)) for name in names]
    assert [len(column.runs) for column in run_columns(runs[:2])] == [2]
    assert [len(column.runs) for column in run_columns((runs[0], runs[3]))] == [1, 1]
    told = [text(between(runs[0].conditions, other.conditions, {"cells"})) for other in runs]
    assert told == ["", "corpus seeds 1 | 2, none of them in both", "", "data one | mine"]


def test_compare_leaves_out_the_corpus_that_one_side_alone_has_and_says_so(home: Path, cli: Cli) -> None:
    both = aging_runs.make(home, {"ext4": 1.2}, seeds=(1, 2, 3, 4), corpora=(1, 2), data="a; b")
    one = aging_runs.make(home, {"ext4": 1.9}, seeds=(5, 6, 7, 8), data="a")
    other = aging_runs.make(home, {"ext4": 1.2}, seeds=(1,), corpora=(3,), data="c")
    shown = " ".join(cli.out("compare", both, one).split())
    assert "ext4, single: seeds 1,2,3,4 of corpora 1,2 | seeds 5,6,7,8" in shown
    assert "in no ratio and no verdict: corpus 2, which A and B do not both have" in shown
    assert re.search(r" read 1\.[12]\d* 1\.[89]\d* 1\.5\d* 1\.5\d* 1\.6?\d* B worse", shown)
    [pair] = cli.json("compare", both, one, "--json")["pairs"]
    row = next(row for row in pair["rows"] if (row["step"], row["metric"]) == ("read", "slowdown"))
    assert (row["left"]["n"], row["right"]["n"], [at["corpus_seed"] for at in row["corpora"]]) == (8, 4, [1])
    assert row["left"]["spread_of"].keys() == {"corpus_seed", "run_seed", "both"}
    assert row["right"]["spread_of"] is None
    assert [(cell["seed"], cell["corpus_seed"]) for cell in pair["left"]["cells"]][-1] == (4, 2)
    assert "corpus seeds 1,2 | 3, none of them in both" in cli.err("compare", both, other)


def test_a_cell_of_an_earlier_plan_is_of_the_first_corpus() -> None:
    told = run_builder.cell("ext4", 3).model_dump(exclude={"corpus_seed"})
    assert run_builder.cell(**told).seeds == Seeds(1, 3)
