"""The time that is left of a run, by what cells took; and which cell is expected to take longest."""

from pathlib import Path
from typing import Any

import pytest

from agelab.present.view.progress import format_time_left, time_left
from agelab.results.result import Cell, End, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import RUNS_LOOKED_AT, RUNS_READ, TimeRange, cell_time, expected_cost, recent_cells
from agelab.runner.request.options import RunOptions
from tests.build import run_builder
from tests.build.cell_builder import CORPUS, spec

Took = list[tuple[Cell, End]]


def cell(variant: str, seed: int = 1, drive: str = "model:x") -> Cell:
    return run_builder.cell(variant, seed, drives=(drive,))


def took(variant: str, *seconds: float, status: Status = Status.OK, drive: str = "model:x") -> Took:
    return [(cell(variant, drive=drive), End(status=status, host_seconds=one)) for one in seconds]


def test_a_cell_takes_what_its_kind_took_here_else_before_else_what_others_take() -> None:
    here = took("ext4", 30, 50) + took("ext3", 40)
    assert cell_time(cell("ext4"), here, took("ext4", 500)) == TimeRange(30, 50)
    assert cell_time(cell("xfs"), here, took("xfs", 90, 70)) == TimeRange(70, 90)
    assert cell_time(cell("ext4-journal"), here, ()) == TimeRange(40, 40)  # of its filesystem
    assert cell_time(cell("xfs"), here, ()) == TimeRange(40, 40)  # of all: (30 + 50 + 40) / 3
    assert cell_time(cell("xfs"), (), took("ext4", 10, 20)) == TimeRange(15, 15)
    assert cell_time(cell("xfs"), (), ()) is None


def test_cells_on_another_drive_are_others_and_one_that_was_cut_short_says_nothing() -> None:
    assert cell_time(cell("ext4"), took("ext4", 5, drive="model:none"), took("ext4", 60)) == TimeRange(60, 60)
    for status in (Status.FAILED, Status.HUNG, Status.PANICKED, Status.INTERRUPTED):
        assert cell_time(cell("ext4"), took("ext4", 5, status=status), ()) is None
    unsupported = took("reiser4", 0.5, status=Status.UNSUPPORTED) + took("xfs", 80)
    assert cell_time(cell("reiser4", 2), unsupported, ()) == TimeRange(0.5, 0.5)
    assert cell_time(cell("jfs"), unsupported, ()) == TimeRange(80, 80)


def test_cells_run_side_by_side_and_whoever_is_free_takes_the_next() -> None:
    known = took("ext4", 100) + took("zfs", 300)
    four = [cell("ext4", seed) for seed in range(4)]
    assert time_left(four, [], 1, known) == TimeRange(400, 400)
    assert time_left(four, [], 2, known) == TimeRange(200, 200)
    # zfs has 260 s to go; beside it four of 100 s follow one another on the other place.
    assert time_left(four[:2], [(cell("zfs"), 40), (four[2], 30)], 2, known) == TimeRange(270, 270)
    assert time_left(four, [(cell("zfs"), 0)], 2, known) == TimeRange(400, 400)


def test_it_is_a_range_where_cells_of_a_kind_took_more_and_less() -> None:
    assert time_left([cell("ext4")], [(cell("ext4"), 20)], 1, took("ext4", 60, 90)) == TimeRange(100, 160)


def test_nothing_is_said_while_of_some_cell_nothing_is_known() -> None:
    assert time_left([cell("ext4")], [(cell("xfs"), 5)], 1, ()) is None
    assert format_time_left(None) == "not known before a cell has ended"


