"""The rankings of a small table, and how far our figures are from it."""

from fractions import Fraction
from pathlib import Path

import pytest

from agelab.analysis.cells import CellResult, RunResult
from agelab.analysis.published.report import Ranking, rankings
from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.study import Study
from agelab.analysis.published.values import OurValues
from agelab.results.result import End, Status
from agelab.results.run_directory import RunDirectory
from tests.build import run_builder
from tests.build.small_study import small_study

CLAIMS = """
[sums]
sum = ["copy", "list"]
[[claims]]
id = "none"
says = "nothing"
untestable = "it is none"
"""
TABLE = {"copy": {"a": 10, "b": 20, "c": 30}, "list": {"a": 5, "b": 4, "c": 4}, "sum": {"a": 15, "b": 24, "c": 34}}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(RunColumn, "shrink", 10)
    return small_study(tmp_path, {"single": TABLE}, CLAIMS)


def side(values: dict[str, dict[str, list[float]]], status: Status = Status.OK) -> RunColumn:
    """A run with these elapsed times: variant, step, repetitions."""
    cells = run_builder.cells(values)
    plan = run_builder.plan(cells, scenario="small")
    samples = {
        number: [
            run_builder.sample(step, value, repetition=turn)
            for step, repetitions in steps.items()
            for turn, value in enumerate(repetitions, start=1)
        ]
        for number, steps in enumerate(values.values())
    }
    directory, end = RunDirectory(Path("r")), End(status=status, host_seconds=1)
    results = (
        CellResult("r", number, Path(), cell, end, tuple(samples[number]), dict) for number, cell in enumerate(cells)
    )
    return RunColumn((RunResult(directory, plan, False, tuple(results)),))


def ranked(small: Study, *sides: RunColumn) -> Ranking:
    sources = [OurValues(small.figures, small.claims, one) for one in sides]
    [found] = rankings(small.figures, small.claims, sources)
    return found


def test_our_ranking_stands_beside_the_studys(small: Study) -> None:
    values: dict[str, dict[str, list[float]]] = {
        "a": {"copy": [2.0, 4.0], "list": [1.0]},
        "b": {"copy": [2.0], "list": [3.0]},
        "c": {"copy": [6.0], "list": [3.0]},
    }
    found = ranked(small, side(values))
    copied, listed, summed = found.rows
    [ours] = copied.ours
    assert [ours.values[name].median for name in "abc"] == [3, 2, 6]  # the mean over repetitions
    assert [ours.ratio(name) for name in "abc"] == [Fraction(3, 2), 1, 3]
    assert [ours.rank(name) for name in "abc"] == [2, 1, 3]
    assert ours.tau == pytest.approx(1 / 3) and ours.common == 3
    [theirs] = copied.theirs
    assert [theirs.ratio(name) for name in "abc"] == [1, 2, 3]
    # The study has b and c tied, we have a first and b and c tied: nothing of the order is left but its reverse.
    assert listed.ours[0].tau == pytest.approx(-1)
    # A step that the study prints as a sum is our sum, and is not counted twice in the overall row.
    assert [summed.ours[0].values[name].median for name in "abc"] == [4, 5, 9]
    [overall] = found.overall
    assert overall and overall.steps == ("copy", "list")
    assert [overall.theirs.values[name].median for name in "abc"] == [15, 24, 34]
    assert overall.ours.tau == pytest.approx(1)


def test_what_a_side_lacks_is_left_out_of_its_own_ranking(small: Study) -> None:
    found = ranked(
        small,
        side({"a": {"copy": [3.0]}, "c": {"copy": [2.0]}}),
        side({"a": {"copy": [3.0], "list": [1.0]}, "b": {"copy": [4.0], "list": [2.0]}}),
    )
    copied, listed, _ = found.rows
    assert [one.tau for one in copied.ours] == [pytest.approx(-1), pytest.approx(1)]
    assert [one.common for one in copied.ours] == [2, 2]
    assert copied.ours[0].ratio("b") is None and copied.ours[0].rank("b") is None
    assert "b, single of scenario small is in none of the runs" in copied.ours[0].values["b"].why_missing
    assert "has no elapsed of step list" in listed.ours[0].values["a"].why_missing
    assert found.overall[0] is None  # one step alone is no sum
    assert found.overall[1] and found.overall[1].steps == ("copy", "list")
    assert list(found.overall[1].ours.values) == ["a", "b"]


def test_a_cell_that_failed_has_no_value(small: Study) -> None:
    found = ranked(small, side({"a": {"copy": [3.0]}}, Status.HUNG))
    assert found.rows[0].ours[0].values["a"].why_missing == "a, single: hung"
    assert found.rows[0].ours[0].tau is None


def test_seconds_stand_beside_seconds_in_the_studys_size_and_sums_are_no_cells(small: Study) -> None:
    values: dict[str, dict[str, list[float]]] = {
        "a": {"copy": [1.0], "list": [0.4]},
        "b": {"copy": [4.0], "list": [0.3]},
        "c": {"copy": [7.0], "list": [2.0]},
    }
    [found] = ranked(small, side(values)).deviations
    assert (found.times, [step.step for step in found.steps]) == (10, ["copy", "list"])
    copied, listed = found.steps
    assert copied.ratios == {"a": 1, "b": 2, "c": Fraction(7, 3)}
    assert copied.bands == (1, 1, 1) and listed.bands == (2, 0, 1) and found.bands == (3, 1, 2)
    assert copied.common == pytest.approx(2) and copied.farthest == "a"
    assert copied.rest == {"a": pytest.approx(1 / 2), "b": pytest.approx(1), "c": pytest.approx(7 / 6)}


def test_a_scale_that_is_not_the_studys_has_seconds_and_no_distance(
    small: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunColumn, "shrink", None)
    [found] = ranked(small, side({"a": {"copy": [1.0]}, "b": {"copy": [2.0]}})).deviations
    assert found.times is None and found.bands.cells == 0
    assert found.steps[0].left_out == dict.fromkeys("ab", "at this scale the data are not the study's")
