"""Writes to a modelled disk that survive a power cut, and an orderly end."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from agelab import kernel
from agelab.cli.options import open_store
from agelab.machine.drive import geometry
from agelab.machine.drive.record import ROOM
from agelab.machine.drive.translation import Mapped
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.bench import Bench, bench
from agelab.runner.execute.disks import DiskFiles
from agelab.runner.execute.power_cut import RecordedDrive
from agelab.runner.plan.cell_drive import Partition
from agelab.scenario import selection

pytestmark = pytest.mark.vm
DRIVES = "seagate-st340016a", "samsung-870-evo-500"
MACHINE = selection.machine("pentium4-2800")
MIB = 64
PLACES = {"flushed": 0, "unflushed": 2048, "overwritten": 4099, "before an orderly end": 65536}
"""Sectors of the drive. What is overwritten was flushed before, and is not afterwards."""
PROGRAM = rb"""#!/usr/bin/python3 -SB
import json, mmap, os, sys, time
from pathlib import Path
sys.path.insert(0, "/run/agelab")
from harness import drives, machine
from harness.events import Events

job = json.loads(Path("/run/agelab/job.json").read_text())
events = Events.open(Path("/dev/ttyS1"), b"")
disk, log = machine.disks()[1:]
begin, record = machine.address(disk), machine.address(log)
table = begin + job["sectors"] * 512
places = f"memory=0x{begin:x}:0:{job['sectors']} table=0x{table:x} record=0x{record:x}:{job['record_bytes']}"
drives.ADD.write_text(f"{job['settings']} {places}")
device = os.open("/dev/drive0", os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 4096)

def at(place):
    os.preadv(device, [page], job["places"][place] * 512)
    return bytes(page)

def written(place, end=b"*"):
    return place.encode().ljust(4096, end)

def write(place, end=b"*"):
    page[:] = written(place, end)
    os.pwritev(device, [page], job["places"][place] * 512)

def look():
    states = {written(place): "written" for place in job["places"]} | {bytes(4096): "zeros"}
    states[written("overwritten", b"+")] = "overwritten"
    events.emit("found", **{place: states.get(at(place), "damaged") for place in job["places"]})

look()
for place in job["writes"]:
    write(place)
    if place in ("flushed", "overwritten"):
        os.fsync(device)
if "overwritten" in job["writes"]:
    write("overwritten", b"+")
# At once: after a revolution of rest the drive begins to write back by itself.
if job["cut"] and at(place) == written(place):
    events.emit("cut", at=time.monotonic_ns())
    machine.cut_power()
machine.power_off()
"""


def boot(place: Bench, disk: MemoryDisk, name: str, writes: Sequence[str] = (), *, cut: bool = False) -> dict[str, str]:
    """Return the drive's content as the guest found it; the guest then makes these writes, and ends."""
    log = MemoryDisk(place.directory / "log", ROOM, written=True)
    DiskFiles().create(log)
    os.truncate(log.path, ROOM)
    mapped = Mapped(0, MIB << 11)
    job = {
        "settings": geometry.module_parameters(
            selection.drive(name), name="drive0", run_seed=1, index=0, mapped=mapped
        ),
        "record_bytes": ROOM,
        "sectors": MIB << 11,
        "places": PLACES,
        "writes": writes,
        "cut": cut,
    }
    drive = RecordedDrive(log.path, [(disk, Partition(0, MIB << 11))])
    with ExitStack() as cleanup:
        drive.keep(DiskFiles(), cleanup)
        done = place.boot(PROGRAM, job, MACHINE, 256, [disk, log])
        if cut:
            drive.cut(done.only("cut")["at"], DiskFiles())
    line = done.only("found")
    return {name: line[name] for name in PLACES}


@pytest.mark.parametrize("name", DRIVES)
def test_a_power_cut_loses_what_was_not_flushed_and_an_orderly_end_nothing(tmp_path: Path, name: str) -> None:
    nothing = dict.fromkeys(PLACES, "zeros")
    with bench(open_store(), kernel.DEFAULT, tmp_path) as place:
        disk = place.disk(MIB + 2)  # a solid-state drive's map lies behind its data
        assert boot(place, disk, name, ["flushed", "overwritten", "unflushed"], cut=True) == nothing
        left = boot(place, disk, name, ["before an orderly end"])
        assert left == {**nothing, "flushed": "written", "overwritten": "written"}
        assert boot(place, disk, name) == {**left, "before an orderly end": "written"}
