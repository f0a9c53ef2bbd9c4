"""The kernel's counters before and after a step.

Formats: proc(5) (stat, meminfo), the kernel's Documentation/admin-guide/iostats.rst (diskstats), statvfs(3).
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512
"""diskstats counts sectors of 512 bytes, whatever the disk's own size is."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """Whole-machine CPU time since boot, in clock ticks (proc(5), /proc/stat, first line)."""

    user: int
    system: int
    iowait: int
    idle: int


@dataclass(frozen=True)
class Disk:
    """One disk's work since boot."""

    requests: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class Reading:
    """All counters at one moment; ``at`` is the monotonic clock in nanoseconds."""

    at: int
    cpu: Cpu
    disk: Disk | None


def cpu() -> Cpu:
    """``user`` includes nice, ``system`` includes the time in interrupts."""
    with open("/proc/stat") as file:
        user, nice, system, idle, iowait, irq, softirq = map(int, file.readline().split()[1:8])
    return Cpu(user + nice, system + irq + softirq, iowait, idle)


def disk(device: str) -> Disk | None:
    """The counters of the block device with that name (``pmem1``), or None where the kernel keeps none."""
    with open("/proc/diskstats") as file:
        for line in file:
            fields = line.split()
            if fields[2] == device:
                reads, read, writes, written = (int(fields[i]) for i in (3, 5, 7, 9))
                return Disk(reads + writes, read * SECTOR, written * SECTOR)
    return None


def read(device: str | None) -> Reading:
    """Everything at once, the clock last before a step and therefore nearest to it."""
    counters = cpu(), disk(device) if device else None
    return Reading(time.monotonic_ns(), *counters)


def meminfo(name: str) -> int:
    """One figure of /proc/meminfo, in bytes."""
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(name)


def space_used(mountpoint: Path) -> int:
    """Bytes that the filesystem there counts as used (statvfs(3): blocks - bfree)."""
    stat = os.statvfs(mountpoint)
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize
