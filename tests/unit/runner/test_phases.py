"""A cell's phases, their plans, and where the disk is forked."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import BootStart, guest_plan, map_plan
from agelab.runner.plan.phases import Phase, phases
from agelab.scenario.scenario import Scenario
from tests.build.cell_builder import CORPUS, spec

AGING = spec(scale="paper").scenario


def changed(**changes: Any) -> Scenario:
    """The aging scenario with other fields, checked as a file is."""
    return Scenario.model_validate({**AGING.model_dump(), **changes})


def of(cell: CellSpec, *, curve: bool = False, real: bool = False) -> dict[str, Phase]:
    return {phase.name: phase for phase in phases(cell.scenario, CORPUS, curve=curve, real=real)}


def test_the_disk_is_made_then_tested_on_a_fork_then_beside_a_control() -> None:
    found = of(spec())
    assert list(found) == ["making", "aged", "control"]
    assert [phase.fork_of is None for phase in found.values()] == [True, False, True]
    assert found["making"].forks[len(found["making"].steps)] == "aged"
    assert [step.name for step in found["aged"].steps][:2] == ["read", "random-read"]
    copy, *tests = found["control"].steps
    assert copy.name == "copy" and copy.sync and found["control"].forks[1] == "control"
    # The control's tests begin with a boot as the aged disk's do, and are the same but for that.
    assert tests[0].caches == "reboot"
    assert [replace(test, caches="keep") for test in tests[:1]] + tests[1:] == list(found["aged"].steps)


def test_dates_of_phases_are_apart_and_the_same_however_the_disk_was_made() -> None:
    assert [phase.day for phase in of(spec()).values()] == [0, 100, 200]
    assert [phase.day for phase in of(spec(), curve=True).values()] == [0, 100, 200]


def test_a_real_disk_has_no_control() -> None:
    assert list(of(spec(), real=True)) == ["making", "aged"]


def test_a_scenario_without_tests_and_control_only_makes() -> None:
    cell = replace(spec(), scenario=changed(tests=(), control=None))
    assert list(of(cell)) == ["making"]


def test_the_curve_stops_the_making_before_the_step_after_each_point() -> None:
    plain, curved = (of(spec(scale="paper"), curve=curve)["making"] for curve in (False, True))
    points = {index: name for index, name in (curved.forks or {}).items() if name != "aged"}
    # delete is every second step
    assert points == {2 * turn: f"curve-{turn}" for turn in (1, 4, 8, 12, 16, 20, 24)}
    for index, (one, other) in enumerate(zip(plain.steps, curved.steps, strict=True)):
        assert other == (replace(one, caches="reboot") if index in points else one)


def test_a_curve_that_the_steps_do_not_have_is_refused() -> None:
    with pytest.raises(ValidationError, match="curve: step 'delete' has 24 repetitions, not 25"):
        changed(curve={"step": "delete", "after": [3, 25]})
    with pytest.raises(ValidationError, match="curve: step 'age' has 0 repetitions"):
        changed(curve={"step": "age", "after": [1]})


@pytest.mark.parametrize("name", ["map", "copy", "mount"])
def test_names_that_the_phases_take_are_refused(name: str) -> None:
    test = {"name": name, "run": "true", "origin": "inferred"}
    with pytest.raises(ValidationError, match=f"cannot be called '{name}'"):
        changed(tests=[test], steps=AGING.model_dump()["steps"][1:], ratios=(), curve=None)


def test_a_fork_is_neither_made_anew_nor_named_like_the_control() -> None:
    found = of(spec())
    plans = {name: guest_plan(spec(), CORPUS, phase) for name, phase in found.items()}
    assert plans["aged"]["disks"][0]["mkfs"] is None
    uuids = [
        next(word for word in plans[name]["disks"][0]["mkfs"] if "6167656c" in word) for name in ("making", "control")
    ]
    assert uuids[0] != uuids[1]


def test_the_control_is_copied_from_a_fork_on_bare_memory_that_is_read_only_and_gone_after_it() -> None:
    cell = spec(layout="raid0", drives=())
    control = of(cell)["control"]
    plan = guest_plan(cell, CORPUS, control)
    modelled, bare = plan["drives"][:2], plan["drives"][2:]
    assert all(drive["settings"] for drive in modelled) and not any(drive["settings"] for drive in bare)
    source = plan["disks"][0]["source"]
    assert source["members"] == [[2, 0], [3, 0]]
    assert [drive["partitions"][0]["disk"] for drive in bare] == [5, 6]
    assert "ro" in source["mount"][source["mount"].index("-o") + 1].split(",")
    later = guest_plan(cell, CORPUS, control, BootStart(1, 1))
    assert later["disks"][0]["source"] is None and len(later["drives"]) == 2


def test_the_map_boot_has_every_fork_in_turn_and_the_results_last() -> None:
    plan = map_plan(spec(layout="raid0"), ("aged", "control"))
    assert [entry["members"] for entry in plan["maps"]] == [[[0, 0], [1, 0]], [[2, 0], [3, 0]]]
    assert plan["results"] == 7
    assert [drive["partitions"][0]["disk"] for drive in plan["drives"]] == [3, 4, 5, 6]
    assert {entry["extents"] for entry in plan["maps"]} == {"fibmap"}
    assert "/dev/disk/control" in plan["maps"][1]["free"]


def test_what_the_scenario_does_not_ask_for_is_not_looked_for() -> None:
    cell = replace(spec(), scenario=changed(measures=("free_space",)))
    [entry] = map_plan(cell, ("aged",))["maps"]
    assert entry["extents"] == "none" and entry["free"]


def test_a_fork_is_mounted_without_the_options_that_say_how_the_disk_is_written() -> None:
    """ext4's driver refuses data=journal where the journal must not be loaded."""
    plan = guest_plan(spec("aging-ext3-journal"), CORPUS, of(spec("aging-ext3-journal"))["control"])
    [disk] = plan["disks"]
    options = [one["mount"][one["mount"].index("-o") + 1].split(",") for one in (disk, disk["source"])]
    assert "data=journal" in options[0] and "data=journal" not in options[1] and "noload" in options[1]


def test_the_array_of_the_control_is_not_named_like_the_one_beside_it() -> None:
    """mdadm gives up on an array whose name an active one has."""
    cell = spec(layout="raid0")
    plan = guest_plan(cell, CORPUS, of(cell)["control"])
    [disk] = plan["disks"]
    assert disk["layers"] != disk["source"]["layers"]
    aged, control = map_plan(cell, ("aged", "control"))["maps"]
    assert aged["layers"] == disk["source"]["layers"] and control["layers"] == disk["layers"]
