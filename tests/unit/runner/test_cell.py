"""A cell's verdict, its inputs, and what is unsupported."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agelab.base.errors import InputError
from agelab.evaluate import event_code
from agelab.evaluate.boot_events import BootEvents
from agelab.evaluate.cell_status import CellStatus, judge_boot
from agelab.kernel import MissingModule
from agelab.machine.vm import domain
from agelab.machine.vm.guest import MemoryDisk
from agelab.results.result import CellEnded, Ending, RebootRequested, Sample, Status, StepFailed, StuckTask
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.cell import CellRunner
from agelab.runner.execute.cell_parts import GuestSlots
from agelab.runner.execute.guests import GuestLauncher, boot_timeout
from agelab.runner.execute.phases import CellBoots, CellGoals, memory_is_off
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.cell_inputs import guest_command
from agelab.runner.plan.guest_plan import FIRST_BOOT, Boot
from tests.build.cell_builder import CORPUS, OK, ScriptedGuest, run_guests, spec

GIB = 1 << 30
HUNG = CellEnded(event="end", status="hung", reason="step x, repetition 1: no end within 5 s of guest time")
FAILED = StepFailed(event="failed", step="fill", repetition=2, status=1, said="alas")
# As 6.1 writes it when /proc/sysrq-trigger is given a c.
PANIC = "[   16.1] sysrq: Trigger a crash\n[   16.2] Kernel panic - not syncing: sysrq triggered crash\n"
OOPS = "[   16.1] BUG: kernel NULL pointer dereference, address: 0\n" + PANIC


EXITED = "step fill, repetition 2, exited"
SILENT = "it printed nothing to its error output"
PANICKED = "Kernel panic - not syncing: sysrq triggered crash"


@pytest.mark.parametrize(
    ("ending", "ended", "failures", "console", "status", "reason"),
    [
        (Ending.STOPPED, OK, [], "", Status.OK, None),
        (Ending.STOPPED, HUNG, [], "", Status.HUNG, HUNG.reason),
        (Ending.STOPPED, None, [], PANIC, Status.PANICKED, PANICKED),
        (Ending.STOPPED, None, [], OOPS, Status.PANICKED,
         f"{PANICKED} (BUG: kernel NULL pointer dereference, address: 0)"),
        (Ending.STOPPED, OK, [FAILED], "", Status.FAILED, f"{EXITED} 1: alas"),
        (Ending.STOPPED, OK, [FAILED, FAILED], "", Status.FAILED, f"{EXITED} 1: alas; 1 more step failed"),
        (Ending.STOPPED, OK, [FAILED.model_copy(update={"said": ""})], "", Status.FAILED,
         f"{EXITED} 1: {SILENT} (where 1 is no failure, the step says expect = [0, 1])"),
        (Ending.STOPPED, OK, [FAILED.model_copy(update={"said": "", "status": 137})], "", Status.FAILED,
         f"{EXITED} 137: {SILENT}"),
        (Ending.WATCHDOG, None, [], "", Status.HUNG, "the watchdog fired: nothing ran in the guest any more"),
        (Ending.TIMEOUT, None, [], "", Status.INTERRUPTED, "the host's patience ended before the guest's work did"),
        (Ending.SILENT, None, [], "", Status.INTERRUPTED, "QEMU hung before the guest's kernel said a word"),
        (Ending.CRASHED, None, [], "", Status.INTERRUPTED,
         "QEMU was killed, or ended by itself; a full host filesystem does that"),
        (Ending.STOPPED, None, [], "agelab init: cannot mount the root\n", Status.FAILED,
         "the guest stopped, and its harness said nothing: agelab init: cannot mount the root"),
    ],
)  # fmt: skip
def test_the_verdict(
    ending: Ending,
    ended: CellEnded | None,
    failures: list[StepFailed],
    console: str,
    status: Status,
    reason: str | None,
) -> None:
    assert judge_boot(ending, ended, failures, console) == CellStatus(status, reason)


GONE = (r"EXT4-fs error \(device [^)]*\): ", r"EXT4-fs \([^)]*\): Remounting filesystem read-only")
BROKEN = "[   17.0] EXT4-fs error (device dm-0): trigger_test_error:126: comm sh: badness\r\n"
KILLED = "[   17.1] Out of memory: Killed process 305 (cc1) total-vm:1kB, anon-rss:1kB\r\n"
STUCK = StuckTask(pid=7, name="sync", state="D", waits_in="wb_wait_for_completion", stack=("a+0x1/0x2",))


def test_a_panic_says_where_its_first_trouble_was() -> None:
    console = (
        "[ 16.1] BUG: kernel NULL pointer dereference, address: 0000000000000008\r\n"
        "[ 16.2] RIP: 0010:trouble_oops+0x7/0x13 [trouble]\r\n"
        "[ 16.3] RIP: 0033:0x7ffff7d0\r\n"
        "[ 16.4] Kernel panic - not syncing: Fatal exception\r\n"
    )
    found = judge_boot(Ending.STOPPED, None, [], console, during="step x, repetition 1")
    assert found == CellStatus(
        Status.PANICKED,
        "step x, repetition 1: Kernel panic - not syncing: Fatal exception (BUG: kernel NULL pointer dereference, "
        "address: 0000000000000008; in trouble_oops+0x7/0x13 [trouble])",
    )


def test_a_harness_that_ends_is_named_with_what_it_raised() -> None:
    console = (
        "Traceback (most recent call last):\r\n"
        '  File "/run/agelab/start", line 14, in <module>\r\n    main()\r\n'
        "json.decoder.JSONDecodeError: Expecting value\r\n"
        "[ 16.4] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100\r\n"
    )
    found = judge_boot(Ending.STOPPED, None, [], console)
    assert found.status is Status.PANICKED and found.reason
    assert found.reason.endswith(
        "(the harness, the guest's first process, has ended; it raised json.decoder.JSONDecodeError: Expecting value)"
    )


def test_a_mount_that_the_kernel_refuses_has_its_reason() -> None:
    refused = CellEnded(event="end", status="failed", reason="mount failed (exit 32): mount: /mnt: bad option")
    said = "[   15.06] EXT4-fs (dm-0): can't mount with data=, fs mounted w/o journal\r\n"
    found = judge_boot(Ending.STOPPED, refused, [], said + "[   15.07] reboot: Power down\r\n")
    assert found.reason == (
        f"{refused.reason}; the kernel: EXT4-fs (dm-0): can't mount with data=, fs mounted w/o journal"
    )
    silent = judge_boot(Ending.STOPPED, refused, [], "[   15.07] reboot: Power down\r\n")
    assert silent.reason == refused.reason


@pytest.mark.parametrize(
    ("ended", "console", "status", "reason"),
    [
        (OK, BROKEN, Status.FAILED, "the filesystem has given up: EXT4-fs error (device dm-0)"),
        (OK, KILLED, Status.FAILED, "out of memory: the kernel ended cc1 (process 305)"),
        (None, BROKEN, Status.FAILED, "the guest stopped, and its harness said nothing: the filesystem"),
        (OK, "[ 1.0] EXT4-fs (dm-0): mounted filesystem\r\n", Status.OK, ""),
    ],
)
def test_what_the_kernel_says_counts_whatever_the_harness_says(
    ended: CellEnded | None, console: str, status: Status, reason: str
) -> None:
    found = judge_boot(Ending.STOPPED, ended, [], console, gone=GONE)
    assert found.status is status and (found.reason or "").startswith(reason)


def test_what_the_harness_heard_too_is_said_once() -> None:
    reason = "step x, repetition 1: out of memory: the kernel ended cc1 (process 305)"
    ended = CellEnded(event="end", status="failed", reason=reason)
    assert judge_boot(Ending.STOPPED, ended, [], KILLED) == CellStatus(Status.FAILED, reason)


def test_a_full_disk_is_named() -> None:
    said = "cp: error writing 'x': No space left on device"
    failed = StepFailed(event="failed", step="copy", repetition=1, status=1, said=said)
    found = judge_boot(Ending.STOPPED, OK, [failed], "")
    assert found.reason == f"disk full in the guest: step copy, repetition 1, exited 1: {said}"
    said = f"/tmp and the rest of the root, 8388608 bytes of memory, were full: {said}"
    failed = StepFailed(event="failed", step="copy", repetition=1, status=1, said=said)
    found = judge_boot(Ending.STOPPED, OK, [failed], "")
    assert found.reason == f"step copy, repetition 1, exited 1: {said}"


def test_a_hung_step_has_its_tasks_and_the_watchdog_names_the_step() -> None:
    hung = CellEnded(event="end", status="hung", reason="step x", stuck=(STUCK,))
    assert judge_boot(Ending.STOPPED, hung, [], "").stuck == (STUCK,)
    found = judge_boot(Ending.WATCHDOG, None, [], "", during="step spin, repetition 3")
    assert found.reason == "step spin, repetition 3: the watchdog fired: nothing ran in the guest any more"


NO_MEMORY = "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled\r\n[   16.2] CPU: 0 "


@pytest.mark.parametrize(
    ("console", "reason"),
    [
        (f"{NO_MEMORY}PID: 122 Comm: tail -x Tainted: G           OE      6.1.0-56-amd64 #1",
         " for tail -x (process 122)"),
        (f"{NO_MEMORY}UID: 0 PID: 7 Comm: sh Not tainted 6.12.1 #1", " for sh (process 7)"),
        (f"{NO_MEMORY}PID: 107 Comm: start Not tainted 6.1.0 #1", " for the harness"),
        ("Kernel panic - not syncing: System is deadlocked on memory", ""),
    ],
)  # fmt: skip
def test_a_guest_without_memory_has_failed_and_not_panicked(console: str, reason: str) -> None:
    console, reason = f"[   16.2] {console}\r\n", f"out of memory: none was left{reason}"
    found = judge_boot(Ending.STOPPED, None, [], console, during="step x, repetition 1")
    files = "; files in /tmp, /dev/shm and /run lie in it, too"
    assert found == CellStatus(Status.FAILED, f"step x, repetition 1: {reason}{files}")


def test_where_a_flood_was_ended_is_the_hosts_time() -> None:
    found = judge_boot(Ending.OUTPUT_TOO_LARGE, OK, [], "")
    assert found.status is Status.FAILED and not found.repeatable


@pytest.mark.parametrize("ending", [Ending.TIMEOUT, Ending.PAUSED, Ending.CRASHED])
def test_what_the_host_did_only_interrupts(ending: Ending) -> None:
    assert judge_boot(ending, None, [], "", during="step x").status is Status.INTERRUPTED


def _runner(
    tmp_path: Path, image: object, guest: Callable[..., GuestLauncher] = GuestLauncher, *, measure: bool = True
) -> CellRunner:
    run = RunDirectory.create(tmp_path, "aging")
    machine = guest(run.cell_directory(0), spec(), CORPUS, run_guests(image, tmp_path), None, {})
    return CellRunner(run, 0, machine, CellGoals(measure=measure), print)


def _image(**proof: str) -> SimpleNamespace:
    """An image whose kernel has every module, with that proof of reiserfs."""
    modules = SimpleNamespace(closure=lambda names: ())
    kernel = SimpleNamespace(modules=modules, release="6.1", version="6.1-1", key="k")
    proofs = {("reiserfs", "period"): SimpleNamespace(**proof)} if proof else {}
    artefact = SimpleNamespace(directory=Path("/agelab/image"))
    return SimpleNamespace(kernel=kernel, content="c", proof=proofs, artefact=artefact)


def carried_out(
    tmp_path: Path, says: Callable[[Boot, BootEvents], None], console: str = ""
) -> tuple[list[int], Status]:
    """Carry out the making of a cell's disk: the numbers of its boots, and how its end record says it ended."""
    booted: list[int] = []
    guest = partial(ScriptedGuest, says=says, kernel_log=console, booted=booted)
    runner = _runner(tmp_path, _image(status="ok"), guest, measure=False)
    runner.carry_out()
    end = runner.run.end(0)
    assert end and end.inputs_key and not runner.run.transient_files()
    return booted, end.status


