"""Requests that lie across the partitions of a modelled drive, and what is counted of them."""

from pathlib import Path

import pytest

from agelab import kernel
from agelab.cli.options import open_store
from agelab.machine.drive import geometry
from agelab.runner.bench import bench
from agelab.scenario import selection

pytestmark = pytest.mark.vm
DRIVE = selection.drive("seagate-st340016a")
MIB = 64
PROGRAM = rb"""#!/usr/bin/python3 -SB
import json, mmap, os, sys
from pathlib import Path
sys.path.insert(0, "/run/agelab")
from harness import counters, drives, machine
from harness.events import Events

job = json.loads(Path("/run/agelab/job.json").read_text())
events = Events.open(Path("/dev/ttyS1"), b"")
[disk] = machine.disks()[1:]
first, half = 63, job["sectors"] // 2
edge, end = first + half, first + 2 * half
# The first partition's memory is the second half of the disk's, so that nothing fits by chance.
memory = machine.address(disk)
behind = f"0x{memory + half * 512:x}:{first}:{half},0x{memory:x}:{edge}:{half}"
drives.ADD.write_text(f"{job['settings']} memory={behind}")
drive = os.open("/dev/drive0", os.O_RDWR | os.O_DIRECT)
pages = mmap.mmap(-1, 8192)

def sector(number):
    return b"sector %d " % number * 512

def content(at, count):
    return b"".join(sector(number)[:512] for number in range(at, at + count))

def write(at, count):
    pages[:count * 512] = content(at, count)
    return os.pwritev(drive, [memoryview(pages)[:count * 512]], at * 512)

def read(at, count, device=drive):
    os.preadv(device, [memoryview(pages)[:count * 512]], at * 512)
    return pages[:count * 512]

def refused(at, count):
    try:
        return not write(at, count)
    except OSError:
        return True

across = edge - 5
write(across, 16)
cached = read(across, 16) == content(across, 16)
os.fsync(drive)
platters = read(across, 16) == content(across, 16)
write(first, 1)
before = read(first - 7, 8) == bytes(7 * 512) + content(first, 1)
for place in range(5):
    write(first + 1000 * place, 8)
    os.fsync(drive)
found = counters.drives(["drive0"])
bare = os.open(f"/dev/{disk}", os.O_RDONLY | os.O_DIRECT)
# Of either partition the sectors at the edge, where its memory has them.
one = read(2 * half - 8, 8, bare)[-5 * 512:] == content(across, 5)
other = read(0, 8, bare) == content(edge, 8)
events.emit(
    "found", cached=cached, platters=platters, before=before, behind=[one, other],
    refused=[refused(first - 7, 8), refused(end - 1, 8)], flushes=found["flushes"],
    queue=[found["requests"], found["queue_sum"]],
)
machine.power_off()
"""


def test_a_request_may_lie_across_two_partitions(tmp_path: Path) -> None:
    job = {"settings": geometry.module_parameters(DRIVE, name="drive0", run_seed=1, index=0), "sectors": MIB << 11}
    with bench(open_store(), kernel.DEFAULT, tmp_path) as place:
        done = place.boot(PROGRAM, job, selection.machine("pentium4-2800"), 256, [place.disk(MIB)])
    found = done.only("found")
    assert found["cached"] and found["platters"] and found["behind"] == [True, True]
    assert found["before"], "of a page, what lies before the first partition is zeros, and the rest is not"
    assert found["refused"] == [True, True]
    assert found["flushes"] >= 5
    assert found["queue"][0] == found["queue"][1], "a drive without a queue has one request, flushes or not"
