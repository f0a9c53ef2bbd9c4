"""A cell's verdict, its inputs, and what is unsupported."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agelab.image import Image
from agelab.kernel import MissingModule
from agelab.model.event import Ended, StepFailed
from agelab.model.result import Status
from agelab.results.rundir import RunDirectory
from agelab.run import boots
from agelab.run.boots import Machine
from agelab.run.cell import CellRunner, Wanted, misses
from agelab.run.inputs import guest_command
from agelab.run.verdict import Verdict, verdict
from agelab.store import Store
from agelab.vm.hypervisor import Ending, Hypervisor
from tests.unit.test_scenario import CORPUS, spec

OK = Ended(event="end", status="ok", reason=None)
HUNG = Ended(event="end", status="hung", reason="step x, repetition 1: no end within 5 s of guest time")
FAILED = StepFailed(event="failed", step="fill", repetition=2, status=1, said="alas")
# As 6.1 writes it when /proc/sysrq-trigger is given a c.
PANIC = "[   16.1] sysrq: Trigger a crash\n[   16.2] Kernel panic - not syncing: sysrq triggered crash\n"
OOPS = "[   16.1] BUG: kernel NULL pointer dereference, address: 0\n" + PANIC


@pytest.mark.parametrize(
    ("ending", "ended", "failures", "console", "expected"),
    [
        (Ending.STOPPED, OK, [], "", Verdict(Status.OK)),
        (Ending.STOPPED, HUNG, [], "", Verdict(Status.HUNG, HUNG.reason)),
        (
            Ending.STOPPED, None, [], PANIC,
            Verdict(Status.PANICKED, "Kernel panic - not syncing: sysrq triggered crash"),
        ),
        (
            Ending.STOPPED, None, [], OOPS,
            Verdict(
                Status.PANICKED,
                "Kernel panic - not syncing: sysrq triggered crash (BUG: kernel NULL pointer dereference, address: 0)",
            ),
        ),
        (Ending.STOPPED, OK, [FAILED], "", Verdict(Status.FAILED, "step fill, repetition 2, exited 1: alas")),
        (
            Ending.STOPPED, OK, [FAILED, FAILED], "",
            Verdict(Status.FAILED, "step fill, repetition 2, exited 1: alas; 1 more steps failed"),
        ),
        (Ending.WATCHDOG, None, [], "", Verdict(Status.HUNG, "the watchdog fired: nothing ran in the guest any more")),
        (
            Ending.TIMEOUT, None, [], "",
            Verdict(Status.INTERRUPTED, "the host's patience ended before the guest's work did"),
        ),
        (
            Ending.CRASHED, None, [], "",
            Verdict(Status.INTERRUPTED, "QEMU ended by itself; a full host filesystem does that"),
        ),
        (
            Ending.STOPPED, None, [], "agelab init: cannot mount the root\n",
            Verdict(
                Status.FAILED,
                "the guest stopped without a word from the harness: agelab init: cannot mount the root",
            ),
        ),
    ],
)  # fmt: skip
def test_the_verdict(
    ending: Ending, ended: Ended | None, failures: list[StepFailed], console: str, expected: Verdict
) -> None:
    assert verdict(ending, ended, failures, console) == expected


def _runner(tmp_path: Path, image: object) -> CellRunner:
    run = RunDirectory.create(tmp_path, "aging")
    nobody = cast(Hypervisor, None)  # an unsupported cell starts no guest
    machine = Machine(run.cell(0), spec(), cast(Image, image), CORPUS, nobody, Path("clock.so"), None, {})
    return CellRunner(run, 0, machine, Wanted(), Store(tmp_path), print)


@pytest.mark.parametrize(
    ("available", "wanted", "expected"),
    [
        (6_082_961_408, 6_081_740_800, False),  # what fedorchuk-2008's ext2 found at paper scale
        (6_085_961_408, 6_081_740_800, True),
        (22 << 20, 22 << 20, False),
        ((22 << 20) + 300_000, 22 << 20, True),
        ((22 << 20) - 300_000, 22 << 20, True),
    ],
)
def test_memory_may_miss_the_plans_by_a_little(available: int, wanted: int, expected: bool) -> None:
    assert misses(available, wanted) == expected


def test_a_module_that_the_kernel_lacks_makes_the_cell_unsupported(tmp_path: Path) -> None:
    def closure(names: list[str]) -> Any:
        raise MissingModule("reiserfs", "7.2")

    image = SimpleNamespace(kernel=SimpleNamespace(modules=SimpleNamespace(closure=closure)))
    end = _runner(tmp_path, image).carry_out()
    assert (end.status, end.reason) == (Status.UNSUPPORTED, "kernel 7.2 has no module reiserfs")
    assert end.inputs_key is None and end.digest is None


def test_a_disk_too_small_for_the_filesystem_makes_the_cell_unsupported(tmp_path: Path) -> None:
    image = SimpleNamespace(kernel=SimpleNamespace(modules=SimpleNamespace(closure=lambda names: ())))
    runner = _runner(tmp_path, image)
    small = replace(runner.machine, spec=replace(runner.machine.spec, shrink=1000))
    end = replace(runner, machine=small).carry_out()
    assert (end.status, end.reason) == (
        Status.UNSUPPORTED,
        "reiserfs needs 41943040 bytes of disk, the cell has 8388608",
    )


@pytest.mark.parametrize(
    "status, reason, expected",
    [
        ("failed", "mount: wrong fs type", "the image's proof failed: mount: wrong fs type"),
        ("unsupported", "kernel 6.1 was built without it", "kernel 6.1 was built without it"),
    ],
)
def test_without_a_proof_the_cell_is_unsupported(
    tmp_path: Path, status: str, reason: str, expected: str
) -> None:
    proof = SimpleNamespace(status=status, reason=reason)
    kernel = SimpleNamespace(modules=SimpleNamespace(closure=lambda names: ()))
    image = SimpleNamespace(kernel=kernel, proof={("reiserfs", "period"): proof})
    end = _runner(tmp_path, image).carry_out()
    assert (end.status, end.reason) == (Status.UNSUPPORTED, expected)


def test_the_command_in_the_key_has_neither_this_hosts_paths_nor_libvirts_own() -> None:
    command = [
        "/usr/bin/qemu-system-x86_64", "-name", "guest=agelab-1,debug-threads=on", "-S",
        "-object", '{"qom-type":"secret","id":"masterKey0","file":"/var/lib/x"}', "-m", "256",
        "-chardev", "socket,id=charmonitor,path=/run/x,server=on", "-mon", "chardev=charmonitor",
        "-uuid", "aaaa", "-kernel", "/home/me/store/image/k/vmlinux", "-uuid", "bbbb",
        "-object", "memory-backend-file,id=disk2,mem-path=/home/me/store/cell/disk", "-sandbox", "on",
    ]  # fmt: skip
    places = {"cell": Path("/home/me/store/cell"), "image": Path("/home/me/store/image/k")}
    assert guest_command(command, places) == [
        "/usr/bin/qemu-system-x86_64", "-S", "-m", "256", "-kernel", "{image}/vmlinux", "-uuid", "bbbb",
        "-object", "memory-backend-file,id=disk2,mem-path={cell}/disk",
    ]  # fmt: skip


def heard_of(*lines: str) -> boots.Heard:
    heard = boots.Heard()
    for line in lines:
        boots._hear(line, "", heard, lambda sample: None, lambda step: None)
    return heard


STEP_LINE = '{"event":"step","step":"copy","repetition":%d}'


@pytest.mark.parametrize(
    ("lines", "lost"), [((1, 2, 3), False), ((1, 3), True), ((), True), ((1, 2, 2, 3), False)]
)
def test_lines_that_the_host_has_lost_are_noticed(lines: tuple[int, ...], lost: bool) -> None:
    heard = heard_of(*(STEP_LINE % number for number in lines), '{"event":"said","lines":3}')
    assert heard.lost is lost
    ending = Ending.LOST if lost else Ending.STOPPED
    found = verdict(ending, OK, [], "")
    assert found.status is (Status.INTERRUPTED if lost else Status.OK)
    assert not lost or "was full" in (found.reason or "")
