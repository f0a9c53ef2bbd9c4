"""Slots: which layout holds a guest's disks, and what stands in a slot without one."""

from pathlib import Path

from agelab.machine.vm.guest import SLOT_LAYOUTS, MemoryDisk, slots_for
from agelab.store.stored_disk import SLOT_BYTES, slot_bytes

GIB = 1 << 30
FIXED = tuple(MemoryDisk(Path(name), GIB, written=False) for name in ("root", "plan", "corpus"))


def disks(count: int, size: int = GIB) -> tuple[MemoryDisk, ...]:
    return (*FIXED, *(MemoryDisk(Path(f"disk-{number}"), size, written=True) for number in range(count)))


def test_the_cheapest_layout_that_holds_the_disks_is_taken() -> None:
    few, many, large = SLOT_LAYOUTS
    assert slots_for(FIXED) == slots_for(disks(9)) == slots_for(disks(1, 16 * GIB)) == few
    assert slots_for(disks(10)) == slots_for(disks(28)) == many
    assert slots_for(disks(1, 17 * GIB)) == slots_for(disks(6, 64 * GIB)) == large
    assert slots_for(disks(29)) is slots_for(disks(7, 17 * GIB)) is slots_for(disks(1, 65 * GIB)) is None


def test_every_slot_has_a_disk_of_its_size_or_the_hole() -> None:
    empty = Path("empty")
    filled = SLOT_LAYOUTS[0].fill(disks(2), empty)
    assert filled[:3] == FIXED and {disk.size for disk in filled[3:]} == {16 * GIB}
    assert [str(disk.path) for disk in filled[3:]] == ["disk-0", "disk-1", *["empty"] * 7]
    assert [disk.written for disk in filled[3:]] == [True, True, *[False] * 7]


def test_a_disks_file_is_as_long_as_its_slot_or_as_the_disk_where_none_holds_it() -> None:
    assert [slot_bytes(size) for size in (1, 16 * GIB, 16 * GIB + 1, 64 * GIB, 65 * GIB)] == [
        *[SLOT_BYTES[0]] * 2,
        *[SLOT_BYTES[1]] * 2,
        65 * GIB,
    ]
