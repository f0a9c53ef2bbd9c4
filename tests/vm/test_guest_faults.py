"""Faults in the guest, injected for real: each cell gets its status in the kernel's words, and the next one runs."""

import base64
import gzip
import json
import os
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

import pytest

from agelab import kernel as kernels
from agelab.base import process
from agelab.cli.options import open_store
from agelab.machine.drive import module
from agelab.machine.vm import libvirt_daemon
from tests.vm.cells import PROGRAM, agelab, newest, run, runs, scenario, step
from tests.vm.chaos import faults, ran

pytestmark = pytest.mark.vm

SOURCES = Path(__file__).with_name("trouble")


@cache
def insert() -> str:
    """Shell that loads the module of trouble/ into the guest's kernel, behind which ``how=`` follows."""
    store = open_store()
    built = module.obtain(kernels.resolve(kernels.DEFAULT, store), store, sources=SOURCES)
    text = base64.b64encode(gzip.compress(built.read_bytes(), mtime=0)).decode()
    return f"echo {text} | base64 -d | gzip -d > /run/trouble.ko; insmod /run/trouble.ko how="


RECOGNISED = 10
"""Host seconds from a kernel's last word to the cell's end record, at most."""
OUT_OF_MEMORY = "head -c 1G /dev/zero | tail || true"
CORRUPT = "echo badness | tee /sys/fs/ext4/*/trigger_fs_error"


def test_faults_are_named_by_the_kernel_and_the_next_cell_runs(tmp_path: Path) -> None:
    commands = {
        "oops": insert() + "oops",
        "broken": CORRUPT,
        "memory": OUT_OF_MEMORY,
        "frozen": "sync; fsfreeze -f .; touch new",
        "stuck": "sleep 100000",
        "unlucky": "echo no luck >&2; false",
        "good": "true",
    }
    path = faults(tmp_path, commands)
    cells = ran(path)
    assert {name: cell["status"] for name, cell in cells.items()} == {
        "oops": "panicked", "broken": "failed", "memory": "failed", "frozen": "hung", "stuck": "hung",
        "unlucky": "failed", "good": "ok",
    }  # fmt: skip
    reasons = {name: cell["reason"] for name, cell in cells.items() if cell["reason"]}
    within = "step fault, repetition 1: "
    assert reasons.pop("unlucky") == "step fault, repetition 1, exited 1: no luck"
    assert "after" in {sample["step"] for sample in cells["unlucky"]["samples"]}
    assert all(reason.startswith(within) for reason in reasons.values()), reasons
    assert reasons["stuck"].startswith(f"{within}no end within 20 s of guest time; its tasks: ")
    assert "sleep (S, hrtimer_nanosleep)" in reasons["stuck"]
    assert reasons["oops"].startswith(f"{within}Kernel panic - not syncing: Fatal exception (BUG: kernel NULL")
    assert "; in trouble_oops+0x" in reasons["oops"]
    assert reasons["broken"].startswith(f"{within}the filesystem has given up: EXT4-fs error (device dm-0): ")
    assert reasons["memory"].startswith(f"{within}out of memory: none was left for ")
    assert reasons["frozen"].startswith(f"{within}no end within 20 s of guest time; blocked: touch (D, ")
    [blocked] = [task for task in cells["frozen"]["stuck"] if task["state"] == "D"]
    assert blocked["name"] == "touch" and any("mnt_want_write" in call for call in blocked["stack"])
    assert all(cell["digest"] for cell in cells.values())  # the guest's time has decided where each ended
    [*_, directory] = sorted(runs(path))
    [oops] = directory.glob("cells/0/console-0.log")
    assert "Kernel panic - not syncing" in oops.read_text()
    assert (oops.parent / "end.json").stat().st_mtime - oops.stat().st_mtime < RECOGNISED


