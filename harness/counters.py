"""The kernel's counters before and after a step.

Formats: proc(5) (stat, meminfo), the kernel's Documentation/admin-guide/iostats.rst (diskstats), statvfs(3),
and of a modelled drive its own (harness/drive/): one ``name value`` a line, since the drive was made.
"""

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
ZONEINFO = Path("/proc/zoneinfo")
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
    """The work of the disk under test since boot: the sums over its members."""

    requests: int
    bytes_read: int
    bytes_written: int
    modelled: dict[str, int]
    """What the modelled drives among them counted, summed; empty where there is none."""


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


def disk(members: Sequence[str], modelled: Sequence[str]) -> Disk | None:
    """The counters of these block devices (``drive0p1``) and drives (``drive0``), or None without any."""
    if not members:
        return None
    requests = read = written = 0
    with open("/proc/diskstats") as file:
        for line in file:
            fields = line.split()
            if fields[2] in members:
                requests += int(fields[3]) + int(fields[7])
                read += int(fields[5])
                written += int(fields[9])
    return Disk(requests, read * SECTOR, written * SECTOR, drives(modelled))


def drives(names: Sequence[str]) -> dict[str, int]:
    """The sums of what these modelled drives counted."""
    total: Counter[str] = Counter()
    for name in names:
        for line in Path("/sys/block", name, "drive/stat").read_text().splitlines():
            key, value = line.split()
            total[key] += int(value)
    return dict(total)


def read(members: Sequence[str], modelled: Sequence[str]) -> Reading:
    """Everything at once, the clock last before a step and therefore nearest to it."""
    counters = cpu(), disk(members, modelled)
    return Reading(time.monotonic_ns(), *counters)


def meminfo(name: str) -> int:
    """One figure of /proc/meminfo, in bytes."""
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(name)


def on_lists() -> int:
    """Bytes on processors' lists of free pages, which the kernel does not count as free (proc(5), zoneinfo)."""
    lines = map(str.split, ZONEINFO.read_text().splitlines())
    return PAGE * sum(int(words[1]) for words in lines if words[:1] == ["count:"])


def memory_available() -> int:
    """Bytes that a program can have without swapping: MemAvailable, and what lies on processors' lists."""
    return meminfo("MemAvailable") + on_lists()


def space(mountpoint: Path) -> tuple[int, int]:
    """Bytes that the filesystem there counts as used, and bytes that it has (statvfs(3): blocks - bfree, blocks)."""
    stat = os.statvfs(mountpoint)
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize, stat.f_blocks * stat.f_frsize
