"""The moment at which a guest is saved, to be restored for each boot: nothing of any cell has come in yet.

docs/architecture.md, "A guest that is already there".
"""

import mmap
import os
from pathlib import Path

from harness import counters, machine

ARGUMENT = "agelab.save"
"""The kernel argument of a guest that is to be saved."""
PORTS = Path("/dev/port")
PANIC_PORT, PANICKED = 0x505, 1
"""QEMU's pvpanic device (docs/specs/pvpanic.txt): with ``-action panic=pause`` the guest stops at this instruction."""
SPARED, PART_SPARED = 16 << 20, 32
"""Bytes of free memory that are left alone, and the part beside them: the kernel keeps some for itself."""


def is_wanted() -> bool:
    """Return True if this guest is to be saved."""
    return ARGUMENT in Path("/proc/cmdline").read_text().split()


def settle() -> None:
    """Forget what was read, and make free memory zeros: the saved file has holes there."""
    machine.drop_caches()
    free = counters.meminfo("MemFree")
    size = free - SPARED - free // PART_SPARED
    if size > 0:
        mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def stop() -> None:
    """Stop the guest until a copy of it is continued."""
    ports = os.open(PORTS, os.O_WRONLY | os.O_CLOEXEC)
    os.pwrite(ports, bytes([PANICKED]), PANIC_PORT)
    os.close(ports)
