"""Where a guest's harness begins: the boot's plan is read and carried out, then the power goes off."""

import argparse
import os
import time
from pathlib import Path

from harness import machine, plan, plan_disk, saved, watchdog
from harness.boot import Boot, PowerCut
from harness.events import Events
from harness.kernel import Kernel
from harness.step import Place

SAID, AT_LEAST, PART = 16 << 20, 4 << 20, 4
"""Bytes that are kept of what a step says where the plan leaves it all memory; else this part of the memory, at least
so many bytes, which what it writes to the root may take, too."""


def part_of(available: int) -> int:
    """How many bytes in RAM a step may fill in one place, where the first step finds so much memory."""
    return max(AT_LEAST, available // PART)


def _stay() -> None:
    raise PowerCut


def main(arguments: list[str] | None = None) -> None:
    """Run the plan. In a guest it powers off at the end; ``--stay`` leaves the machine as it is."""
    parser = argparse.ArgumentParser(prog="harness")
    parser.add_argument("--plan", type=Path, default=Path("/run/agelab/plan.json"))
    parser.add_argument("--secret", type=Path)
    parser.add_argument("--events", type=Path, default=Path("/dev/ttyS1"))
    parser.add_argument("--mountpoint", type=Path, default=Path("/mnt"))
    parser.add_argument("--scratch", type=Path, default=Path("/run/agelab"))
    parser.add_argument("--stay", action="store_true")
    options = parser.parse_args(arguments)
    secret = options.secret.read_bytes() if options.secret else _arrive(options.scratch)
    events = Events.open(options.events, secret)
    todo = plan.read(options.plan)
    guarded, kernel = False, None
    if not options.stay:
        if todo.booted_at is not None:
            machine.set_date(todo.booted_at)
        machine.seed_random(bytes.fromhex(todo.entropy))
        machine.stay_in_memory()
        guarded = watchdog.start()
        kernel = Kernel.listen(todo.gone)
    events.emit(
        "ready", boot=todo.boot, uptime=time.clock_gettime(time.CLOCK_BOOTTIME), release=os.uname().release,
        watchdog=guarded,
    )  # fmt: skip
    reset = _stay if options.stay else machine.cut_power
    place = Place(options.mountpoint, options.scratch / "said", kernel=kernel, dilation=todo.dilation)
    place.scratch.mkdir(exist_ok=True)
    if not options.stay:
        available = todo.memory.available
        machine.mount_limited(place.scratch, SAID if available is None else part_of(available))
        machine.limit_root(None if available is None else part_of(available))
    Boot(todo, events, place, options.scratch, reset).run()
    if not options.stay:
        machine.power_off()


def _arrive(where: Path) -> bytes:
    """Make the guest ready for any boot, be saved where that is wanted, then take what this boot has brought.

    Returns the boot's secret.
    """
    machine.hide_memory()
    disk = Path("/dev") / machine.disks()[plan_disk.PLACE]
    saved.settle()  # one that boots in full is as one that was saved
    if saved.is_wanted():
        saved.stop()
    machine.sysctl(machine.OUT_OF_MEMORY)
    secret = plan_disk.take(disk, where)
    plan_disk.insert_modules(where)
    return secret
