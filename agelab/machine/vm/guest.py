"""Specification of one guest, in either clock: files, disks, processor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agelab.scenario.machine import Machine
from agelab.store.stored_disk import SLOT_BYTES

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
class Stop:
    """The moment at which a guest stops for a debugger, which then finds it at a socket."""

    text: str
    """What the guest has then written to one of its serial lines."""
    nanoseconds: int
    """Of the virtual clock, after it has."""
    socket: Path

    @property
    def words(self) -> str:
        """What the library that stops guests is told."""
        return f"{self.nanoseconds}:{self.text.encode().hex()}"


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
    schedule: str | None = None
    """What the library that shakes the schedule is told, the first of ``preload``; empty for a guest that is saved to
    be shaken later, None for one whose schedule is left alone."""
    clock: Clock = "virtual"
    vcpus: int = 1
    """Number of processors."""
    accelerator: Accelerator = "tcg"
    """Accelerator in the wall clock; KVM only where a test boot succeeded (agelab.machine.vm.host)."""
    real_disks: tuple[RealDisk, ...] = ()
    passthrough: tuple[str, ...] = ()
    """PCI addresses of host controllers passed through to the guest (wall clock only)."""
    stop: Stop | None = None
    """With the library that stops guests, among ``preload``."""
    terminal: Path | None = None
    """A socket in the console's place, for a guest that somebody types to."""

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


@dataclass(frozen=True)
class SlotLayout:
    """The slots for data disks."""

    count: int
    size: int
    """Bytes of each."""

    def fill(self, disks: Sequence[MemoryDisk], empty: Path) -> tuple[MemoryDisk, ...]:
        """Return a guest's disks with the data disks in slots, and in each slot that is left ``empty``, a hole."""
        data = [replace(disk, size=self.size) for disk in disks[FIRST_DATA_DISK:]]
        unused = [MemoryDisk(empty, self.size, written=False)] * (self.count - len(data))
        return (*disks[:FIRST_DATA_DISK], *data, *unused)


FIRST_DATA_DISK = 3
"""Place of the first data disk among a guest's disks: after root, plan and corpus."""
SLOT_LAYOUTS = (SlotLayout(9, SLOT_BYTES[0]), SlotLayout(28, SLOT_BYTES[0]), SlotLayout(6, SLOT_BYTES[1]))
"""The cheapest first; each fits into a guest's address space (agelab.machine.vm.domain)."""


def slots_for(guest_disks: Sequence[MemoryDisk]) -> SlotLayout | None:
    """Return the cheapest layout that holds a guest's data disks, or None where there is none."""
    disks = guest_disks[FIRST_DATA_DISK:]
    largest = max((disk.size for disk in disks), default=0)
    fitting = (layout for layout in SLOT_LAYOUTS if len(disks) <= layout.count and largest <= layout.size)
    return next(fitting, None)
