"""Probes of the host itself: disk space, memory, passthrough. They open no device."""

import platform
import shutil
from os import W_OK, access
from pathlib import Path

from agelab.doctor.finding import Finding, ProbeStatus

GIB = 1 << 30
# Wanted: sealed image, kernel, corpus and the drives of one quick cell. Needed: the image alone.
SPACE_WANTED = 6 * GIB
SPACE_NEEDED = 2 * GIB
# The largest guest of the quick scale, QEMU's overhead and the host side.
MEMORY_WANTED = 2 * GIB


def space(home: Path) -> Finding:
    """Check free space and write permission of the store's directory, which may not exist yet."""
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    move = "free some space, or move the store with AGELAB_HOME=<directory>"
    fact = f"{free / GIB:.1f} GiB free for {home}"
    if not access(place, W_OK):
        return Finding(
            name="space",
            status=ProbeStatus.MISSING,
            found=f"{place} cannot be written",
            meaning="the store cannot be made there",
            fix="move the store with AGELAB_HOME=<directory>",
            required=True,
        )
    if free >= SPACE_WANTED:
        status, fix, meaning = (
            ProbeStatus.OK,
            "",
            "enough for the quick scale; each scenario checks its own need",
        )
    else:
        status = ProbeStatus.LIMITED if free >= SPACE_NEEDED else ProbeStatus.MISSING
        fix, meaning = move, f"the quick scale wants about {SPACE_WANTED // GIB} GiB"
    return Finding(name="space", status=status, found=fact, meaning=meaning, fix=fix, required=True)


def memory(meminfo: Path = Path("/proc/meminfo")) -> Finding:
    """Check the memory available to guests."""
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
    total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    enough = available >= MEMORY_WANTED
    return Finding(
        name="memory",
        status=ProbeStatus.OK if enough else ProbeStatus.LIMITED,
        found=f"{available / GIB:.1f} of {total / GIB:.1f} GiB available",
        meaning="bounds the guests that can run side by side"
        if enough
        else f"a quick guest and the host side want about {MEMORY_WANTED // GIB} GiB",
        fix="" if enough else "end other programs, or use JOBS=1",
    )


def passthrough(sys: Path = Path("/sys"), modules: Path | None = None) -> Finding:
    """Check for PCI passthrough: an enabled IOMMU and the vfio-pci driver."""
    modules = modules or Path("/lib/modules") / platform.release()
    groups = sys / "kernel/iommu_groups"
    count = len(list(groups.iterdir())) if groups.is_dir() else 0
    driver = (sys / "module/vfio_pci").exists() or any(
        "/vfio-pci.ko" in path.read_text()
        for path in (modules / "modules.dep", modules / "modules.builtin")
        if path.exists()
    )
    facts = f"{count} IOMMU groups, vfio-pci {'available' if driver else 'not available'}"
    if count and driver:
        return Finding(
            name="passthrough",
            status=ProbeStatus.OK,
            found=facts,
            meaning="root can give a guest drives pci:<address> that are alone in their IOMMU group; "
            "block:<device> and file:<path> need none of it",
        )
    fixes = (
        []
        if count
        else ["switch the IOMMU on in the firmware (VT-d, AMD-Vi) and boot with intel_iommu=on (Intel)"]
    )
    fixes += [] if driver else ["use a kernel with the vfio-pci module"]
    return Finding(
        name="passthrough",
        status=ProbeStatus.MISSING,
        found=facts,
        meaning="no drives pci:<address> here; block:<device> and file:<path> need none of it",
        fix="; ".join(fixes),
    )
