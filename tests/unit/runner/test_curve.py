"""The plans of the boots that measure the points of a history: which disk is where, and what runs on it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.data.corpus import Corpus
from agelab.evaluate import step_output
from agelab.evaluate.step_output import PLACE_BYTES
from agelab.results.result import Sample
from agelab.runner.execute import disk_maps
from agelab.runner.execute.companion_disk import making_command
from agelab.runner.execute.disks import Forks
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.disk_plans import ARRAY_UUID, FILESYSTEM_UUID
from agelab.runner.plan.guest_plan import DATA_DISK, Boot
from agelab.runner.plan.passes import outputs
from agelab.runner.plan.phases import phases
from agelab.runner.prepare import input_data
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.scenario.metrics import Metric
from agelab.scenario.scenario import Scenario
from agelab.scenario.selection import select
from agelab.scenario.step import Action, Curve
from agelab.scenario.workloads import Workload
from tests.build.cell_builder import cells

TEST = {"name": "scan", "run": "true", "origin": "inferred"}
LOG = replace(Corpus("k", Path("/log/corpus.iso"), 1 << 21, "s", 3, 1000, "a history"), parts=3)


def boots(name: str, **words: Any) -> tuple[CellSpec, list[Boot]]:
    [spec] = cells(name, **words)
    there = Forks(Path("/cell"), spec, None)
    return spec, [
        disk_maps.copying_controls(spec, LOG, there, (1, 2, 3)),
        *disk_maps.testing(spec, LOG, there, disk_maps.fork_names((1, 2, 3))),
    ]


def test_each_variant_has_each_history_and_its_plain_name_is_all_of_them() -> None:
    every = select("aging-curve").variants
    assert len(every) == 14 and {variant.history for variant in every} == {"profile", "history"}
    assert [one.name for one in select("aging-curve-xfs").variants] == ["xfs-profile", "xfs-history"]
    assert [one.name for one in select("aging-curve-xfs-history").variants] == ["xfs-history"]
    assert [one.name for one in select("aging-curve-xfs", log=Path("a.log")).variants] == ["xfs-log"]
    with pytest.raises(InputError, match="--log: scenario aging has no histories"):
        select("aging-ext4", log=Path("a.log"))


def test_the_history_stops_at_each_point_and_the_last_one_is_its_end() -> None:
    [spec] = cells("aging-curve-ext4-profile")
    [making] = phases(spec.scenario, LOG)
    assert making.forks == {1: "aged-1", 2: "aged-2", 3: "aged-3"}
    assert [step.caches for step in making.steps] == ["keep", "reboot", "reboot"]
    assert [step.repetition for step in making.steps] == [1, 2, 3]
    early = spec.scenario.model_copy(
        update={"curve": Curve(step="replay", after=(1,), tested_on={"then": "model:none"})}
    )
    [making] = phases(early, LOG)  # what is kept is the end's
    assert making.forks == {1: "aged-1", 3: "aged"}


def test_one_boot_makes_all_controls_each_on_a_drive_like_the_cells() -> None:
    _, (controls, *_) = boots("aging-curve-ext4-profile")
    plan = controls.plan
    assert [disk["name"] for disk in plan["disks"]] == ["control-1", "control-2", "control-3"]
    assert [bool(drive["settings"]) for drive in plan["drives"]] == [True, False] * 3
    for number, disk in enumerate(plan["disks"]):
        [[drive, part]], [[other, _]] = disk["members"], disk["source"]["members"]
        places = [plan["drives"][one]["partitions"][part]["disk"] - DATA_DISK for one in (drive, other)]
        files = [str(controls.disks[place].path) for place in places]
        assert files == [f"/cell/fork-{kind}-{number + 1}/disk-0" for kind in ("control", "aged")]
        assert [controls.disks[place].written for place in places] == [True, False]
        uuid = FILESYSTEM_UUID["control"].replace("4000", f"400{number + 1}")
        assert any(uuid in word for word in disk["mkfs"])
        assert f"/dev/disk/control-{number + 1}" in disk["mkfs"] and "ro" in disk["source"]["mount"][4]
    assert [(one["name"], one["disk"], one["repetition"]) for one in plan["steps"]] == [
        ("copy", 0, 1),
        ("copy", 1, 2),
        ("copy", 2, 3),
    ]


@pytest.mark.parametrize("layout", ["single", "raid0"])
def test_each_fork_is_tested_on_a_drive_of_its_own_and_nothing_is_written_to_it(layout: str) -> None:
    spec, (_, *tests) = boots("aging-curve-ext4-profile", layout=layout)
    members = len(spec.disk.members)
    assert [boot.phase for boot in tests] == ["then", "today"]
    for boot in tests:
        plan = boot.plan
        assert [disk["name"] for disk in plan["disks"]] == disk_maps.fork_names((1, 2, 3))
        used = [drive for disk in plan["disks"] for drive, _ in disk["members"]]
        assert used == list(range(6 * members)) == [int(d["name"][5:]) for d in plan["drives"]]
        assert all(drive["settings"] for drive in plan["drives"]) and len(boot.disks) == 6 * members
        assert not any(disk.written for disk in boot.disks)
        behind = [part["disk"] for drive in plan["drives"] for part in drive["partitions"]]
        assert behind == list(range(DATA_DISK, DATA_DISK + 6 * members))
        names = [(one["name"], one["disk"], one["repetition"]) for one in plan["steps"][:4]]
        label = f"{boot.phase}/"
        assert names == [
            (f"{label}aged/scan", 0, 1),
            (f"{label}aged/search", 0, 1),
            (f"{label}control/scan", 1, 1),
            (f"{label}control/search", 1, 1),
        ]
        if layout == "raid0":
            for disk, kind in zip(plan["disks"][:2], ("making", "control"), strict=True):
                assert f"--uuid={ARRAY_UUID[kind]}" in disk["layers"]["open"][0]


MINE = Action(name="mine", run="echo 2", records=("my_ops",), origin="estimated")
WORKLOAD = Workload(metrics={"my_ops": Metric("1/s", "operations", "higher")})


def test_a_test_of_a_metric_of_ones_own_has_its_output_kept_at_each_point(tmp_path: Path) -> None:
    [whole] = cells("aging-curve-ext4-profile")
    scan, *_ = whole.scenario.tests
    spec = replace(whole, scenario=whole.scenario.model_copy(update={"tests": (scan, MINE)}))
    then, _ = disk_maps.testing(spec, LOG, Forks(tmp_path, spec, None), disk_maps.fork_names((1, 2)))
    assert [(one["name"], one["disk"]) for one in then.plan["steps"][:4]] == [
        ("then/aged/scan", 0), ("then/aged/mine", 0), ("then/aged/mine.output", 0), ("then/control/scan", 1),
    ]  # fmt: skip
    assert then.output == then.disks[-1] and then.output.written and then.steps
    assert then.plan["environment"]["OUTPUT_DISK"] == str(DATA_DISK + 4)

    then.output.path.write_bytes(b"7".ljust(PLACE_BYTES, b"\0") + b"8".ljust(PLACE_BYTES, b"\0"))
    ended = [Sample(step=f"then/{disk}/mine", metric="elapsed", value=1, unit="s") for disk in ("aged", "control")]
    printed = outputs(then.steps, WORKLOAD.programs)
    found = list(step_output.samples(then.output.path, printed, WORKLOAD.metrics, 1.0, ended))
    assert [(one.step, one.metric, one.value) for one in found] == [
        ("then/aged/mine", "my_ops", 7), ("then/control/mine", "my_ops", 8),
    ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.glob("*.output")) == [
        "then-aged-mine-1.output", "then-control-mine-1.output",
    ]  # fmt: skip


@pytest.mark.parametrize(("layout", "most"), [("single", 14), ("raid0", 7)])
def test_more_points_than_a_guest_has_room_for_are_refused_before_anything_runs(layout: str, most: int) -> None:
    [spec] = cells("aging-curve-ext4-profile", layout=layout)
    input_data._check_points(spec, "log", most)
    with pytest.raises(InputError, match=f"history log has {most + 1} points to be measured at; .* disks of {most}"):
        input_data._check_points(spec, "log", most + 1)
    early = spec.scenario.model_copy(update={"curve": Curve(step="replay", after=(5,))})
    with pytest.raises(InputError, match="history log has 3 points, scenario aging-curve wants 5"):
        input_data._check_points(replace(spec, scenario=early), "log", 3)


def test_a_stored_disk_of_a_users_log_is_made_again_by_its_command() -> None:
    log = Path("/tmp/my.log")
    wanted = resolve(RunOptions(name="aging-curve-ext4", log=str(log)))
    [spec] = cells("aging-curve-ext4", log=str(log))
    command = making_command(wanted, spec)
    assert command.startswith("agelab age aging-curve-ext4 --scale quick ") and f"--log {log}" in command


def test_a_guest_with_many_disks_has_memory_for_their_caches_and_pages() -> None:
    spec, (_, then, today) = boots("aging-curve-ext4-profile")
    more = then.memory_mib - spec.memory_mib(LOG)
    assert more * (1 << 20) >= 6 * spec.disk.cache_bytes > 0
    assert more <= spec.more_memory_at_points(3)
    for boot, kind in ((then, "disk"), (today, "flash")):
        assert f"kind={kind}" in boot.plan["drives"][0]["settings"]


def test_nothing_is_tests_at_points_of_a_disk_that_cannot_be_forked() -> None:
    with pytest.raises(InputError, match="measures at points of a history"):
        cells("aging-curve-ext4-profile", disks="file:/tmp/some.img")
    with pytest.raises(InputError, match="measures at points of a history"):
        resolve(RunOptions(name="aging-curve-ext4-profile", disk="0123"))
    with pytest.raises(InputError, match="has histories, no corpus"):
        cells("aging-curve-ext4-profile", corpus="/etc")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"histories": ()}, "either a corpus or histories"),
        ({"tests": ()}, "tested_on needs histories, tests and a control"),
        ({"curve": {"step": "replay", "after": "each", "tested_on": {"map": "model:none"}}}, "called 'map'"),
        ({"tests": [{**TEST, "caches": "reboot"}]}, "none reboots"),
        ({"tests": [{**TEST, "repeat": "parts"}]}, "'scan': it cannot be repeated for each part"),
        ({"steps": [{"repeat": 2, "cycle": [{**TEST, "repeat": "parts"}]}]}, "cannot be repeated for each"),
        ({"variants": [{"name": "a", "filesystem": "ext4", "history": "no"}]}, "variant 'a': no history"),
        ({"curve": {"step": "replays", "after": "each"}}, "step 'replays' has 0 repetitions"),
    ],
)
def test_a_scenario_that_does_not_hold_together_is_refused(change: dict[str, Any], said: str) -> None:
    whole = select("aging-curve").scenario.model_dump()
    with pytest.raises(ValueError, match=said):
        Scenario.model_validate({**whole, **change})


def test_a_disk_that_was_made_elsewhere_is_not_tested_on_a_solid_state_drive() -> None:
    [spec] = cells("aging-curve-ext4-profile")
    with pytest.raises(InputError, match="cannot be tested on the solid-state drive model:wd-blue-sn550-500"):
        spec.on_drive("model:wd-blue-sn550-500")
