"""The parts of a step's name, and of a fork's."""

import ast
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.scenario import selection
from agelab.scenario.step import AGED, CONTROL, ForkName, StepId

NAMES = (
    "copy", "boot", "map", "aged/boot", "aged/read", "aged/map", "control/copy", "control/map", "curve/map",
    "then/mount", "then/scan", "then/aged/scan", "then/control/scan", "prepared-1/prepare", "read1", "read1/mkfs",
    "strace/read1", "strace/read1/open", "strace-w/read1/boot", "recovery", "repair-after", "aged/recovery-repaired",
)  # fmt: skip


def of_scenarios() -> Iterator[str]:
    """The name of every step, test and experiment of the project's scenarios."""
    for name in selection.scenario_names():
        scenario = selection.select(name).scenario
        yield from (one.name for one in (*scenario.actions(), *scenario.tests))
        yield from (one.name for one in scenario.experiments)


def in_made_up_runs() -> Iterator[str]:
    """Every text in the tests' own Python files that could name a step."""
    for path in Path("tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_a_name_comes_back_as_it_was() -> None:
    draws = random.Random(1)
    made = ["".join(draws.choices("a-/1 \n\u0663", k=draws.randrange(9))) for _ in range(5000)]
    for text in (*NAMES, *of_scenarios(), *in_made_up_runs(), *made):
        assert str(StepId.parse(text)) == text
        assert str(ForkName.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "label", "disk", "name"),
    [
        ("copy", "", "", "copy"),
        ("aged/read", "", "aged", "read"),
        ("then/control/scan", "then", "control", "scan"),
        ("then/scan", "then", "", "scan"),
        ("curve/map", "", "curve", "map"),
        ("strace/read1/open", "strace/read1", "", "open"),
    ],
)
def test_its_parts_are_the_drive_the_disk_and_the_test(text: str, label: str, disk: str, name: str) -> None:
    step = StepId.parse(text)
    assert (step.label, step.disk, step.name) == (label, disk, name)
    assert step.on_aged_disk == (disk == AGED)


def test_the_two_times_of_a_slowdown_are_on_both_disks() -> None:
    assert [str(StepId.parse("then/scan").on(disk)) for disk in (AGED, CONTROL)] == [
        "then/aged/scan",
        "then/control/scan",
    ]
    assert str(StepId.parse("aged/recovery").beside("repair")) == "aged/repair"


@pytest.mark.parametrize(
    ("step", "phase", "whole"),
    [
        ("copy", "", "copy"),
        ("boot", "aged", "aged/boot"),
        ("read1", "read1", "read1"),
        ("read10", "read1", "read1/read10"),
        ("strace/read1", "strace/read1", "strace/read1"),
        ("strace/read1/open", "strace/read1", "strace/read1/open"),
        ("mount", "strace/read1", "strace/read1/mount"),
        ("then/aged/scan", "then", "then/aged/scan"),
    ],
)
def test_a_guests_step_is_named_with_its_phase_once(step: str, phase: str, whole: str) -> None:
    assert str(StepId.parse(step).inside(phase)) == whole


def test_a_maps_step_is_no_step_that_is_called_map() -> None:
    assert StepId.parse("aged/map").is_map and not StepId.parse("map").is_map


def test_a_fork_has_the_number_of_its_point() -> None:
    assert ForkName.parse("curve-12") == ForkName("curve", 12)
    assert ForkName.parse("aged") == ForkName("aged")
    assert ForkName.parse("aged-01") == ForkName("aged-01")
