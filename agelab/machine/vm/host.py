"""Host facts that the plan does not contain: processor, free memory, libvirt's binding."""

import os
import platform
import sys
from functools import cache
from pathlib import Path

from agelab.base import fileio, limits, process

CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
LIBVIRT_BINDING = Path("/usr/lib/python3/dist-packages/libvirt.py")
"""libvirt's Python binding as the distribution installs it."""


def binding_hint() -> str:
    """Return what to do when this Python cannot import libvirt's binding."""
    if not LIBVIRT_BINDING.exists():
        return process.install_hint(str(LIBVIRT_BINDING))
    environment = "make its environment with /usr/bin/python3 -m venv --system-site-packages"
    return f"{sys.executable} does not see the system's packages: {environment}"


@cache
def description() -> str:
    """Describe what determines real-time speed: kernel, processors, clock source."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    model = cpu_model(fileio.read_text(Path("/proc/cpuinfo"))) or "unnamed processors"
    source = fileio.read_text(CLOCKSOURCE).strip() if CLOCKSOURCE.exists() else "unknown"
    return f"{system}, {os.cpu_count()} x {model}, clocksource {source}"


def cpu_model(cpuinfo: str) -> str:
    """Return the processor's name from the text of /proc/cpuinfo, or an empty string."""
    names = (line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name"))
    return next(names, "")


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def memory_available() -> int:
    """Return MemAvailable of this host in bytes (proc(5))."""
    lines = fileio.read_text(Path("/proc/meminfo")).splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def memory_is_limited(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> bool:
    """Return True if this process is in a control group with less memory than the host has (cgroups(7))."""
    total = next(
        int(line.split()[1]) * 1024
        for line in fileio.read_text(proc / "meminfo").splitlines()
        if line.startswith("MemTotal:")
    )
    limit = limits.memory_limit(proc, groups)
    return limit is not None and limit < total
