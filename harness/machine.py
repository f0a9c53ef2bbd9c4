"""What the guest's machine must be like before and between steps: memory, caches, clock, power."""

import ctypes
import fcntl
import os
import struct
import time
from pathlib import Path

from harness import counters
from harness.plan import Memory

OUT_OF_MEMORY = {"vm/panic_on_oom": "1"}
"""The kernel panics where it would begin to end programs: the cell is over then, and the harness may get no memory,
either, to say so (a fork bomb was ended by the watchdog, after minutes of the host's time)."""
MLOCKALL = 1 | 2 | 4
"""MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT: mlockall(2)."""
POWER_OFF = 0x4321FEDC
"""LINUX_REBOOT_CMD_POWER_OFF, reboot(2)."""
RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207
PR_CAPBSET_DROP, CAP_SYS_PTRACE = 24, 19
"""prctl(2), capabilities(7)."""
KERNELS_PROGRAMS = Path("/proc/sys/kernel/usermodehelper/bset")
"""The capabilities of programs that the kernel starts, as two numbers of 32 bits, the lower first."""
MODULE = Path("/sys/module/agedrive/parameters")
"""What the module of the modelled drives is told."""
MS_REMOUNT = 32
"""mount(2)."""
ROOT_MEMORY = Path("/media")
"""Where the first program leaves the memory of the overlay over the root (agelab/kernel/initramfs.py)."""
CLOSE_ENOUGH = 64 * 1024
"""Bytes by which the memory available may miss its target."""
STAT_REFRESH = Path("/proc/sys/vm/stat_refresh")
REFRESHES = 32
"""After so many a list of freed pages has 1.4 % of its length left."""
SETTLED, PAUSE = 8, 0.025
"""So many more looks, with so many seconds before each, must find it still there: what mounting has left behind is
freed a moment later (btrfs: 1.5 MB)."""


def mount_limited(where: Path, size: int, *, flags: int = 0) -> None:
    """Mount a directory in RAM that takes so many bytes at most (mount(2), tmpfs(5))."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"limited", bytes(where), b"tmpfs", flags, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), f"mounting {where}")


def limit_root(size: int | None) -> None:
    """Let what is written to the root, /tmp among it, take so many bytes of RAM at most; None: half of it, as it is."""
    if size is not None:
        mount_limited(ROOT_MEMORY, size, flags=MS_REMOUNT)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(bytes(ROOT_MEMORY), 0):  # the overlay keeps it
        raise OSError(ctypes.get_errno(), f"unmounting {ROOT_MEMORY}")


def disks() -> list[str]:
    """The memory-backed disks in the order in which the host attached them.

    pmem numbers follow the order of probing; the physical addresses follow the order of attaching.
    """
    return sorted((block.name for block in Path("/sys/block").glob("pmem*")), key=address)


def address(disk: str) -> int:
    """Where in the guest's physical memory a memory-backed disk begins."""
    return int(Path("/sys/block", disk, "device/resource").read_text(), 16)


def sysctl(settings: dict[str, str]) -> None:
    """Write each value below /proc/sys."""
    for name, value in settings.items():
        Path("/proc/sys", name).write_text(value)


def seed_random(entropy: bytes) -> None:
    """Fill the kernel's random pool from the plan, so that nothing waits for it, and use it from now on (random(4))."""
    with open("/dev/random", "wb", buffering=0) as pool:
        fcntl.ioctl(pool, RNDADDENTROPY, struct.pack("ii", 8 * len(entropy), len(entropy)) + entropy)
        fcntl.ioctl(pool, RNDRESEEDCRNG)


def set_date(booted_at: int) -> None:
    """Set the clock as if the guest had booted at that moment, in seconds since 1970."""
    since = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    time.clock_settime_ns(time.CLOCK_REALTIME, booted_at * 10**9 + since)


