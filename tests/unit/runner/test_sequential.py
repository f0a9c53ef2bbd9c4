"""``--seeds auto``: run seeds are added to one run until a question is decided, with the error that is stated."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from agelab.analysis.cells import CellResult, SeedGroup
from agelab.analysis.decision import decide, parse_question, require_sides
from agelab.base.errors import InputError
from agelab.cli import agelab, main
from agelab.results.result import Cell, End, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.request.options import LOOKS, RunOptions
from agelab.runner.request.request import cell_requests, resolve
from agelab.runner.sequential import LEVEL, Outcome, run_until_decided
from agelab.store.artefacts import Store
from tests.build import run_builder

Seconds = Callable[[str, int], float]
"""What copying takes by variant and run seed."""


class GrowingRun:
    """Makes and extends a run as the runner does, without a guest."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.looks: list[int] = []
        self.seconds: Seconds = lambda variant, seed: 10.0

    def run(self, options: RunOptions, store: Store, progress: object, *, begun: RunDirectory | None) -> RunDirectory:
        self.looks.append(len(options.seeds))
        before = begun.plan().cells if begun else ()
        there = {cell.name for cell in before}
        wanted = run_builder.cells(("ext4", "xfs", "btrfs"), options.seeds)
        cells = (*before, *(cell for cell in wanted if cell.name not in there))
        run = begun or run_builder.begin(self.home, cells, command=options.to_plan())
        run.write_plan(run.plan().model_copy(update={"cells": cells, "command": options.to_plan()}))
        for number in run.unfinished():
            seconds = self.seconds(cells[number].variant, cells[number].seed)
            run_builder.end(run, number, [run_builder.sample("copy", seconds)])
        return run


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GrowingRun:
    made = GrowingRun(tmp_path)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.setattr(runner, "run", made.run)
    return made


def asked(ask: str | None = None, **words: Any) -> RunOptions:
    words = {"filesystem": "ext4,xfs,btrfs", "seeds": "auto", **words}
    return RunOptions(name="aging", ask=ask, **words)


def outcome(growing: GrowingRun, options: RunOptions) -> Outcome:
    return run_until_decided(options, Store(growing.home))[1]


def apart(variant: str, seed: int) -> float:
    return {"ext4": 10.0, "xfs": 20.0, "btrfs": 30.0}[variant] + seed / 100


def test_what_is_clear_is_decided_at_the_first_look(growing: GrowingRun) -> None:
    growing.seconds = apart
    found = outcome(growing, asked("worst:copy:elapsed"))
    assert growing.looks == [5]
    assert found.decision.decided and found.decision.said == (
        "worst is btrfs, distinguishable from each of the 2 others on this one set of files"
    )
    assert outcome(growing, asked("best:copy:elapsed")).decision.said.startswith("best is ext4")
    assert "xfs against ext4: 1.997 times, slower" in outcome(growing, asked("ext4:xfs:copy:elapsed")).decision.said


def test_seeds_are_added_to_one_run_until_it_is_decided(growing: GrowingRun) -> None:
    def late(variant: str, seed: int) -> float:  # apart but for the first four seeds
        return 10 + seed / 100 + (variant == "xfs" and seed > 4)

    growing.seconds = late
    directory, found = run_until_decided(asked("ext4:xfs:copy:elapsed"), Store(growing.home))
    assert found.decision.decided and growing.looks == [*LOOKS] and found.ended == ""
    seeds = [cell.seed for cell in directory.plan().cells if cell.variant == "xfs"]
    assert seeds == list(range(1, found.seeds + 1))


def test_it_ends_after_twenty_seeds(growing: GrowingRun) -> None:
    growing.seconds = lambda variant, seed: 10 + (seed * 7 + len(variant)) % 5
    found = outcome(growing, asked("ext4:xfs:copy:elapsed"))
    assert growing.looks == [*LOOKS]
    assert not found.decision.decided and found.ended == "20 run seeds are the most that are added"


def test_a_budget_adds_no_seeds_that_would_end_later(growing: GrowingRun, monkeypatch: pytest.MonkeyPatch) -> None:
    growing.seconds = lambda variant, seed: 10 + (seed * 7 + len(variant)) % 5
    clock = iter(range(0, 10_000, 600))
    monkeypatch.setattr("agelab.runner.sequential.time", SimpleNamespace(monotonic=lambda: next(clock)))
    found = outcome(growing, asked("ext4:xfs:copy:elapsed", budget=13))
    assert growing.looks == [5]
    assert found.ended == "7 run seeds would take about 4 more of 13 minutes, of which 10 are spent"


def test_those_that_are_the_same_are_decided_to_be(growing: GrowingRun) -> None:
    growing.seconds = lambda variant, seed: 100 + (seed * 7 + len(variant)) % 5 / 10
    found = outcome(growing, asked("worst:copy:elapsed"))
    assert found.decision.decided and found.decision.said.startswith("no single one is worst: ")


