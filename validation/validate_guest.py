#!/usr/bin/python3 -SB
"""The part of validation/validate.py that runs in the guest: it makes the drives of job.json and measures them.

A list of steps belongs to each drive. ``do`` names one of the functions below, the rest are its arguments. Times
are nanoseconds of the guest's monotonic clock, places are sectors of 512 bytes.
"""

import ctypes
import json
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, "/run/agelab")
from harness import drives, machine
from harness.events import Events
from harness.plan import Partition

SECTOR = 512
SMALL = 4096
REQUESTS = "128"
"""As before the drives of a cell (agelab/scenario/layout.py)."""
LARGEST = 4 << 20
IO_SETUP, IO_GETEVENTS, IO_SUBMIT = 206, 208, 209
"""System calls of x86-64."""
PREAD, PWRITE = 0, 1

LIBC = ctypes.CDLL(None, use_errno=True)
BUFFER = mmap.mmap(-1, LARGEST)


class Drive:
    """One modelled drive, opened past the page cache."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.directory = Path("/sys/block", name)
        self.device = os.open(f"/dev/{name}", os.O_RDWR | os.O_DIRECT)

    def read(self, sector: int, size: int) -> None:
        """Read so many bytes."""
        if os.preadv(self.device, [memoryview(BUFFER)[:size]], sector * SECTOR) != size:
            raise OSError(f"{self.name}: a read at sector {sector} was short")

    def timed(self, sector: int) -> int:
        """What a small read takes."""
        began = time.monotonic_ns()
        self.read(sector, SMALL)
        return time.monotonic_ns() - began

    def statistics(self) -> dict[str, int]:
        """What the drive counts."""
        lines = (self.directory / "drive/stat").read_text().splitlines()
        return {name: int(value) for name, value in (line.split() for line in lines)}

    def none_from_cache(self, hits: int) -> None:
        """Raise OSError where its cache has served a read since it had so many hits."""
        if self.statistics()["cache_hits"] != hits:
            raise OSError(f"{self.name}: its cache had what was to be read from the platters")


def stream(drive: Drive, first: int, request: int, warm: int, requests: int) -> int:
    """What so many requests one behind the other take when as many as ``warm`` have gone before."""
    for number in range(warm):
        drive.read(first + number * request // SECTOR, request)
    began = time.monotonic_ns()
    for number in range(warm, warm + requests):
        drive.read(first + number * request // SECTOR, request)
    return time.monotonic_ns() - began


def streams(drive: Drive, firsts: list[int], request: int, warm: int, requests: int) -> list[int]:
    """The same at several places."""
    return [stream(drive, first, request, warm, requests) for first in firsts]


def scattered(drive: Drive, sectors: list[int]) -> int:
    """What small reads take, one after the other."""
    began = time.monotonic_ns()
    for sector in sectors:
        drive.read(sector, SMALL)
    return time.monotonic_ns() - began


def least(drive: Drive, sectors: list[int]) -> int:
    """The shortest of the small reads at every other of these sectors, from the second on."""
    hits = drive.statistics()["cache_hits"]
    shortest = min([drive.timed(sector) for sector in sectors][1::2])
    drive.none_from_cache(hits)
    return shortest


def seeks(drive: Drive, groups: list[list[int]]) -> list[float]:
    """Of each group, the mean of its reads from the second on without the rotation and the transfer that the drive
    names."""
    times = []
    for first, *others in groups:
        drive.read(first, SMALL)
        before = drive.statistics()
        took = scattered(drive, others)
        after = drive.statistics()
        drive.none_from_cache(before["cache_hits"])
        known = sum(after[name] - before[name] for name in ("busy_rotation_ns", "busy_transfer_ns"))
        times.append((took - known) / len(others))
    return times


def queued(drive: Drive, sectors: list[int], size: int, write: bool) -> int:
    """What requests take that are all handed over at once (io_submit(2)): the drive is never without one."""
    context = ctypes.c_ulong()
    count = len(sectors)
    _call(IO_SETUP, count, ctypes.byref(context))
    buffer = ctypes.addressof(ctypes.c_char.from_buffer(BUFFER))
    blocks = ctypes.create_string_buffer(64 * count)
    for number, sector in enumerate(sectors):
        kind = PWRITE if write else PREAD
        block = (0, 0, 0, kind, 0, drive.device, buffer, size, sector * SECTOR, 0, 0, 0)
        struct.pack_into("<QIIHhIQQqQII", blocks, 64 * number, *block)
    first = ctypes.addressof(blocks)
    pointers = (ctypes.c_void_p * count)(*range(first, first + 64 * count, 64))
    events = ctypes.create_string_buffer(32 * count)
    began = time.monotonic_ns()
    submitted = _call(IO_SUBMIT, context, ctypes.c_long(count), pointers)
    ended = _call(IO_GETEVENTS, context, ctypes.c_long(count), ctypes.c_long(count), events, None)
    took = time.monotonic_ns() - began
    results = [struct.unpack_from("<q", events, 32 * number + 16)[0] for number in range(count)]
    if submitted != count or ended != count or set(results) != {size}:
        raise OSError(f"{drive.name}: {submitted} of {count} requests went in, {ended} ended: {set(results)}")
    return took


def _call(number: int, *arguments: Any) -> int:
    result = LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def look(drive: Drive) -> dict[str, str]:
    """What the kernel says of the device's queue."""
    names = "rotational logical_block_size physical_block_size scheduler nr_requests max_sectors_kb write_cache fua"
    return {name: (drive.directory / "queue" / name).read_text().strip() for name in names.split()}