def mounted(where: Path) -> tuple[str, str]:
    """Type and options of what is mounted there (proc(5), /proc/mounts). Raises OSError for nothing."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    for _, place, kind, options, *_ in reversed(mounts):
        if place == str(where):
            return kind, options
    raise OSError(f"nothing is mounted at {where}")


def drop_caches() -> None:
    """Write back what is dirty, then forget pages, dentries and inodes (proc(5), drop_caches)."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def hide_memory() -> None:
    """Keep every program that is started from here on out of this process's memory, root's programs too.

    None gets CAP_SYS_PTRACE again, nor do those that the kernel starts (core_pattern): without it nobody reads or
    writes the memory of a process that has more capabilities than itself (ptrace(2), access mode checking).
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    low, high = map(int, KERNELS_PROGRAMS.read_text().split())
    KERNELS_PROGRAMS.write_text(f"{low & ~(1 << CAP_SYS_PTRACE)} {high}")


def stay_in_memory() -> None:
    """Keep this process in memory: fetching it back would be measured, and where none is left it has to say so."""
    if ctypes.CDLL(None, use_errno=True).mlockall(MLOCKALL):
        raise OSError(ctypes.get_errno(), "mlockall")


def take_memory(memory: Memory, ballast: Path) -> None:
    """Make the memory available what the plan says by filling a file in RAM, which nothing can reclaim.

    It lies in a tmpfs where there is no swap, else in a ramfs: that is never swapped out.

    Raises OSError when there is less memory than asked for.
    """
    if memory.available is None:
        return
    descriptor = os.open(ballast, os.O_RDWR | os.O_CREAT)
    size = settled = 0
    for _ in range(64):
        count_freed()
        excess = counters.memory_available() - memory.available
        if abs(excess) <= CLOSE_ENOUGH:
            if settled == SETTLED:
                break
            settled += 1
            time.sleep(PAUSE)
            continue
        settled = 0
        size += excess // counters.PAGE * counters.PAGE
        if size < 0:
            raise OSError(f"the guest has {-excess} bytes of memory less available than the scenario asks for")
        if excess > 0:
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
    os.close(descriptor)


def limit_dirty(memory: Memory) -> None:
    """Hold back writers until the memory is taken as the scenario does, in bytes.

    The kernel works its limit out when the setting changes (mm/page-writeback.c, writeback_set_ratelimit) and follows
    what memory is left but slowly: with the part written back after it, the limit is that of the memory that is left.
    """
    if memory.available is None:
        return
    for name in ("vm/dirty", "vm/dirty_background"):
        part = memory.available * int(memory.sysctl[f"{name}_ratio"]) // 100
        sysctl({f"{name}_bytes": str(part)})


def count_freed() -> None:
    """Have the kernel count what was freed: pages on a processor's list are not in MemAvailable.

    Between Linux 6.1 and 6.12 it came that such a list may grow to an eighth of a zone; each refresh takes an eighth of
    what is above its least length away (mm/page_alloc.c, decay_pcp_high; mm/vmstat.c, vmstat_refresh).
    """
    for _ in range(REFRESHES):
        STAT_REFRESH.write_text("1")


def wait_until(uptime: float) -> None:
    """Sleep until that many seconds after boot: a fixed moment, whatever the way there took.

    Raises TimeoutError when it has passed already: the first step would start at a moment of chance.
    """
    left = uptime - time.clock_gettime(time.CLOCK_BOOTTIME)
    if left < 0:
        raise TimeoutError(f"the guest was ready {-left:.3f} s after the moment at which its first step starts")
    time.sleep(left)


def price_copies(prices: dict[str, int]) -> None:
    """Have copying of the page cache cost so many instructions more for 1024 bytes (harness/drive/price.c).

    Raises OSError where the kernel has no function that a probe finds.
    """
    for way, instructions in prices.items():
        (MODULE / f"{way}_price").write_text(str(instructions))


def cut_power() -> None:
    """Reset the machine at once, as a power cut does: nothing is written back, and no device is told.

    Modelled drives first record what they have done by then (harness/drive/block.c). Without them: the kernel's
    Documentation/admin-guide/sysrq.rst, b. Raises OSError where the machine goes on.
    """
    if MODULE.exists():
        (MODULE / "cut").write_text("1")
    Path("/proc/sysrq-trigger").write_text("b")
    raise OSError("the machine goes on after its reset")


def power_off() -> None:
    """At once, writing nothing back: reboot(2) does not sync."""
    ctypes.CDLL(None, use_errno=True).reboot(POWER_OFF)