def test_it_never_falls_below_zero() -> None:
    late = time_left([], [(cell("ext4"), 1000)], 1, took("ext4", 60))
    assert late == TimeRange(0, 0) and format_time_left(late) == "any moment now, by what cells took before"
    assert time_left([cell("ext4")], [(cell("ext4"), 1000)], 1, took("ext4", 60)) == TimeRange(60, 60)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (2, 2, "about 10 s"), (38, 42, "about 40 s"), (28, 52, "30-50 s"), (0, 89, "10-90 s"),
        (90, 91, "about 2 min"), (200, 400, "3-7 min"), (5399, 5399, "about 90 min"),
        (5400, 5400, "about 1.5 h"), (4000, 9000, "1-2.5 h"),
    ],
)  # fmt: skip
def test_its_words(low: float, high: float, said: str) -> None:
    assert format_time_left(TimeRange(low, high)) == said


def begun(
    home: Path, variant: str, seconds: float | None, scale: str = "quick", layout: str = "single", **said: Any
) -> RunDirectory:
    command = RunOptions(name="aging", directory="/", **said).to_plan()
    run = run_builder.begin(home, [cell(variant).model_copy(update={"layout": layout})], scale=scale, command=command)
    if seconds is not None:
        run_builder.end(run, 0, host_seconds=seconds)
    return run


def test_earlier_runs_are_the_newest_that_were_asked_the_same(tmp_path: Path) -> None:
    begun(tmp_path, "ext4", 1, kernel="debian:5.10", seeds="1,2", jobs=2)
    begun(tmp_path, "ext4", 2, scale="paper")
    begun(tmp_path, "ext4", 3, layout="raid0")
    begun(tmp_path, "ext4", 4, fail="1@copy")
    now = begun(tmp_path, "xfs", None, kernel="debian:6.1", trace=False)
    assert [end.host_seconds for _, end in recent_cells(now)] == [1]
    for seconds in range(10, 10 + RUNS_READ):
        begun(tmp_path, "xfs", seconds)
    assert sorted(end.host_seconds for _, end in recent_cells(now)) == [10, 11, 12]


def test_the_runs_of_a_sweep_and_others_tell_each_other_s_time(tmp_path: Path) -> None:
    command = {"directory": "/", "name": "aging", "options": {"kernel": "6.1", "prove_all": False}}
    swept = run_builder.begin(tmp_path, [cell("ext4")], scale="quick", command=command)
    run_builder.end(swept, 0, host_seconds=7)
    assert [end.host_seconds for _, end in recent_cells(begun(tmp_path, "ext4", None))] == [7]


def test_few_runs_are_read_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    begun(tmp_path, "ext4", 1)
    broken = begun(tmp_path, "ext4", 2)
    (broken.path / "plan.json").write_text("{")
    now = begun(tmp_path, "ext4", None)
    assert [end.host_seconds for _, end in recent_cells(now)] == [1]
    for _ in range(RUNS_LOOKED_AT):
        begun(tmp_path, "ext4", 3, scale="paper")
    assert list(recent_cells(now)) == []


def longest_first(variants: list[str], before: Took) -> list[str]:
    costs = {one: expected_cost(cell(one), spec(f"aging-{one}"), CORPUS, before) for one in variants}
    return sorted(variants, key=costs.__getitem__, reverse=True)


def test_the_longest_cell_is_told_by_what_its_kind_took_before() -> None:
    before = took("ext4", 30, 50) + took("xfs", 90) + took("zfs", 60) + took("jfs", 500, status=Status.FAILED)
    assert longest_first(["ext4", "zfs", "xfs"], before) == ["xfs", "zfs", "ext4"]
    assert longest_first(["ext4", "jfs", "xfs"], before) == ["xfs", "jfs", "ext4"]  # jfs: the mean of all


def test_through_fuse_a_filesystem_of_which_nothing_is_known_is_the_longest() -> None:
    assert longest_first(["ext4", "zfs", "xfs", "ntfs"], took("xfs", 1000)) == ["zfs", "ntfs", "ext4", "xfs"]
    assert longest_first(["ext4", "zfs", "xfs"], []) == ["zfs", "ext4", "xfs"]


def test_where_nothing_is_known_more_steps_take_longer() -> None:
    whole, short = spec("aging-ext4"), spec("space-ext4")
    assert expected_cost(cell("ext4"), whole, CORPUS, ()) > expected_cost(cell("ext4"), short, CORPUS, ())