@pytest.mark.full
def test_further_faults_are_named(tmp_path: Path) -> None:
    commands = {
        "bug": insert() + "bug",
        "lockup": "echo 1 > /proc/sys/kernel/watchdog_thresh; " + insert() + "spin",
        "halted": insert() + "freeze",
        "raised": "umount -l /run/agelab/said; rm -rf /run/agelab",
        "full": "head -c 100M /dev/zero > big",
        "readonly": "mount -o remount,ro .",
        "emergency": "echo u > /proc/sysrq-trigger; sleep 1",
        "shut": 'python3 -c \'import fcntl,os; fcntl.ioctl(os.open(".", 0), 0x8004587D, b"\\2\\0\\0\\0")\'',
        "good": "true",
    }
    cells = ran(faults(tmp_path, commands))
    found = {name: (cell["status"], cell["reason"] or "") for name, cell in cells.items()}
    within = "step fault, repetition 1: "
    panic = f"{within}Kernel panic - not syncing: "
    expected = {
        "bug": ("panicked", f"{panic}Fatal exception (kernel BUG at /build/trouble.c:"),
        "lockup": ("panicked", f"{panic}softlockup: hung tasks (BUG: soft lockup - CPU#0 stuck for "),
        "halted": ("hung", f"{within}the watchdog fired: nothing ran in the guest any more"),
        "raised": ("failed", "harness: FileNotFoundError("),
        "full": ("failed", "disk full in the guest: step fault, repetition 1, exited 1: head: "),
        "readonly": ("failed", f"{within}the disk under test is mounted read-only"),
        "emergency": ("failed", f"{within}the disk under test is mounted read-only"),
        "shut": ("failed", f"{within}the filesystem has given up: EXT4-fs (dm-0): shut down requested"),
        "good": ("ok", ""),
    }
    for name, (status, reason) in expected.items():
        assert found[name][0] == status and found[name][1].startswith(reason), (name, found[name])
    assert "in trouble_spin+0x" in found["lockup"][1] and "in trouble_bug+0x" in found["bug"][1]


USE = "ls -lR . > /dev/null; cat data/*/* > /dev/null; touch new; rm -rf data; sync"


def overwritten(size: str, first: str = "0", byte: int = 0) -> str:
    """Shell that fills so much of the mounted disk with one byte, from there on, and then uses it."""
    garbage = (
        f"tr '\\0' '\\{byte:o}' < /dev/zero | head -c {size} | "
        f"dd of=$DEVICE bs=4K seek={first} iflag=fullblock oflag=seek_bytes"
    )
    return f'cp -r "$SOURCE/." data; sync; {garbage}; sync; echo 3 > /proc/sys/vm/drop_caches; {USE}'


GIVES_UP = {
    "xfs": "xfs_io -x -c shutdown .",
    "btrfs": overwritten("40M"),
    "jfs": overwritten("40M"),
    "reiserfs": overwritten("8M", first="32M"),  # its journal, which lies before, would be missed with an oops
    "vfat": overwritten("80K", first="16K", byte=0xF0),  # of its table: each cluster leads beyond the last one
}
WORDS = {
    "xfs": "XFS (dm-0): User initiated shutdown",
    "btrfs": "BTRFS",
    "jfs": "ERROR: (device dm-0): ",
    "reiserfs": "REISERFS error (device dm-0): ",
    "vfat": "FAT-fs (dm-0): ",
}


@pytest.mark.full
@pytest.mark.parametrize("filesystem", GIVES_UP)
def test_a_filesystem_that_gives_up_fails_its_cell_though_its_steps_succeed(tmp_path: Path, filesystem: str) -> None:
    command = f"({GIVES_UP[filesystem]}) 2> /dev/null || true"
    steps = step("before", "true") + step("fault", command) + step("after", "true")
    path = scenario(tmp_path, steps, filesystem)
    [cell] = run(str(path), code=1)
    assert cell["status"] == "failed"
    assert "step fault, repetition 1: the filesystem has given up: " + WORDS[filesystem] in cell["reason"]


