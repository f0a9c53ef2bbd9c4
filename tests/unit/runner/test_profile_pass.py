"""The pass that takes a cell's profile, with guests that say what a test has them say."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from agelab.analysis.cells import load
from agelab.analysis.profiles import of_cell
from agelab.evaluate.boot_events import BootEvents
from agelab.results.records import CellProfile
from agelab.results.result import CellEnded, End, RebootRequested, Status
from agelab.runner.execute.cell import CellRunner
from agelab.runner.execute.passes import Profiler
from agelab.runner.execute.phases import CellGoals
from agelab.runner.plan.guest_plan import Boot
from agelab.runner.plan.passes import SAMPLES_VARIABLE
from tests.build import profiler_log as made
from tests.build import run_builder
from tests.build.cell_builder import CORPUS, OK, ScriptedGuest, run_guests, spec

HUNG = CellEnded(event="end", status="hung", reason="step copy: no end")
Logs = Callable[[Boot], bytes]


def carried_out(
    home: Path, log: Logs, *, failing: str | None = None, profiler: bool = True
) -> tuple[End, CellProfile | None, list[str]]:
    """Carry out a cell with a profile: its end, the profile, and the steps that were told of."""
    told: list[str] = []

    def says(boot: Boot, heard: BootEvents) -> None:
        profiled = SAMPLES_VARIABLE in boot.plan["environment"]
        reboots = not boot.number and not boot.name
        heard.reboot = RebootRequested(event="reboot", next=1) if reboots else None
        heard.ended = None if reboots else HUNG if profiled and boot.name == failing else OK
        if profiled:
            disk = boot.disks[int(boot.plan["environment"][SAMPLES_VARIABLE]) - 3].path
            assert "samples" in disk.name and all("step-profile" in step["run"] for step in boot.plan["steps"])
            with disk.open("r+b") as file:
                file.write(log(boot))

    run = run_builder.begin(home, run_builder.cells(("reiserfs",)))
    modules = SimpleNamespace(closure=lambda names: ())
    kernel = SimpleNamespace(modules=modules, release="6.1", version="6.1-1", key="k")
    image = SimpleNamespace(kernel=kernel, content="c", proof={("reiserfs", "period"): SimpleNamespace(status="ok")})
    guest = partial(ScriptedGuest, says=says, kernel_log="", booted=[])
    launcher = guest(run.cell_directory(0), spec(), CORPUS, run_guests(image, home), None, {})
    program = home / "step-profile"
    program.write_text("a program")
    asked = Profiler(program, told.append) if profiler else None
    end = CellRunner(run, 0, launcher, CellGoals(measure=False), lambda _: None, profiler=asked).carry_out()
    assert not run.transient_files() and {one.metric for one in run.samples()[0]} <= {"throughput_ratio"}
    return end, of_cell(load(run).cells[0]), told


def copied(boot: Boot) -> bytes:
    """The log of the plan's first step."""
    first = boot.plan["steps"][0]
    step = made.step(made.sampled(5, [made.COPY, made.READ]), name=first["name"], repetition=first["repetition"])
    return made.log(step).read()


def test_a_profile_lies_beside_the_cell_and_changes_neither_key_nor_digest(tmp_path: Path) -> None:
    plain, none, _ = carried_out(tmp_path / "a", copied, profiler=False)
    end, found, _ = carried_out(tmp_path / "b", copied)
    assert none is None and found and found.status is Status.OK and found.key.startswith("sha256:")
    assert (end.status, end.inputs_key, end.digest) == (Status.OK, plain.inputs_key, plain.digest)
    [step] = found.steps
    assert (step.samples, step.idle, step.lost) == (1, 0, 0)
    [run] = (tmp_path / "b/runs").glob("*/cells/0/profile")
    assert (run / step.file).read_text() == "cp;ksys_read;copy_page 1\n"


def test_a_profile_that_fails_leaves_the_cell_as_it_is(tmp_path: Path) -> None:
    end, found, _ = carried_out(tmp_path, copied, failing="")
    assert end.status is Status.OK and found
    assert (found.status, found.reason) == (Status.HUNG, "step copy: no end")


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (lambda boot: made.log(made.step(name="other")).read(), "the phase has no step 'other', repetition"),
        (lambda boot: made.log(made.step(b"\x09")).read(), "a record is cut short"),
        (lambda boot: made.log(made.step(symbols=None)).read(), "no symbols of the kernel"),
    ],
)
def test_a_log_that_no_profiler_has_written_fails_the_profile_alone(tmp_path: Path, log: Logs, why: str) -> None:
    end, found, _ = carried_out(tmp_path, log)
    assert end.status is Status.OK and found and found.status is Status.FAILED and why in (found.reason or "")
