"""What readers make of the profiles of runs: a top, a difference, graphs of a report; and what they refuse."""

import json
from pathlib import Path

import pytest

from agelab.analysis.cells import load
from agelab.base.errors import InputError
from agelab.present.report.html import render
from agelab.present.report.page import build_page
from agelab.results.records import CellProfile
from agelab.runner.plan import passes
from agelab.runner.request.options import RunOptions
from tests.build import run_builder
from tests.build.cli import Cli
from tests.build.profiled_runs import AGED, profiled


def test_the_top_names_functions_by_their_own_samples(home: Path, cli: Cli) -> None:
    profiled(home)
    lines = cli.out("profile", "latest", "aged/read").splitlines()
    assert "100 samples, one every 500 instructions" in lines[0] and "it waited at 50 %" in lines[0]
    assert lines[1] == "tasks: cat 90.0 %, kswapd0 10.0 %"
    assert [line.split() for line in lines[3:6]] == [
        ["60.0", "60.0", "60", "copy"], ["30.0", "30.0", "30", "ext4_walk_[ext4]"], ["10.0", "10.0", "10", "shrink"]
    ]  # fmt: skip


def test_repetitions_and_seeds_are_added_up(home: Path, cli: Cli) -> None:
    profiled(home, seeds=(1, 2))
    found = json.loads(cli.out("profile", "latest", "copy", "--json"))
    assert (found["cells"], found["repetitions"], found["samples"]) == (2, 2, 14)
    assert found["functions"] == [{"function": "copy", "self": 14, "total": 14}]


def test_a_difference_is_shown_to_another_step_and_to_another_run(home: Path, cli: Cli) -> None:
    first = profiled(home, kernel="5.10")
    second = profiled(home, kernel="6.12", steps=(("copy", 1, "cp;copy 3\n"), ("copy", 2, "cp;other 9\n")))
    shown = cli.out("profile", first.name, "aged/read", "--against-step", "control/read")
    assert "+30 +41.7" in shown and "ext4_walk_[ext4]" in shown and "all functions: +28 samples, +38.9 %" in shown
    found = json.loads(cli.out("profile", second.name, "copy", "--against", first.name, "--json"))
    assert found["changes"] == [
        {"function": "other", "before": 0, "after": 9}, {"function": "copy", "before": 7, "after": 3}
    ]  # fmt: skip


def test_folded_stacks_and_a_flame_graph_are_for_other_programs(home: Path, cli: Cli, tmp_path: Path) -> None:
    profiled(home)
    drawn = tmp_path / "read.svg"
    assert cli.out("profile", "latest", "aged/read", "--folded", "--svg", str(drawn)) == AGED
    assert drawn.read_text().startswith("<svg xmlns=") and "ext4_walk_[ext4]" in drawn.read_text()


def test_the_cell_is_chosen_where_several_have_a_profile(home: Path, cli: Cli) -> None:
    profiled(home, "ext4", "xfs")
    assert "choose one with --cell" in cli.err("profile", "latest", "copy")
    assert ", xfs" in cli.out("profile", "latest", "copy", "--cell", "xfs")
    assert ", xfs" in cli.out("profile", "latest:xfs", "copy", "--against", "latest:ext4")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["latest", "aged/raed"], "did you mean aged/read"),
        (["latest", "aged/read", "--against-step", "copy"], "not of the same work"),
        (["latest:xfs", "copy"], "no variant"),
        (["nothing", "copy"], "no run 'nothing'"),
    ],
)
def test_what_there_is_not_is_told(home: Path, cli: Cli, words: list[str], why: str) -> None:
    profiled(home)
    assert why in cli.err("profile", *words)


def test_a_run_without_a_profile_says_how_to_take_one(home: Path, cli: Cli) -> None:
    run = run_builder.begin(home, run_builder.cells(("ext4",)))
    run_builder.end(run, 0, [run_builder.sample()])
    told = cli.err("profile", "latest", "copy")
    assert "has no profile" in told and "--profile" in told


def test_samples_that_stand_for_other_times_are_not_compared(home: Path, cli: Cli) -> None:
    first, _ = profiled(home, machine="a"), profiled(home, machine="b", nanoseconds=2000)
    assert "cannot be compared" in cli.err("profile", "latest", "copy", "--against", first.name)


@pytest.mark.parametrize("file", [CellProfile.file, "profile/copy-1.folded"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"cp;copy 9\n"])
def test_a_damaged_profile_is_refused_by_name(home: Path, cli: Cli, file: str, content: bytes) -> None:
    run = profiled(home)
    (run.path / "cells/0" / file).write_bytes(content)
    assert file in cli.err("profile", "latest", "copy")


def test_a_report_draws_each_step_and_what_the_aged_disk_changes(home: Path) -> None:
    run = profiled(home)
    page = render(build_page([load(run)]))
    assert "Where the time goes" in page and page.count('<details class="flames">') == 3
    assert "ext4_walk_[ext4]: 30 samples, 30.0 %; before 0" in page
    assert "<summary>ext4: copy</summary>" in page


def test_a_report_of_two_kernels_draws_what_differs(home: Path) -> None:
    runs = [profiled(home, kernel="5.10"), profiled(home, kernel="6.12")]
    page = render(build_page([load(run) for run in runs]))
    assert "<summary>copy: ext4 6.12 against ext4 5.10</summary>" in page


def test_names_in_stacks_are_text_in_a_report(home: Path) -> None:
    steps = (("copy", 1, "cp;<script>alert(1)</script> 9\n"),)
    page = render(build_page([load(profiled(home, steps=steps))]))
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_a_step_is_wrapped_as_a_whole_and_once() -> None:
    from agelab.runner.plan.phases import Phase
    from agelab.runner.plan.steps import StepPlan
    from agelab.scenario.step import Action

    action = Action(name="copy", run="cp \"$SOURCE\" 'a b'; x=$((1 + 1))", sync=True, origin="estimated")
    step = StepPlan.of(action, 3, None)  # type: ignore[arg-type]
    cut = StepPlan.of(action.model_copy(update={"name": "cut", "cut_after": (1.0, 1.0)}), 1, None)  # type: ignore[arg-type]
    keeper = StepPlan.of(action.model_copy(update={"name": "copy.output"}), 1, None)  # type: ignore[arg-type]
    found = passes.profiled(Phase("making", (step, cut, keeper), 0), 1000).steps
    assert found[0].run.startswith('exec step-profile "$PROFILE_DISK" 2147483648 1000 1 copy 3 sh -ec ')
    assert found[1:] == (cut, keeper)


def test_the_wall_clock_has_no_profile() -> None:
    with pytest.raises(InputError, match="--profile: only the virtual clock takes samples"):
        RunOptions(name="aging-ext4", profile=True, clock="wall")