def written_back(drive: Drive, pages: int) -> dict[str, int]:
    """Requests and merges of pages that were made dirty one by one, and then written back."""
    # Of a partition, as a cell has it: the device itself is open past the page cache.
    [name] = drives.partition(drive.name, (Partition(0, 8, pages * SMALL // SECTOR),))
    before = _counted(name)
    with Path("/dev", name).open("r+b", buffering=0) as file:
        for _ in range(pages):
            file.write(bytes(SMALL))
        os.fsync(file.fileno())
    after = _counted(name)
    return {what: after[what] - before[what] for what in after}


def _counted(name: str) -> dict[str, int]:
    for line in Path("/proc/diskstats").read_text().splitlines():
        _, _, device, *values = line.split()
        if device == name:
            return {"requests": int(values[4]), "merges": int(values[5]), "sectors": int(values[6])}
    raise OSError(f"/proc/diskstats has no {name}")


STEPS: dict[str, Callable[..., object]] = {
    step.__name__: step for step in (stream, streams, scattered, least, seeks, queued, look, written_back)
}


def main() -> None:
    """Do the job, say each result as it is there, and power off."""
    events = Events.open(Path("/dev/ttyS1"), b"")  # nothing else runs here that could write to it
    try:
        BUFFER.write(bytes(LARGEST))  # or the first to use a page would wait for it
        job = json.loads(Path("/run/agelab/job.json").read_text())
        for described in job:
            behind = ""
            if described["window"]:
                [disk] = machine.disks()[1:]
                behind = f" memory=0x{machine.address(disk):x}:0:{described['window']}"
            drives.ADD.write_text(described["settings"] + behind)
            queue = Path("/sys/block", described["name"], "queue/nr_requests")
            queue.write_text(REQUESTS)
        for described in job:
            drive = Drive(described["name"])
            for step in described["steps"]:
                result = STEPS[step["do"]](drive, **step["arguments"])
                events.emit("result", drive=drive.name, step=step["name"], value=result)
            late = drive.statistics()["copy_late_ns"]
            events.emit("result", drive=drive.name, step="copy_late_ns", value=late)
        events.emit("end", reason="")
    except Exception as error:  # whatever it was, the host must hear of it before the guest is gone
        events.emit("end", reason=repr(error))
    machine.power_off()


main()