@pytest.mark.full
def test_a_guest_that_somebody_paused_is_interrupted_and_never_hung(tmp_path: Path) -> None:
    path = scenario(tmp_path, step("quick", "true") + step("long", "while :; do :; done", "deadline = 1e6"))
    before = runs(path)
    child = subprocess.Popen(
        [PROGRAM, "run", str(path)],
        env={**os.environ, "AGELAB_PATIENCE": "90"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 90
        while not any(
            '"long"' in file.read_text() for one in runs(path) - before for file in one.glob("cells/0/events-0*")
        ):
            assert time.monotonic() < until
            time.sleep(0.2)
        [directory] = runs(path) - before
        name = ElementTree.fromstring((directory / "cells/0/domain-0.xml").read_text()).findtext("name")
        process.run(["virsh", "--connect", libvirt_daemon.uri(), "suspend", str(name)])
        assert child.wait(timeout=200) == 1
    finally:
        child.terminate()
    [cell] = json.loads(agelab("show", directory.name, "--json").stdout)["cells"]
    assert (cell["status"], cell["digest"]) == ("interrupted", None)
    assert cell["reason"] == "the guest was paused by somebody on the host until the host's patience ended"
    assert "quick" in {sample["step"] for sample in cell["samples"]}


SAMPLE = '{"event":"sample","step":"x","repetition":1,"metric":"m","value":1,"unit":"s"}'
MEMORY = 400 << 20
"""Bytes that agelab may hold at most, whatever its guests say; 120 MiB are Python and its libraries."""


@pytest.mark.full
def test_a_flood_ends_its_guest_and_takes_no_memory(tmp_path: Path) -> None:
    """Garbage before it loses no sample."""
    commands = {
        "garbage": "printf '\\377\\033[2J{\"event\":' > /dev/ttyS1",
        "zeros": "cat /dev/zero > /dev/ttyS1",
        "samples": f"yes '{SAMPLE}' > /dev/ttyS1",
        "console": "yes > /dev/ttyS0",
        "good": "true",
    }
    path = faults(tmp_path, commands, deadline=100_000)
    child = os.posix_spawn(PROGRAM, [PROGRAM, "run", str(path)], os.environ)
    _, status, usage = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    listed = json.loads(agelab("show", newest(path).name, "--json").stdout)["cells"]
    cells = {cell["variant"]: cell for cell in listed}
    peak = usage.ru_maxrss << 10
    for name in ("zeros", "samples", "console"):
        cell = cells[name]
        assert (cell["status"], cell["digest"]) == ("failed", None), cell["reason"]
        words = (
            "an event came that the harness did not write, or not at this place: {"
            if name == "samples"
            else "the guest wrote more to its console or its events than any work of a cell does"
        )
        assert cell["reason"].startswith(f"step fault, repetition 1: {words}")
    assert cells["garbage"]["status"] == cells["good"]["status"] == "ok"
    places = [{(one["step"], one["metric"]) for one in cells[name]["samples"]} for name in ("garbage", "good")]
    assert places[0] == places[1]
    assert peak < MEMORY, f"{peak >> 20} MiB"


@pytest.mark.full
def test_of_two_hundred_cells_exactly_those_are_marked_that_panic_or_hang(tmp_path: Path) -> None:
    kinds = {4: "panic", 9: "hang"}
    cells = {f"v{number:03d}": kinds.get(number % 10, "good") for number in range(200)}
    commands = {"panic": "echo c > /proc/sysrq-trigger", "hang": "sleep 100000", "good": "true"}
    found = ran(faults(tmp_path, commands, cells), "--jobs", "2")
    ends = {"good": "ok", "panic": "panicked", "hang": "hung"}
    assert {name: cell["status"] for name, cell in found.items()} == {name: ends[kind] for name, kind in cells.items()}
    for kind in ends:  # cells that differ in their names alone have the same digits
        assert len({found[name]["digest"] for name, own in cells.items() if own == kind}) == 1
