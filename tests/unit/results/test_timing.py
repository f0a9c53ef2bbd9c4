"""Where the host's time of a cell went: taken of each boot, kept beside the digest and shown when asked."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agelab.base import orphans
from agelab.base.errors import InputError
from agelab.cli.show import show
from agelab.evaluate import event_code
from agelab.evaluate.boot_events import BootEvents
from agelab.machine.vm.processor_time import Program, ProgramWatch, Times
from agelab.results.records import BootTime, CellTiming, StepTime
from agelab.results.result import CellEnded, Ending, Event, HarnessReady, PowerIsCut, StepBegun, StepDone
from agelab.runner.execute.host_timing import CellTimer, boot_time
from agelab.runner.plan.guest_plan import Boot
from agelab.runner.request.options import RunOptions
from tests.build import run_builder

READY = HarnessReady(event="ready", boot=0, uptime=4.0, release="6.1", watchdog=True)
END = CellEnded(event="end", status="ok", reason=None)
BOOT = Boot(name="aged-", number=1, day=0, plan={}, memory_mib=1, disks=(), phase="aged")


def begun(step: str) -> Event:
    return StepBegun(event="begin", step=step, repetition=2)


def done(step: str) -> Event:
    return StepDone(event="step", step=step, repetition=2)


def qemu(found: float, seconds: float, directory: Path = Path("/cells/0")) -> Program:
    words = ("qemu", "-name", "guest=agelab-1", f"file:{directory}/aged-events-1.jsonl")
    return Program(7, 1, found, Times(seconds, 9), Times(), words, orphans.tag())


def test_a_boot_is_the_sum_of_its_parts() -> None:
    heard = [
        (104.0, READY),
        (105.0, begun("read")),
        (107.5, done("read")),
        (108.0, begun("mount")),  # a mount says only that it begins
        (108.5, begun("write")),
        (109.0, done("write")),
        (110.0, END),
    ]
    taken = boot_time(BOOT, 100.0, 110.25, [qemu(101.0, 6.5)], heard)
    assert taken == BootTime(
        phase="aged",
        number=1,
        launch=1.0,
        ready=3.0,
        steps=(StepTime(step="read", repetition=2, seconds=2.5), StepTime(step="write", repetition=2, seconds=0.5)),
        between=3.0,
        end=0.25,
        processor=6.5,
    )
    assert (taken.seconds, taken.waiting) == (10.25, 2.75)


def test_the_phase_without_a_name_is_the_making_of_the_disk() -> None:
    assert boot_time(replace(BOOT, phase=""), 0, 1, [], []).phase == "making"


def test_a_power_cut_ends_a_step() -> None:
    cut = PowerIsCut(event="cut", step="write", repetition=2, uptime=9.0, at=8, next=1, survived="")
    heard = [(1.0, READY), (2.0, begun("write")), (5.0, cut)]
    assert boot_time(BOOT, 0.0, 5.5, [], heard).in_steps == 3.0


def test_a_guest_that_never_gets_ready_has_taken_all_its_time_for_that() -> None:
    taken = boot_time(BOOT, 10.0, 25.0, [qemu(11.0, 13.0)], [])
    assert (taken.launch, taken.ready, taken.between, taken.end) == (1.0, 14.0, 0.0, 0.0)


def test_only_the_guest_of_this_boot_counts(tmp_path: Path) -> None:
    now = time.monotonic()
    watch = ProgramWatch(lambda _: True)
    others = [qemu(now - 60, 8, tmp_path / "cells/1"), qemu(now + 60, 16, tmp_path / "cells/10")]
    watch._ended = [qemu(now + 60, 4, tmp_path / "cells/1"), *others]
    timer = CellTimer(tmp_path / "cells/1", watch, 2.5)
    events = BootEvents()

    def launch() -> Ending:
        events.hear(event_code.encode(1, READY.model_dump_json(), events.secret), "", lambda _: None, lambda _: None)
        return Ending.STOPPED

    assert timer.run(BOOT, events, launch) is Ending.STOPPED
    timing = timer.timing(99.0)
    assert [boot.processor for boot in timing.boots] == [4]
    assert (timing.prepared, timing.seconds) == (2.5, 99.0)


def test_a_forged_event_takes_no_time() -> None:
    heard: list[Event] = []
    events = BootEvents(on_event=heard.append)
    events.hear(event_code.encode(1, READY.model_dump_json(), os.urandom(32)), "", lambda _: None, lambda _: None)
    assert heard == []


TIMING = CellTiming(
    prepared=2.5,
    boots=(
        BootTime(
            phase="making", number=0, launch=1, ready=4,
            steps=(StepTime(step="copy", repetition=1, seconds=10),), between=2, end=0.5, processor=14,
        ),
    ),
    seconds=20,
)  # fmt: skip


def timed_run(home: Path, cells: int = 1) -> str:
    run = run_builder.begin(home, run_builder.cells(["ext4"], range(1, cells + 1)))
    for number in range(cells):
        run.write_timing(number, TIMING)
        run_builder.end(run, number)
    return run.name


def shown(home: Path, *words: str) -> str:
    result = CliRunner().invoke(show, ["latest", *words], env={"AGELAB_HOME": str(home)})
    assert result.exit_code == 0, result.output
    return result.output


def test_it_is_shown_when_asked_and_is_no_part_of_the_result(tmp_path: Path) -> None:
    timed_run(tmp_path)
    told = shown(tmp_path, "--timing")
    lines = [line.split() for line in told[told.index("the host's time") :].splitlines()]
    assert lines[2] == ["making", "0", "1.00", "4.00", "10.00", "2.00", "0.50", "17.50", "14.00", "2.50"]
    assert lines[3] == ["all", "1.00", "4.00", "10.00", "2.00", "0.50", "2.50", "20.00", "14.00", "2.50"]
    assert lines[4][:5] == ["before", "the", "first", "cell:", "2.50;"]
    assert "the host's time" not in shown(tmp_path)
    assert "prepared" not in json.loads(shown(tmp_path, "--json"))["cells"][0]


def test_of_several_cells_each_has_a_line(tmp_path: Path) -> None:
    timed_run(tmp_path, cells=2)
    told = shown(tmp_path, "--timing")
    lines = [line.split() for line in told[told.index("the host's time") :].splitlines()]
    assert [line[:3] for line in lines[2:4]] == [["ext4,", "seed", "1"], ["ext4,", "seed", "2"]]
    assert lines[4][:2] == ["all", "2.00"] and lines[4][7] == "40.00"


def test_of_a_run_without_it_how_to_take_it_is_said(tmp_path: Path) -> None:
    run_builder.end(run_builder.begin(tmp_path, run_builder.cells(["ext4"])), 0)
    assert "agelab run --timing takes it" in shown(tmp_path, "--timing")


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4"]))
    run.write_timing(0, TIMING)
    path = run.cell_directory(0) / "timing.json"
    path.write_text(path.read_text().replace("2.5", "3.5"))
    with pytest.raises(InputError, match="damaged"):
        run.beside(0, CellTiming)


def test_a_plan_keeps_that_it_was_asked_for() -> None:
    options = RunOptions(name="aging-ext4", timing=True)
    said = options.to_plan()
    assert RunOptions.from_words(said).timing
    assert options.arguments() == ["aging-ext4", "--timing"]
    del said["options"]["timing"]
    assert not RunOptions.from_words(said).timing