def test_resume_goes_on_with_the_look_that_was_interrupted(
    growing: GrowingRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing.seconds = lambda variant, seed: 10 + (seed * 7 + len(variant)) % 5
    options = asked("ext4:xfs:copy:elapsed", jobs=2)
    begun = growing.run(options.changed(seeds=tuple(range(1, 11))), Store(growing.home), None, begun=None)
    (begun.path / "cells" / "3" / "end.json").unlink()
    growing.looks.clear()
    done = CliRunner().invoke(agelab, ["resume", begun.name, "--jobs", "1"], catch_exceptions=False)
    assert growing.looks == [10, 14, 20]
    assert "not decided: xfs" in done.output and "each time at 1 %, 5 % in all; here after 20" in done.output
    growing.looks.clear()
    main(["resume", begun.name])
    assert growing.looks == []


def test_cells_that_are_added_come_after_those_of_the_run() -> None:
    options = RunOptions(name="aging", filesystem="ext4,xfs", seeds=(1, 2, 3))
    request = resolve(options)
    before = tuple(one.spec.name for one in cell_requests(resolve(options.changed(seeds=(1,))), 14, (), None))
    from dataclasses import replace

    grown = [one.spec.name for one in cell_requests(replace(request, begun=before), 14, (), None)]
    assert [(variant, seeds.run) for variant, _, seeds in grown] == [
        ("ext4", 1), ("xfs", 1), ("ext4", 2), ("ext4", 3), ("xfs", 2), ("xfs", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"ask": "worst:copy:elapsed", "seeds": "1,2"}, "--ask goes with --seeds auto"),
        ({"budget": 5.0, "seeds": "1,2"}, "--budget goes with --seeds auto"),
        ({"budget": 0.0}, "--budget 0.0: must be a number of minutes above 0"),
        ({"design": "paired", "corpora": "1,2,3,4,5"}, "--seeds auto does not go with --design paired"),
        ({"measure": False, "keep_disk": True}, "--seeds auto does not go with agelab age"),
        ({"ask": "copy:elapsed"}, "--ask copy:elapsed: it is worst:STEP:METRIC, best:STEP:METRIC or A:B:STEP:METRIC"),
        ({"ask": "worst:copy:elapst"}, "no metric 'elapst'; did you mean elapsed?"),
        ({"ask": "worst:copy:files"}, "of files neither much nor little is worse"),
    ],
)
def test_what_cannot_be_asked_is_refused(words: Mapping[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        resolve(asked(**{"ask": None, **words}))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"ask": "ext4:jfs:copy:elapsed"},
         "jfs is none of what is run: btrfs, single; ext4, single; xfs, single"),
        ({"ask": "ext4:single:copy:elapsed"}, "single names 3 of what is run"),
        ({"ask": "worst:kopy:elapsed"}, "no step 'kopy' in aging; did you mean copy?"),
        ({"filesystem": "ext4"},
         "--seeds auto: ext4, single alone is run: there is nothing to compare it with"),
    ],
)  # fmt: skip
def test_what_the_cells_cannot_answer_is_refused_before_any_runs(
    growing: GrowingRun, words: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        outcome(growing, asked(**{"ask": None, **words}))
    assert growing.looks == []


def test_a_metric_that_nothing_has_measured_is_told_with_those_there_are(growing: GrowingRun) -> None:
    with pytest.raises(InputError, match="no metric of this run 'copy:throughput'; there are: copy:elapsed"):
        outcome(growing, asked("worst:copy:throughput"))


def test_other_verbs_take_no_auto(growing: GrowingRun) -> None:
    for words in (["calibrate"], ["plan"]):
        done = CliRunner().invoke(agelab, [*words, "aging", "--seeds", "auto"])
        assert "--seeds auto: agelab" in str(done.exception)


def group(variant: str, values: Sequence[float]) -> SeedGroup:
    """Cells of one variant, one run seed for each value."""
    results = [
        CellResult(
            "r", seed, Path(), Cell.model_validate(dict(run_builder.cell(variant, seed))),
            End(status=Status.OK, host_seconds=1), (run_builder.sample("copy", value),), dict,
        )
        for seed, value in enumerate(values, 1)
    ]  # fmt: skip
    run = SimpleNamespace(plan=SimpleNamespace(metrics={}, unhonoured={}))
    return SeedGroup(variant, run, tuple(results))  # type: ignore[arg-type]


def found_share(ask: str, leads: Sequence[float], drawn: int) -> float:
    """The share of made-up runs in which some look finds a difference."""
    numbers = np.random.default_rng(1)
    question, found = parse_question(ask), 0
    for _ in range(drawn):
        values = 100 + np.array(leads)[:, None] + numbers.normal(size=(len(leads), LOOKS[-1]))
        for look in LOOKS:
            groups = [group(f"f{at}", [*map(float, row[:look])]) for at, row in enumerate(values)]
            decision = decide(question, groups, LEVEL)
            if decision.decided and "same" not in decision.said:
                found += 1
                break
    return found / drawn


def test_all_looks_together_find_what_is_not_there_in_five_of_a_hundred() -> None:
    assert found_share("f0:f1:copy:elapsed", (0, 0), 200) <= 0.05 + 0.03
    assert found_share("worst:copy:elapsed", (0, 0, -9), 200) <= 0.05 + 0.03


def test_a_lead_of_two_standard_deviations_is_found() -> None:
    assert found_share("f0:f1:copy:elapsed", (0, 2), 50) > 0.95


def test_a_question_is_said_as_it_is_asked() -> None:
    for text in ("worst:copy:elapsed", "ext4:xfs,raid0:aged/read:slowdown"):
        assert str(parse_question(text)) == text
    require_sides(parse_question("ext4:xfs:copy:elapsed"), run_builder.cells(("ext4", "xfs")))


def test_a_look_takes_more_than_a_run_that_is_looked_at_once() -> None:
    question = parse_question("f0:f1:copy:elapsed")
    apart = [group("f0", [1, 2, 3, 4]), group("f1", [11, 12, 13, 14])]
    assert decide(question, apart, Fraction(5, 100)).decided
    found = decide(question, apart, LEVEL)
    assert not found.decided and found.said.startswith(
        "f1 against f0: 5.083 times, not known: 4 seeds cannot exclude chance, 5 on each side can"
    )
