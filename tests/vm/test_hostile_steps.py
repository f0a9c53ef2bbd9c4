"""Steps that mean ill: none forges a result, none takes longer than its limits, and the next cell runs."""

import json
from pathlib import Path

import pytest

from tests.vm.cells import newest
from tests.vm.chaos import faults, ran

pytestmark = pytest.mark.vm

SAMPLE = '{"event":"sample","step":"fault","repetition":1,"metric":"elapsed","value":0.001,"unit":"s"}'
END = '{"event":"end","status":"ok","reason":null}'
TO_PORT = """python3 -c '
import sys
port = open("/dev/port", "r+b", buffering=0)
for one in b"\\n" + sys.argv[1].encode() + b"\\n":
    port.seek(0x2F8)
    port.write(bytes([one]))
' """
"""Writes to the second serial line's port (the kernel's driver knows nothing of it)."""
ENDED = 150
"""Host seconds that such a step costs, at most: the watchdog's minute of guest time, on a busy host."""
WITHOUT_MEMORY = (
    ("failed", "step fault, repetition 1: out of memory: none was left"),
    ("hung", "step fault, repetition 1: the watchdog fired: nothing ran in the guest any more"),
)
"""Status and reason, up to the program's name, of a cell whose guest has no memory left."""
LOOK = """(: < /proc/1/mem) && exit 1
[ ! -e /run/agelab/secret ]
"""
KERNEL_LOOKS = r"""
printf '#!/bin/sh\ntouch /run/ran; exec 3< /proc/1/mem && touch /run/seen\n' > /run/look
chmod +x /run/look
echo '|/run/look' > /proc/sys/kernel/core_pattern
sh -c 'kill -SEGV $$' || true
sleep 1
[ -e /run/ran ] && [ ! -e /run/seen ]
"""
"""Has the kernel start a program that looks into the harness's memory."""


def test_no_step_writes_events_of_its_own(tmp_path: Path) -> None:
    commands = {
        "device": f"echo '{SAMPLE}' > /dev/ttyS1",
        "node": f"mknod /run/line c 4 65; echo '{SAMPLE}' > /run/line",
        "port": f"{TO_PORT} '{SAMPLE}'",
        "ending": f"printf '\\n%s\\n' '{END}' > /dev/ttyS1; sleep 1; echo o > /proc/sysrq-trigger; sleep 9",
        "memory": f"({LOOK}) 2> /dev/null",
        "kernel": KERNEL_LOOKS,
        "good": "true",
    }
    cells = ran(faults(tmp_path, commands))
    honest = {(one["step"], one["metric"]): one["value"] for one in cells["good"]["samples"]}
    foreign = "step fault, repetition 1: an event came that the harness did not write, or not at this place: {"
    for name in ("device", "node", "port", "ending"):
        assert cells[name]["status"] == "failed" and cells[name]["reason"].startswith(foreign), cells[name]
        assert cells[name]["digest"]
        found = [(one["step"], one["metric"]) for one in cells[name]["samples"]]
        assert len(found) == len(set(found)) and set(found) <= set(honest)
        assert 0.001 not in [one["value"] for one in cells[name]["samples"] if one["metric"] == "elapsed"]
    for name in ("memory", "kernel", "good"):
        assert cells[name]["status"] == "ok", cells[name]["reason"]


def test_no_step_takes_the_guest_with_it(tmp_path: Path) -> None:
    commands = {
        "bomb": "bomb() { bomb | bomb; }; bomb",
        "orphans": "bomb() { bomb & bomb & }; bomb; sleep 1000",
        "shared": "head -c 1G /dev/zero > /dev/shm/file || true",
        "root": "head -c 1G /dev/zero > /tmp/file",
        "errors": "head -c 100M /dev/zero >&2",
        "unsaid": "head -c 100M /dev/zero >&2 || true",
        "good": "true",
    }
    path = faults(tmp_path, commands, deadline=600)
    cells = ran(path)
    found = {name: (cell["status"], (cell["reason"] or "").split(" for ")[0]) for name, cell in cells.items()}
    without, busy = WITHOUT_MEMORY
    assert found["bomb"] == found["orphans"] == without, found
    # Of files in RAM nothing can be taken back, so the kernel takes programs' pages from each other.
    assert found["shared"] in {without, busy}, found
    assert cells["root"]["reason"].startswith(
        "step fault, repetition 1, exited 1: /tmp and the rest of the root, 8388608 bytes of memory, were full: head: "
    )
    assert cells["errors"]["status"] == "failed"
    assert cells["errors"]["reason"].startswith(
        "step fault, repetition 1, exited 1: it said more than the 8388608 bytes that are kept, which end:"
    )
    for name in ("errors", "unsaid", "root", "good"):
        assert "after" in {sample["step"] for sample in cells[name]["samples"]}
    assert cells["unsaid"]["status"] == cells["good"]["status"] == "ok"
    assert all(cell["digest"] for cell in cells.values())
    ends = [newest(path) / "cells" / str(number) / "end.json" for number in range(len(commands))]
    taken = [json.loads(end.read_text())["host_seconds"] for end in ends]
    assert max(taken) - taken[-1] < ENDED, taken


@pytest.mark.full
def test_a_step_that_fills_run_or_interrupts_the_harness_is_named(tmp_path: Path) -> None:
    commands = {
        "filled": "head -c 1G /dev/zero > /run/agelab/file || true",
        "interrupted": "kill -INT 1; sleep 10",
        "good": "true",
    }
    cells = ran(faults(tmp_path, commands, deadline=600))
    filled, interrupted = cells["filled"], cells["interrupted"]
    assert (filled["status"], filled["reason"].split(" for ")[0]) in WITHOUT_MEMORY
    assert interrupted["status"] == "panicked" and "Attempted to kill init!" in interrupted["reason"]
    assert interrupted["reason"].endswith("has ended; it raised KeyboardInterrupt)")
    assert cells["good"]["status"] == "ok" and all(cell["digest"] for cell in cells.values())
