"""The slots of a guest's memory-backed disks: the same in every guest that begins as a copy of one saved guest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agelab.machine.vm.guest import MemoryDisk
from agelab.store.disks import SLOT_BYTES


@dataclass(frozen=True)
class SlotLayout:
    """The slots for data disks."""

    count: int
    size: int
    """Bytes of each."""

    def fill(self, disks: Sequence[MemoryDisk], empty: Path) -> tuple[MemoryDisk, ...]:
        """Return a guest's disks with the data disks in slots, and in each slot that is left ``empty``, a hole."""
        data = [replace(disk, size=self.size) for disk in disks[FIRST:]]
        unused = [MemoryDisk(empty, self.size, written=False)] * (self.count - len(data))
        return (*disks[:FIRST], *data, *unused)


FIRST = 3
"""Place of the first data disk among a guest's disks: after root, plan and corpus."""
LAYOUTS = (
    SlotLayout(9, SLOT_BYTES[0]),
    SlotLayout(28, SLOT_BYTES[0]),
    SlotLayout(6, SLOT_BYTES[1]),
)
"""The cheapest first; each fits into a guest's address space (agelab.machine.vm.domain)."""


def layout_for(guest_disks: Sequence[MemoryDisk]) -> SlotLayout | None:
    """Return the cheapest layout that holds a guest's data disks, or None where there is none."""
    disks = guest_disks[FIRST:]
    largest = max((disk.size for disk in disks), default=0)
    fitting = (one for one in LAYOUTS if len(disks) <= one.count and largest <= one.size)
    return next(fitting, None)
