"""Probes of the host itself: disk space, memory, passthrough, KVM. All but that of KVM open no device."""

import platform
import shutil
from functools import partial
from os import W_OK, access
from pathlib import Path

from agelab.base import fileio
from agelab.machine.vm.kvm import DEVICE, probe_kvm
from agelab.run.doctor.finding import Finding, ProbeStatus
from agelab.store.artefacts import Store

GIB = 1 << 30
# Wanted: sealed image, kernel, corpus and the drives of one quick cell. Needed: the image alone.
SPACE_WANTED = 6 * GIB
SPACE_NEEDED = 2 * GIB
# The largest guest of the quick scale, QEMU's overhead and the host side.
MEMORY_WANTED = 2 * GIB
WITHOUT_KVM = "wall-clock runs are emulated (slow, and no real time); the virtual clock needs no KVM"


def space(home: Path) -> Finding:
    """Check free space and write permission of the store's directory, which may not exist yet."""
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    move = "free some space, or move the store with AGELAB_HOME=<directory>"
    fact = f"{free / GIB:.1f} GiB free for {home}"
    finding = partial(Finding, name="space", required=True)
    if not access(place, W_OK):
        return finding(
            status=ProbeStatus.MISSING,
            found=f"{place} cannot be written",
            meaning="the store cannot be made there",
            fix="move the store with AGELAB_HOME=<directory>",
        )
    if free >= SPACE_WANTED:
        meaning = "enough for the quick scale; each scenario checks its own need"
        return finding(status=ProbeStatus.OK, found=fact, meaning=meaning)
    status = ProbeStatus.LIMITED if free >= SPACE_NEEDED else ProbeStatus.MISSING
    wants = f"the quick scale wants about {SPACE_WANTED // GIB} GiB"
    return finding(status=status, found=fact, meaning=wants, fix=move)


def memory(meminfo: Path = Path("/proc/meminfo")) -> Finding:
    """Check the memory available to guests."""
    fields = dict(line.split(":", 1) for line in fileio.read_text(meminfo).splitlines() if ":" in line)
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
        "/vfio-pci.ko" in fileio.read_text(path)
        for path in (modules / "modules.dep", modules / "modules.builtin")
        if path.exists()
    )
    facts = f"{count} IOMMU groups, vfio-pci {'available' if driver else 'not available'}"
    switch_on = "switch the IOMMU on in the firmware (VT-d, AMD-Vi) and boot with intel_iommu=on (Intel)"
    fixes = ([] if count else [switch_on]) + ([] if driver else ["use a kernel with the vfio-pci module"])
    usable = "root can give a guest drives pci:<address> that are alone in their IOMMU group"
    meaning = "no drives pci:<address> here" if fixes else usable
    return Finding(
        name="passthrough",
        status=ProbeStatus.MISSING if fixes else ProbeStatus.OK,
        found=facts,
        meaning=f"{meaning}; block:<device> and file:<path> need none of it",
        fix="; ".join(fixes),
    )


def kvm(store: Store, device: Path = DEVICE, *, again: bool = False) -> Finding:
    """Return the finding about KVM; boots a guest if no result is cached, or with ``again``."""
    verdict = probe_kvm(store, device, again=again)
    if verdict.boots:
        return Finding(
            name="KVM", status=ProbeStatus.OK, found=verdict.detail, meaning="wall-clock runs use KVM"
        )
    status = ProbeStatus.UNKNOWN if verdict.detail.startswith("not proven") else ProbeStatus.LIMITED
    return Finding(
        name="KVM",
        status=status if device.exists() else ProbeStatus.MISSING,
        found=f"{device} exists, but {verdict.detail}" if verdict.tried else verdict.detail,
        meaning=WITHOUT_KVM,
        fix=verdict.fix,
    )
