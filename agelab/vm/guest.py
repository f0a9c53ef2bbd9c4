"""Specification of one guest, in either clock: files, disks, processor."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agelab.model.machine import Machine

EMULATOR = "/usr/bin/qemu-system-x86_64"
MACHINE_TYPE = "pc-i440fx-7.2"
REAL_SERIAL = "agelab-disk{}"
"""Serial number of a real disk in the guest (virtio allows 20 characters)."""

Clock = Literal["virtual", "wall"]
Accelerator = Literal["kvm", "tcg"]


@dataclass(frozen=True)
class MemoryDisk:
    """A host file that the guest sees as a synchronous memory-backed disk."""

    path: Path
    size: int
    """Bytes, a multiple of DISK_ALIGNMENT."""
    written: bool
    """True if the guest's writes reach the file."""


@dataclass(frozen=True)
class RealDisk:
    """A disk or image file of the host that the guest sees as a virtio disk (wall clock only)."""

    source: str
    """Path that QEMU opens, from the claim (agelab.disk)."""
    kind: Literal["file", "block"]
    serial: str
    """Content of /sys/block/vd*/serial in the guest."""
    cache: str
    aio: str


@dataclass(frozen=True)
class GuestSpec:
    """One boot of one guest."""

    name: str
    uuid: str
    """SMBIOS UUID; also seeds the guest's random pool."""
    seed: int
    """Seed of QEMU's own random numbers."""
    machine: Machine
    memory_mib: int
    kernel: Path
    initramfs: Path
    day: int
    """Date in days after the cell's first boot; only guests in the virtual clock see it."""
    disks: tuple[MemoryDisk, ...]
    """The root disk comes first."""
    console: Path
    events: Path
    preload: Path | None = None
    """LD_PRELOAD library that hides the host clock from QEMU (vm/clock_library); required in the virtual clock."""
    clock: Clock = "virtual"
    vcpus: int = 1
    """Number of processors; always 1 in the virtual clock."""
    accelerator: Accelerator = "tcg"
    """Accelerator in the wall clock; KVM only where a test boot succeeded (agelab.vm.kvm)."""
    real_disks: tuple[RealDisk, ...] = ()
    passthrough: tuple[str, ...] = ()
    """PCI addresses of host controllers passed through to the guest (wall clock only)."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path that QEMU is given, but those of claimed disks: these are descriptors' paths."""
        own = (self.kernel, self.initramfs, self.console, self.events, *(disk.path for disk in self.disks))
        return (*own, self.preload) if self.preload else own
