"""Studies with more than a disk under test: layouts, a second filesystem, experiments."""

import io

import pytest
from pydantic import ValidationError
from rich.console import Console

from agelab.base.errors import InputError
from agelab.evaluate.derived_samples import syscall_shares
from agelab.present.view.run_tables import syscalls_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.result import Sample
from agelab.runner.execute import companion_disk
from agelab.runner.plan.disk_plans import mkfs
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.plan.phases import Phase, phases
from agelab.scenario import selection
from agelab.scenario.scenario import Scenario
from harness.syscalls import counted
from tests.build.cell_builder import CORPUS, cells

STUDIES = ["aging", "fedorchuk-2005", "fedorchuk-2008", "piszcz-2006", "tum-2005"]


def of(name: str, *, real: bool = False) -> dict[str, Phase]:
    scenario = selection.select(name).scenario
    return {phase.name: phase for phase in phases(scenario, CORPUS, real=real)}


def test_the_passes_under_strace_are_asked_for() -> None:
    asked, unasked = cells("tum-2005-xfs", trace=True)[0], cells("tum-2005-xfs")[0]
    names = [[phase.name for phase in phases(cell.scenario, CORPUS)] for cell in (asked, unasked)]
    assert [name for name in names[0] if not name.startswith("strace")] == names[1]
    assert "strace-w/recls2" in names[0] and "strace/read2" not in names[0]
    with pytest.raises(InputError, match="--trace: scenario aging is not performed under strace"):
        cells("aging", trace=True)


def test_what_mkfs_did_unasked_then_it_does_with_the_period_defaults_alone() -> None:
    made = {
        defaults: [mkfs(cell, "making") for cell in cells("tum-2005", defaults=defaults)]
        for defaults in ("period", "today")
    }
    assert [command[0] for command in made["period"]] == [command[0] for command in made["today"]]
    words = {defaults: {word for command in of for word in command} for defaults, of in made.items()}
    assert "agcount=16" in words["period"] and "8192" in words["period"]
    assert not words["today"] & {"agcount=16", "size=10m,lazy-count=0", "8192", "-I", "-O"}


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("name", STUDIES)
def test_every_cell_of_a_study_has_its_drives_and_a_plan(name: str, scale: str) -> None:
    for cell in cells(name, scale=scale):
        for phase in phases(cell.scenario, CORPUS):
            plan = guest_plan(cell, CORPUS, phase)
            assert len(plan["disks"][0]["members"]) == (2 if cell.layout == "raid0" else 1)
            assert (plan["beside"] is None) == (cell.scenario.beside is None)
        assert cell.host_bytes <= sum(cell.disk.memory_disks)


def test_a_variant_runs_in_the_layouts_of_the_study_unless_another_is_asked_for() -> None:
    own = [(cell.variant.name, cell.layout) for cell in cells("fedorchuk-2008")]
    assert len(own) == 15 == len(set(own))
    assert ("ext3-writeback", "raid0") not in own and ("xfs", "raid0") in own
    assert {cell.layout for cell in cells("fedorchuk-2008", layout="raid0")} == {"raid0"}
    assert len(cells("fedorchuk-2008", layout="raid0")) == 9


def test_a_variant_has_the_machine_and_the_drive_of_the_study_unless_another_is_asked_for() -> None:
    own = {cell.variant.name: cell for cell in cells("fedorchuk-2005", filesystem="ext3")}
    on = {name: (cell.machine.name, cell.disk.drive_specs) for name, cell in own.items()}
    assert on == {
        "ext3-sata": ("athlon64-3200", ("model:seagate-st3120026as",)),
        "ext3-pata": ("athlon64-3200", ("model:seagate-st340016a",)),
        "ext3-p4": ("pentium4-2530", ("model:seagate-st340016a",)),
        "ext3-4200": ("pentium4-2660", ("model:hitachi-ic25n040atmr04",)),
    }
    assert own["ext3-p4"].available_bytes < own["ext3-pata"].available_bytes
    asked = cells("fedorchuk-2005", filesystem="ext3", machine="athlon64-3200")
    assert {cell.machine.name for cell in asked} == {"athlon64-3200"}


def test_the_filesystem_beside_shares_the_drive_and_not_the_name() -> None:
    [cell] = cells("fedorchuk-2008-xfs", layout="single")
    [drive] = cell.disk.drives
    assert cell.disk.companion == (0, 1) and cell.disk.companion_place == 1 and cell.disk.member_places == (0,)
    assert drive.partitions[1].first < drive.partitions[0].first
    [array] = cells("fedorchuk-2008-xfs", layout="raid0")
    assert array.disk.members == ((0, 0), (1, 0)) and array.disk.companion == (0, 1)
    [other] = cells("piszcz-2006-ext2")
    assert other.disk.companion == (1, 0) and str(other.disk.drives[1].spec) == "model:maxtor-96147u8"
    [bare] = cells("piszcz-2006-ext2", disks="model:none")
    assert [str(drive.spec) for drive in bare.disk.drives] == ["model:none", "model:none"]


