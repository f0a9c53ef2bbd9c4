"""Cells that did one test each become a table of tests, with known failures apart, and JUnit cases."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.analysis.test_results import CaseOf, CaseResult, results, tallies
from agelab.present.view.junit import test_lines as junit_of_tests
from agelab.present.view.markdown import lines
from agelab.present.view.tests import suite_blocks
from agelab.results.result import Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.suite import Expected
from agelab.scenario.workload import TEST_RESULT
from tests.build import run_builder

CASES = {"ext4-race": CaseOf("race.sh", "ext4")}


def verdict_sample(value: int, part: str = "") -> Sample:
    step = f"race.{part}" if part else "race"
    return Sample(step=step, metric=TEST_RESULT, value=value, unit="1")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Seed 1 passes, 2 fails in a part, 3 panics, 4 was skipped, 5 had no filesystem, 6 was interrupted."""
    begun = run_builder.begin(tmp_path, run_builder.cells(["ext4-race"], range(1, 7)))
    run_builder.end(begun, 0, [verdict_sample(0), verdict_sample(0, "one")])
    failed = "step race, repetition 1, exited 1: 1 of 1 parts failed: one"
    run_builder.end(begun, 1, [verdict_sample(1), verdict_sample(1, "one")], status=Status.FAILED, reason=failed)
    panic = "race: Kernel panic - not syncing: Fatal exception (BUG: at fs/x.c)"
    run_builder.end(begun, 2, status=Status.PANICKED, reason=panic)
    run_builder.end(begun, 3, [verdict_sample(2)])
    run_builder.end(begun, 4, status=Status.FAILED, reason="mkfs failed (exit 1): too small")
    run_builder.end(begun, 5, status=Status.INTERRUPTED, reason="the host's patience ended")
    return begun


def whole(found: list[CaseResult]) -> list[tuple[str, str | None]]:
    return [(result.verdict, result.known) for result in found if not result.part]


def test_each_way_to_end_has_its_verdict(run: RunDirectory) -> None:
    found = results(run, CASES)
    verdicts = ["passed", "failed", "failed", "not run", "not run", "not run"]
    assert whole(found) == [(verdict, None) for verdict in verdicts]
    assert [result.why for result in found if result.verdict == "failed"] == [
        "1 of 1 parts failed: one",
        "",
        "race: Kernel panic - not syncing: Fatal exception (BUG: at fs/x.c)",
    ]


def test_what_the_guest_kept_says_why(run: RunDirectory) -> None:
    kept = '\nagelab-test: {"verdict": "failed", "why": "exit status 9", "parts": []}\n'
    (run.cell_directory(1) / "race-1.output").write_text(kept)
    assert results(run, CASES)[2].why == "exit status 9"


@pytest.mark.parametrize(
    ("expect", "known"),
    [
        ({"race.sh: one": "no lock"}, [None, "no lock", None]),
        ({"race.sh": "all of it"}, [None, "all of it", "all of it"]),
        ({"race.sh: two": "another"}, [None, None, None]),
    ],
)
def test_a_known_part_makes_its_test_known_where_nothing_else_failed(
    run: RunDirectory, expect: dict[str, str], known: list[str | None]
) -> None:
    found = results(run, CASES, Expected(expect=expect))
    assert [why for _, why in whole(found)[:3]] == known
    trouble = {(result.name, result.seed) for result in found if result.is_trouble}
    assert {("race.sh", 5), ("race.sh", 6)} <= trouble  # no guest came so far
    assert ("race.sh: one", 2) in trouble or known[1]


def test_the_table_counts_and_each_failing_seed_has_its_command(run: RunDirectory) -> None:
    found = results(run, CASES, Expected(expect={"race.sh: one": "no lock"}))
    text = "\n".join(lines(suite_blocks(tallies(found), lambda result: f"agelab test --seeds {result.seed}")))
    assert "| race.sh | ext4 | 1 | 1 | 1 | 3 |" in text
    assert "| race.sh: one | ext4 | 1 | 0 | 1 | 0 |" in text
    assert "again: agelab test --seeds 2" in text and "again: agelab test --seeds 3" in text
    assert "1 passed, 2 failed, 3 not run" in text


def test_of_a_test_that_passed_it_is_said_that_its_results_were_not_read() -> None:
    passed = CaseResult("files", "", "xfs", 7, "passed", "its results are of an unknown format (a.xml)")
    text = "\n".join(lines(suite_blocks(tallies([passed, replace(passed, seed=8)]), lambda result: "")))
    assert text.count("files on xfs: its results are of an unknown format (a.xml)") == 1


def test_ci_gets_a_case_for_each_test_and_seed(run: RunDirectory) -> None:
    found = results(run, CASES, Expected(expect={"race.sh: one": "no lock"}))
    [suite] = ElementTree.fromstring("\n".join(junit_of_tests("r", found))).iter("testsuite")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "8", "failures": "1", "errors": "2", "skipped": "3"}
    [failure] = suite.iter("failure")
    assert "Kernel panic" in (failure.get("message") or "")
