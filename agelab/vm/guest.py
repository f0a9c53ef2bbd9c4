"""What a guest is, whichever clock it runs on: its files, its disks, its processor."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agelab.model.machine import Machine

EMULATOR = "/usr/bin/qemu-system-x86_64"
MACHINE_TYPE = "pc-i440fx-7.2"
DISK_ALIGNMENT = 2 << 20
"""Bytes; a memory-backed disk is mapped in pieces of this size."""
REAL_SERIAL = "agelab-disk{}"
"""The serial number by which a guest finds a real disk (20 characters are what virtio has room for)."""

Clock = Literal["virtual", "wall"]
Accelerator = Literal["kvm", "tcg"]


@dataclass(frozen=True)
class MemoryDisk:
    """A file that the guest sees as a synchronous memory-backed disk."""

    path: Path
    size: int
    """Bytes, a multiple of DISK_ALIGNMENT."""
    written: bool
    """Whether the guest's writes reach the file."""


@dataclass(frozen=True)
class RealDisk:
    """A disk or image file of the host that the guest sees as a virtio disk (wall clock only)."""

    source: str
    """The path that QEMU opens: a claim's (agelab.disk)."""
    kind: Literal["file", "block"]
    serial: str
    """What the guest reads in /sys/block/vd*/serial."""
    cache: str
    aio: str


@dataclass(frozen=True)
class GuestSpec:
    """One boot of one guest."""

    name: str
    uuid: str
    """The SMBIOS UUID, which is also part of what seeds the guest's random pool."""
    seed: int
    """QEMU's own random numbers."""
    machine: Machine
    memory_mib: int
    kernel: Path
    initramfs: Path
    day: int
    """The date, in days after a cell's first boot; the virtual clock's guests know it."""
    disks: tuple[MemoryDisk, ...]
    """The root comes first."""
    console: Path
    events: Path
    preload: Path | None = None
    """LD_PRELOAD library that hides the host clock from QEMU (vm/clock_library); required in the virtual clock."""
    clock: Clock = "virtual"
    vcpus: int = 1
    """Processors; the virtual clock has one."""
    accelerator: Accelerator = "tcg"
    """What runs the wall clock's guest: KVM only where it is proved (agelab.vm.kvm)."""
    real_disks: tuple[RealDisk, ...] = ()
    passthrough: tuple[str, ...] = ()
    """PCI addresses of the host's controllers that the guest gets (wall clock only)."""