def test_numbers_and_sizes_shrink_with_the_scale() -> None:
    paper, quick = (
        guest_plan(cell, CORPUS, phases(cell.scenario, CORPUS)[0])["environment"]
        for scale in ("paper", "quick")
        for cell in cells("piszcz-2006-ext2", scale=scale)
    )
    assert (paper["FILES"], quick["FILES"]) == ("10000", "625")
    assert int(paper["GIGABYTE"]) == 1 << 30 and int(quick["GIGABYTE"]) == 1 << 26


def test_what_is_prepared_alike_is_prepared_once() -> None:
    found = of("tum-2005")
    prepared = [phase for phase in found.values() if phase.forks]
    assert [phase.name for phase in prepared] == ["prepared-1", "prepared-2"]
    starts = {name: phase.fork_of for name, phase in found.items() if phase not in prepared}
    assert len(starts) == 8 + 2 * 7 and "strace/read2" not in starts
    assert {name for name, fork in starts.items() if fork is None} == {
        f"{before}{name}" for before in ("", "strace/", "strace-w/") for name in ("create-filetree", "write")
    }
    assert [name for name, fork in starts.items() if fork == "prepared-2"] == [
        "read3",
        "strace/read3",
        "strace-w/read3",
    ]
    assert len({phase.day for phase in found.values()}) == len(found)
    assert found["strace-w/read1"].steps[0].trace == ("-c", "-w") and found["read1"].steps[0].trace is None
    for name, fork in starts.items():
        made = list(found)
        assert fork is None or made.index(fork) < made.index(name)


def test_a_real_disk_is_prepared_for_each_experiment_anew() -> None:
    found = of("tum-2005", real=True)
    assert len(found) == 22 and not any(phase.forks or phase.fork_of for phase in found.values())
    prepare, perform = found["delete"].steps
    assert prepare.name == "prepare" and perform.caches == "reboot"


def test_steps_and_experiments_exclude_each_other() -> None:
    whole = selection.select("tum-2005").scenario.model_dump()
    with pytest.raises(ValidationError, match="either steps, or experiments, or cases"):
        Scenario.model_validate({**whole, "experiments": []})
    with pytest.raises(ValidationError, match="experiments cannot be combined"):
        Scenario.model_validate({**whole, "measures": ["extents"]})


TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.29    0.000019          19         1           execve
 38.71    0.000012           1        10         3 openat
  0.00    0.000000           0         2           getdents64
------ ----------- ----------- --------- --------- ----------------
100.00    0.000031           2        13         3 total
"""


def _calls(step: str, **seconds: float) -> list[Sample]:
    return [
        Sample(step=f"{step}/{call}", metric=metric, value=value, unit=unit)
        for call, took in seconds.items()
        for metric, value, unit in (
            ("syscall_seconds", took, "s"), ("syscall_calls", 10, "1"), ("syscall_errors", 0, "1"),
        )
    ]  # fmt: skip


def test_calls_that_wait_for_a_process_are_set_apart_from_the_others_shares() -> None:
    whole = Sample(step="strace/read1", metric="elapsed", value=20.0, unit="s")
    samples = [
        whole,
        *_calls("strace/read1", read=3.0, wait4=12.0, close=1.0),
        *_calls("strace/write", wait4=1.0, read=0.0),
    ]
    shares = {one.step: (one.value, one.not_measured) for one in syscall_shares(samples)}
    assert shares == {
        "strace/read1/read": (0.75, None),
        "strace/read1/wait4": (None, "it waits for another process"),
        "strace/read1/close": (0.25, None),
        "strace/write/wait4": (None, "it waits for another process"),
        "strace/write/read": (None, "no call took any time"),
    }
    console = Console(width=80, record=True, file=io.StringIO())
    print_blocks(syscalls_blocks([*samples, *syscall_shares(samples), *_calls("strace/read1", poll=0.001)]), console)
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert lines[1:6] == [
        "strace/read1, 20.000000 s in all",
        "read 3.000000 75.0 10 0",
        "close 1.000000 25.0 10 0",
        "1 others 0.001000 0.0 10 0",
        "wait4 12.000000 waits 10 0",
    ]


def test_a_table_of_strace_is_read_with_and_without_errors() -> None:
    assert counted(TABLE) == [("execve", 0.000019, 1, 0), ("openat", 0.000012, 10, 3), ("getdents64", 0.0, 2, 0)]


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("name", ["fedorchuk-2008", "piszcz-2006", "tum-2005"])
def test_what_lies_beside_has_the_size_of_its_partition(name: str, scale: str) -> None:
    for cell in cells(name, scale=scale):
        made = companion_disk.companion_cell(cell).disk
        assert [made.memory_disks[place] for place in made.member_places] == [cell.companion_bytes]


@pytest.mark.parametrize("name", ["fedorchuk-2008", "piszcz-2006", "tum-2005"])
def test_what_lies_beside_is_made_by_one_copy_and_nothing_else(name: str) -> None:
    scenario = companion_disk.companion_scenario(selection.select(name).scenario)
    Scenario.model_validate(scenario.model_dump())
    [only] = phases(scenario, CORPUS)
    assert [step.name for step in only.steps] == ["copy"] and only.forks == {1: "aged"}
