"""Specification of one guest, in either clock: files, disks, processor."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agelab.scenario.machine import Machine

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
    constant: bool = False
    """True if the guest cannot write to the disk at all."""


@dataclass(frozen=True)
class RealDisk:
    """A disk or image file of the host that the guest sees as a virtio disk (wall clock only)."""

    source: str
    """Path that QEMU opens, from the claim (agelab.machine.disk)."""
    kind: Literal["file", "block"]
    serial: str
    """Content of /sys/block/vd*/serial in the guest."""
    cache: str
    aio: str


@dataclass(frozen=True)
class SavedMemory:
    """The memory of a guest that is saved, or of a copy of it (agelab.machine.vm.saved_guest)."""

    path: Path
    """The file that is the guest's memory."""
    restored: bool
    """True for a copy: its writes do not reach the file, and it does not stop."""


@dataclass(frozen=True)
class GuestSpec:
    """One boot of one guest."""

    name: str
    emulator: Path
    """What starts QEMU (agelab.machine.qemu)."""
    machine: Machine
    memory_mib: int
    kernel: Path
    initramfs: Path
    disks: tuple[MemoryDisk, ...]
    """The root disk comes first."""
    console: Path
    events: Path
    preload: tuple[Path, ...] = ()
    """LD_PRELOAD libraries of the virtual clock (agelab.machine.qemu)."""
    saved: SavedMemory | None = None
    """None for a guest that boots and is not saved."""
    clock: Clock = "virtual"
    vcpus: int = 1
    """Number of processors; always 1 in the virtual clock."""
    accelerator: Accelerator = "tcg"
    """Accelerator in the wall clock; KVM only where a test boot succeeded (agelab.machine.vm.kvm)."""
    real_disks: tuple[RealDisk, ...] = ()
    passthrough: tuple[str, ...] = ()
    """PCI addresses of host controllers passed through to the guest (wall clock only)."""

    @property
    def is_saved(self) -> bool:
        """True for the guest that stops itself to be saved."""
        return self.saved is not None and not self.saved.restored

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path that QEMU is given, but those of claimed disks: these are descriptors' paths."""
        own = (
            self.emulator,
            self.kernel,
            self.initramfs,
            self.console,
            self.events,
            *(disk.path for disk in self.disks),
        )
        return (*own, *self.preload, *([self.saved.path] if self.saved else []))
