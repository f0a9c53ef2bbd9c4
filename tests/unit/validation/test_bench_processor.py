"""The studies' processor times beside ours: what is compared, at which scale, and what is left out."""

from pathlib import Path

import pytest

from agelab.analysis.cells import RunResult
from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.study import read_study
from agelab.base.errors import InputError
from agelab.cli.replicate import loaded
from agelab.results.run_directory import RunDirectory
from agelab.scenario import selection
from tests.build import study_runs
from validation import figures, processor
from validation.processor import Pair

STUDY = read_study("piszcz-2006")


def run(home: Path, values: dict[str, dict[str, float]], scenario: str = "piszcz-2006", **more: str) -> RunResult:
    """A run of variant to ``step metric`` to value."""
    return loaded(
        RunDirectory(home / "runs" / study_runs.make(home, scenario, values, scale=more.get("scale", "quick")))
    )


def published(table: str, variant: str, step: str) -> float:
    """The study's processor seconds, at its own size."""
    figures = STUDY.figures.by_place
    place = (table, variant, "single", step)
    return float(figures[*place, "elapsed"].value * figures[*place, "cpu_percent"].value / 100)


def used(step: str, user: float, system: float, stolen: float = 0) -> dict[str, float]:
    """The samples of a step."""
    return {f"{step} cpu_user": user, f"{step} cpu_system": system, f"{step} copy_stolen": stolen}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_seconds_of_the_study_shrink_with_the_scale_and_ours_are_without_the_drives_copying(
    tmp_path: Path, scale: str
) -> None:
    ours = run(tmp_path, {"xfs": used("copy-1g", 0.5, 1.0, 0.25)}, scale=scale)
    shrink = {"quick": 16, "paper": 1}[scale]
    assert shrink == selection.select("piszcz-2006").scenario.scales[scale].shrink  # type: ignore[index]
    found = processor.step_pairs(STUDY, [ours])
    assert [(one.table, one.left_out) for one in found] == [("II", ""), ("I", "")]
    assert found[0].ours == pytest.approx(1.25, abs=1e-5)
    assert found[0].theirs == pytest.approx(published("II", "xfs", "copy-1g") / shrink)
    assert found[0].error == pytest.approx(abs(1.25 / found[0].theirs - 1) * 100, abs=1e-3)


def test_what_ticks_cannot_tell_or_does_not_shrink_evenly_is_left_out(tmp_path: Path) -> None:
    both = {**used("touch", 0, 1), **used("find-files", 0, 1), **used("copy-10", 0, 1)}
    values = {"ext3": both, "jfs": both}
    quick, paper = (run(tmp_path / scale, values, scale=scale) for scale in ("quick", "paper"))

    def reasons(one: RunResult) -> dict[tuple[str, str], str]:
        return {(pair.variant, pair.step): pair.left_out for pair in processor.step_pairs(STUDY, [one])}

    assert reasons(quick) == {
        ("ext3", "touch"): "square", ("jfs", "touch"): "",
        ("ext3", "find-files"): "short", ("jfs", "find-files"): "short",
        ("ext3", "copy-10"): "circle", ("jfs", "copy-10"): "circle",
    }  # fmt: skip
    assert reasons(paper)["ext3", "touch"] == ""


def test_run_seeds_give_one_value_and_the_verdict_says_how_far_off_they_are() -> None:
    near, far = (Pair("II", "xfs", "copy-1g", 1, ours) for ours in (0.9, 3.0))
    out = Pair("II", "xfs", "copy-10", 1, 100, "short")
    assert "error 10 %; 1 of 1 pairs are within 25 %" in processor.verdict([near, out])
    assert "error 105 %; 1 of 2" in processor.verdict([near, far])
    assert processor.verdict([out]) == "Nothing can be compared."
    last = list(processor.rows([near, far, out]))[-1]
    assert last == ["all", "", "2", "1.64", "0.90 to 3.00", "105 %", "1 short"]


def test_tables_of_one_machine_are_set_against_each_other() -> None:
    found = [
        Pair(name, "xfs", step, theirs, 1)
        for step, both in {"copy-1g": (1, 2), "copy-10": (4, 2), "tar": (1, 1.1)}.items()
        for name, theirs in zip(("II", "I"), both, strict=True)
    ]
    assert "by 50 % in the median of 3 steps" in processor.between_tables(found)
    assert processor.between_tables(found[:1]) == ""


def test_a_share_of_the_processor_stands_beside_ours(tmp_path: Path) -> None:
    study = read_study("aging")
    tests = study.claims.sums["tests"]
    values = {
        f"{step} {metric}": 4.0 if metric == "elapsed" else 1.0
        for step in tests
        for metric in ("elapsed", "cpu_system")
    }
    found = processor.printed_shares(study, RunColumn((run(tmp_path, {"reiserfs": values}, "aging"),)))
    beside = {(one.variant, one.metric): (one.theirs, one.ours) for one in found}
    theirs, ours = beside["reiserfs", "cpu_system_percent"]
    assert theirs == 20 and ours == pytest.approx(25, abs=1e-3)
    assert list(beside) == [("reiserfs", "cpu_system_percent")]


def test_runs_of_two_scales_or_of_a_host_are_refused(tmp_path: Path) -> None:
    values = {"xfs": used("copy-1g", 0, 1)}
    runs = [run(tmp_path, values, scale=scale) for scale in ("quick", "paper")]
    with pytest.raises(InputError, match=r"several scales \(paper, quick\)"):
        processor.by_study(runs)
    wall = study_runs.make(tmp_path, "piszcz-2006", values, clock="wall")
    with pytest.raises(InputError, match="wall clock"):
        processor.by_study([loaded(RunDirectory(tmp_path / "runs" / wall))])


def test_every_step_has_one_kind_and_the_figure_marks_each_pair() -> None:
    known = {figure.step for figure in STUDY.figures.by_place.values() if figure.metric == processor.BUSY}
    kinds = [step for steps in processor.KINDS.values() for step in steps]
    assert len(kinds) == len(set(kinds))
    assert known - set(kinds) == {"mkfs"}
    assert set(processor.MANY_IN_ONE) <= set(kinds)
    drawn = figures.processor([Pair("II", "xfs", "copy-1g", 1, 2), Pair("II", "xfs", "touch", 1, 90)], processor.KINDS)
    assert all(kind in drawn for kind in processor.KINDS) and drawn.count('aria-roledescription="point"') == 2