@pytest.mark.parametrize(
    ("console", "boots", "status"),
    [
        ("REISERFS (device dm-0): using ordered data mode\r\n", [0, 1], Status.OK),
        ("REISERFS error (device dm-0): vs-5150 search_by_key: invalid format\r\n", [0], Status.FAILED),
        (KILLED, [0], Status.FAILED),
    ],
)
def test_after_a_filesystem_in_trouble_there_is_no_next_boot(
    tmp_path: Path, console: str, boots: list[int], status: Status
) -> None:
    def says(boot: Boot, heard: BootEvents) -> None:
        heard.reboot = None if boot.number else RebootRequested(event="reboot", next=1)
        heard.ended = OK if boot.number else None

    assert carried_out(tmp_path, says, console) == (boots, status)


def test_a_forged_reboot_does_not_boot_for_ever(tmp_path: Path) -> None:
    def says(boot: Boot, heard: BootEvents) -> None:
        assert boot.number < 5
        heard.reboot = RebootRequested(event="reboot", next=1)

    assert carried_out(tmp_path, says) == ([0, 1], Status.FAILED)


@pytest.mark.parametrize("guests", [1, 2, 3])
@pytest.mark.parametrize(
    ("failing", "phases", "mapped"),
    [
        ("", ["", "aged-", "control-", "map-"], ["aged", "control"]),
        ("aged-", ["", "aged-", "control-", "map-"], ["aged", "control"]),
        ("control-", ["", "aged-", "control-", "map-"], ["aged"]),
        ("making", [""], []),
    ],
)
def test_a_cell_goes_on_after_a_failure_with_what_does_not_depend_on_it(
    failing: str, phases: list[str], mapped: list[str], guests: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side with others or not: what runs, and the order of what is measured, is the same."""
    started: list[Boot] = []
    running: list[str] = []
    together: set[str] = set()

    def run(boot: Boot, events: BootEvents, record: Callable[[Sample], None], *_: object) -> Ending:
        started.append(boot)
        running.append(boot.name)
        together.add("+".join(sorted(running)))
        assert len(running) <= guests and all(disk.path.exists() for disk in boot.disks)
        time.sleep(0.3 if boot.name == "aged-" else 0.05)
        step = f"{boot.name or 'making-'}{boot.number}"
        record(Sample(step=step, repetition=1, metric="elapsed", value=1, unit="s"))
        running.remove(boot.name)
        steps, first = boot.plan["steps"], boot.plan["first_step"]
        reboots = [at for at, step in enumerate(steps) if at > first and step["caches"] == "reboot"]
        if (boot.name or "making") == failing:
            events.ended = HUNG
        elif reboots:
            events.reboot = RebootRequested(event="reboot", next=reboots[0])
        else:
            events.ended = OK
        return Ending.STOPPED

    proof = SimpleNamespace(status="ok", reason="")
    kernel = SimpleNamespace(modules=SimpleNamespace(closure=lambda names: ()))
    launcher = SimpleNamespace(
        directory=tmp_path / "cells/0", spec=spec(), corpus=CORPUS,
        guests=run_guests(SimpleNamespace(kernel=kernel, proof={("reiserfs", "period"): proof}), tmp_path),
        module=None, tools={}, run=run, console=lambda boot: "",
        inputs=lambda boot, places: {"plan": boot.plan}, parts=(),
    )  # fmt: skip
    monkeypatch.setattr(cell_inputs, "collect", lambda *_: {})
    run_directory = RunDirectory(tmp_path)
    run_directory.cell_directory(0)
    runner = CellRunner(
        run_directory, 0, cast(GuestLauncher, launcher), CellGoals(), lambda _: None,
        slots=GuestSlots(guests, 1),
    )  # fmt: skip
    end = runner.carry_out()
    measured = [one.step for one in run_directory.samples()[0] if one.step.rpartition("-")[2].isdecimal()]
    assert list(dict.fromkeys(f"{step.rpartition('-')[0]}-" for step in measured)) == ["making-", *phases[1:]]
    assert sorted({boot.name for boot in started}) == sorted(phases)
    assert any("+" in names for names in together) is (guests > 1 and failing != "making")
    if not failing and guests == 3:
        assert "aged-+control-+map-" in together
    assert [fork["name"] for boot in started for fork in boot.plan["maps"]] == mapped
    assert (end.status, end.reason) == ((Status.HUNG, HUNG.reason) if failing else (Status.OK, None))
    assert end.inputs_key and not list(launcher.directory.glob("*disk-*")) + list(launcher.directory.glob("fork-*"))


def test_a_boot_with_fewer_forks_than_planned_has_a_domain_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "domain_xml", lambda guest, *_: str([disk.path.name for disk in guest.disks]))
    image = SimpleNamespace(root=tmp_path, boot_image=tmp_path)
    hypervisor = SimpleNamespace(security_models=())
    launcher = GuestLauncher(tmp_path, spec(), CORPUS, run_guests(image, tmp_path, hypervisor), None, {})
    boots = CellBoots(launcher, CellGoals())
    planned, started = (launcher.guest(boots.mapping(names)) for names in (("aged", "control"), ("aged",)))
    assert launcher._domain_xml(planned) != launcher._domain_xml(started)


def test_guests_of_a_cell_that_run_side_by_side_share_no_name_and_no_file_that_is_removed(tmp_path: Path) -> None:
    image = SimpleNamespace(root=tmp_path, boot_image=tmp_path)
    launcher = GuestLauncher(tmp_path, spec(), CORPUS, run_guests(image, tmp_path), None, {})
    boots = CellBoots(launcher, CellGoals())
    together = [
        *(boots.of_phase(phase, FIRST_BOOT) for phase in boots.phases[1:]), boots.mapping(boots.mapped_forks),
    ]  # fmt: skip
    guests = [launcher.guest(boot) for boot in together]
    assert len({guest.name for guest in guests}) == len(guests) == 3
    written = [{disk.path for disk in guest.disks if disk.written or "empty" in disk.path.name} for guest in guests]
    for files, guest in zip(written, guests, strict=True):
        files |= {guest.console, guest.events, guest.initramfs}
    assert sum(map(len, written)) == len(set().union(*written))


def test_beside_a_disk_of_a_larger_slot_every_file_is_as_long_as_the_slot(tmp_path: Path) -> None:
    """QEMU takes no file that is shorter; what is in the store stays as it is."""
    image = SimpleNamespace(root=tmp_path / "root", boot_image=tmp_path)
    for name, size in (("root", 1), ("stored", GIB), ("small", GIB), ("large", 17 * GIB)):
        (tmp_path / name).write_bytes(b"data")
        os.truncate(tmp_path / name, size)
    shared = run_guests(image, tmp_path)
    shared.__dict__["initramfs_bytes"] = b""
    launcher = GuestLauncher(tmp_path, spec(), CORPUS, shared, None, {})
    disks = (
        MemoryDisk(tmp_path / "stored", GIB, written=False),
        MemoryDisk(tmp_path / "small", GIB, written=True),
        MemoryDisk(tmp_path / "large", 17 * GIB, written=True),
    )
    boot = replace(CellBoots(launcher, CellGoals()).mapping(("aged",)), disks=disks)
    guest, _ = launcher._guest_to_run(boot)
    attached = guest.disks[3:]
    assert {disk.path.stat().st_size for disk in attached} == {disk.size for disk in attached} == {64 * GIB}
    assert [disk.path.name for disk in attached[:3]] == ["map-slot-stored", "small", "large"]
    assert attached[0].path.open("rb").read(4) == b"data"
    assert (tmp_path / "stored").stat().st_size == GIB


def test_the_hosts_patience_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGELAB_PATIENCE", raising=False)
    assert boot_timeout("virtual") == 6 * 3600
    monkeypatch.setenv("AGELAB_PATIENCE", "90")
    assert boot_timeout("virtual") == boot_timeout("wall") == 90
    for wrong in ("0", "-1", "1.5", "soon", "\u0663"):
        monkeypatch.setenv("AGELAB_PATIENCE", wrong)
        with pytest.raises(InputError, match=r"AGELAB_PATIENCE is .* a whole number"):
            boot_timeout("virtual")


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
    assert memory_is_off(available, wanted) == expected


def test_a_module_that_the_kernel_lacks_makes_the_cell_unsupported(tmp_path: Path) -> None:
    def closure(names: list[str]) -> Any:
        raise MissingModule("reiserfs", "7.2")

    image = SimpleNamespace(kernel=SimpleNamespace(modules=SimpleNamespace(closure=closure)))
    end = _runner(tmp_path, image).carry_out()
    assert (end.status, end.reason) == (Status.UNSUPPORTED, "kernel 7.2 has no module reiserfs")
    assert end.inputs_key is None and end.digest is None


def test_a_disk_too_small_for_the_filesystem_makes_the_cell_unsupported(tmp_path: Path) -> None:
    runner = _runner(tmp_path, _image())
    small = replace(runner.launcher, spec=replace(runner.launcher.spec, shrink=1000))
    end = replace(runner, launcher=small).carry_out()
    assert (end.status, end.reason) == (Status.UNSUPPORTED, "reiserfs needs 40 MiB of disk, reiserfs has 8 MiB")


@pytest.mark.parametrize(
    "status, reason, expected",
    [
        ("failed", "mount: wrong fs type", "the image's proof failed: mount: wrong fs type"),
        ("unsupported", "kernel 6.1 was built without it", "kernel 6.1 was built without it"),
    ],
)
def test_without_a_proof_the_cell_is_unsupported(tmp_path: Path, status: str, reason: str, expected: str) -> None:
    end = _runner(tmp_path, _image(status=status, reason=reason)).carry_out()
    assert (end.status, end.reason) == (Status.UNSUPPORTED, expected)


def test_the_command_in_the_key_has_neither_this_hosts_paths_nor_libvirts_own() -> None:
    command = [
        "/usr/bin/qemu-system-x86_64", "-name", "guest=agelab-1,debug-threads=on", "-S",
        "-object", '{"qom-type":"secret","id":"masterKey0","file":"/var/lib/x"}', "-m", "256",
        "-chardev", "socket,id=charmonitor,path=/run/x,server=on", "-mon", "chardev=charmonitor",
        "-uuid", "aaaa", "-kernel", "/home/me/store/image/k/vmlinux", "-uuid", "bbbb", "-m", "size=262144k",
        "-object", "memory-backend-file,id=disk2,mem-path=/home/me/store/cell/disk", "-sandbox", "on",
    ]  # fmt: skip
    places = {"cell": Path("/home/me/store/cell"), "image": Path("/home/me/store/image/k")}
    assert guest_command(command, places) == [
        "/usr/bin/qemu-system-x86_64", "-S", "-kernel", "{image}/vmlinux", "-uuid", "bbbb", "-m", "size=262144k",
        "-object", "memory-backend-file,id=disk2,mem-path={cell}/disk",
    ]  # fmt: skip


SECRET = bytes(range(event_code.SECRET_BYTES))
SAMPLE_LINE = '{"event":"sample","step":"copy","repetition":1,"metric":"elapsed","value":%d,"unit":"s"}'
BEGIN_LINE = '{"event":"begin","step":"copy","repetition":1}'
END_LINE = '{"event":"end","status":"ok","reason":null}'


def heard_of(*lines: str) -> tuple[BootEvents, list[float | None]]:
    """What a boot has heard of these lines, and the values of its samples."""
    events, values = BootEvents(SECRET), list[float | None]()
    for line in lines:
        events.hear(line, "", lambda sample: values.append(sample.value), lambda step: None)
    return events, values


def coded(number: int, text: str, secret: bytes = SECRET) -> str:
    return event_code.encode(number, text, secret)


@pytest.mark.parametrize(("numbers", "lost"), [((1, 2, 3), False), ((1, 3), True), ((2,), True), ((), False)])
def test_lines_that_the_host_has_lost_are_noticed(numbers: tuple[int, ...], lost: bool) -> None:
    heard, values = heard_of(*(coded(number, SAMPLE_LINE % number) for number in numbers))
    assert (heard.lost, heard.foreign, values) == (lost, "", [*numbers])
    ending = Ending.OUTPUT_LOST if lost else Ending.STOPPED
    found = judge_boot(ending, OK, [], "", foreign=heard.foreign)
    assert found.status is (Status.INTERRUPTED if lost else Status.OK)
    assert not lost or "was full" in (found.reason or "")


@pytest.mark.parametrize(
    "line",
    [
        SAMPLE_LINE % 7,
        coded(3, SAMPLE_LINE % 7, bytes(event_code.SECRET_BYTES)),
        coded(3, SAMPLE_LINE % 8).replace(":8,", ":7,"),
        coded(3, SAMPLE_LINE % 7).replace('"line":3', '"line":4'),
        coded(2, SAMPLE_LINE % 1),
        coded(1, BEGIN_LINE),
        END_LINE,
        '{"event":"reboot","next":1}',
    ],
    ids=["bare", "another secret", "altered", "another place", "again", "out of order", "end", "reboot"],
)
def test_an_event_that_the_harness_did_not_write_fails_the_cell(line: str) -> None:
    ours = (coded(1, BEGIN_LINE), coded(2, SAMPLE_LINE % 1), coded(3, SAMPLE_LINE % 2), coded(4, END_LINE))
    for place in (2, 3, 4):
        heard, values = heard_of(*ours[:place], line, *ours[place:])
        assert values == [1, 2] and heard.ended == OK and not (heard.reboot or heard.lost)
        found = judge_boot(Ending.STOPPED, OK, [], "", foreign=heard.foreign)
        assert (found.status, found.repeatable) == (Status.FAILED, True)
        assert (found.reason or "").startswith(
            "step copy, repetition 1: an event came that the harness did not write, or not at this place: {"
        )


@pytest.mark.parametrize("line", ["", "{", '{"event":', "[  1.0] BUG: x", coded(3, "{}"), '{"event":"none"}'])
def test_what_is_no_event_changes_nothing(line: str) -> None:
    heard, values = heard_of(coded(1, SAMPLE_LINE % 1), line, coded(4, SAMPLE_LINE % 4))
    assert (heard.foreign, values) == ("", [1, 4])
