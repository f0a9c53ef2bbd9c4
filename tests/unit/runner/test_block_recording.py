"""A pass that records: each step stands between two that begin and keep, and nothing else of the cell changes."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from agelab.base.errors import InputError
from agelab.evaluate.boot_events import BootEvents
from agelab.results.result import RebootRequested
from agelab.runner.execute.cell import CellRunner
from agelab.runner.execute.phases import CellGoals
from agelab.runner.plan.cell_spec import BYTES_OF_FILE, MIB, memory_of_small_files
from agelab.runner.plan.guest_plan import DATA_DISK, Boot
from agelab.runner.plan.passes import (
    EVENTS_MEMORY,
    RECORD_BYTES,
    RECORDS_VARIABLE,
    is_keeper,
    is_watched,
    recorded,
    records_bytes,
    with_keepers,
)
from agelab.runner.plan.steps import StepPlan
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests, resolve
from agelab.scenario.step import Action
from tests.build import run_builder
from tests.build.cell_builder import CORPUS, FIO, OK, PLAIN, ScriptedGuest, phase, run_guests, spec

COLD = Action(name="read", run="cat *", caches="reboot", pause=5, origin="estimated")


def test_a_step_stands_between_the_beginning_and_the_keeping_of_its_record() -> None:
    found = recorded(phase(PLAIN))
    assert [(step.name, step.run) for step in found.steps] == [
        ("copy.begin.output", "exec record-blocks begin"),
        ("copy", "cp a b"),
        ("copy.blocks.output", 'exec record-blocks keep "$BLOCKS_DISK" 0'),
    ]
    assert [is_keeper(step.name) for step in found.steps] == [True, False, True]


def test_caches_and_pause_come_before_the_record_and_forks_stay() -> None:
    found = recorded(phase(PLAIN, COLD, forks={1: "point", 2: "aged"}))
    begins, reads = found.steps[3:5]
    assert (begins.caches, begins.pause) == ("reboot", 5) and (reads.caches, reads.pause) == ("keep", 0)
    assert found.forks == {3: "point", 6: "aged"}


def test_what_is_printed_is_kept_beside_and_places_count_recorded_steps_alone() -> None:
    found = recorded(with_keepers(phase(FIO, PLAIN)))
    assert [step.name for step in found.steps] == [
        "fio.begin.output", "fio", "fio.blocks.output", "fio.output",
        "copy.begin.output", "copy", "copy.blocks.output",
    ]  # fmt: skip
    assert found.steps[-1].run.endswith(" 1") and records_bytes(found) == 2 * RECORD_BYTES


def test_a_step_that_loses_its_power_is_not_recorded() -> None:
    cut = StepPlan.of(PLAIN.model_copy(update={"cut_after": (1.0, 1.0)}), 1, CORPUS)
    assert not is_watched(cut)
    assert recorded(replace(phase(PLAIN), steps=(cut,))).steps == (cut,)


def test_the_memory_for_the_events_is_not_the_steps() -> None:
    cell = spec()
    passed = replace(cell, set_aside=EVENTS_MEMORY)
    assert passed.available_bytes == cell.available_bytes + EVENTS_MEMORY
    assert passed.memory_mib(CORPUS) >= cell.memory_mib(CORPUS)


def test_many_small_files_take_memory_that_a_studys_files_do_not() -> None:
    study = replace(CORPUS, files=150, content_bytes=47_934_843)
    assert not memory_of_small_files(study)
    one, other = (memory_of_small_files(replace(study, files=files)) for files in (2066, 4066))
    assert one > 8 * MIB and other - one == 2000 * BYTES_OF_FILE


def test_recording_takes_the_virtual_clock_and_a_modelled_drive() -> None:
    with pytest.raises(InputError, match="in the wall clock there are none"):
        RunOptions(name="aging", blocks=True, clock="wall")
    bare = resolve(RunOptions(name="aging-ext4", blocks=True, disks="model:none"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"--blocks: .* this disk is not on one"):
        cell_requests(bare, 14, (), None)


def test_the_record_lies_beside_the_cell_and_its_disk_is_gone(tmp_path: Path) -> None:
    recording: list[str] = []

    def says(boot: Boot, heard: BootEvents) -> None:
        reboots = not boot.number and not boot.name
        heard.reboot = RebootRequested(event="reboot", next=1) if reboots else None
        heard.ended = None if reboots else OK
        if number := boot.plan["environment"].get(RECORDS_VARIABLE):
            disk = boot.disks[int(number) - DATA_DISK]
            recording.append(disk.path.name)
            assert disk.path.exists() and disk.size % RECORD_BYTES == 0

    run = run_builder.begin(tmp_path, run_builder.cells(("reiserfs",)))
    modules = SimpleNamespace(closure=lambda names: ())
    kernel = SimpleNamespace(modules=modules, release="6.1", version="6.1-1", key="k")
    proof = {("reiserfs", "period"): SimpleNamespace(status="ok")}
    shared = run_guests(SimpleNamespace(kernel=kernel, content="c", proof=proof), tmp_path)
    cell = spec(drives=("model:wd-wd2500jb",))
    guest = partial(ScriptedGuest, says=says, kernel_log="", booted=[])
    launcher = guest(run.cell_directory(0), cell, CORPUS, shared, None, {})
    CellRunner(run, 0, launcher, CellGoals(measure=False, blocks=True), lambda _: None).carry_out()
    blocks = run.cell_directory(0) / "blocks"
    assert recording == ["records", "records"] and [path.name for path in blocks.iterdir()] == ["blocks.json"]
    assert '"status": "ok"' in (blocks / "blocks.json").read_text()
