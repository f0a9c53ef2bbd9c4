"""A guest of which nothing need exist."""

from pathlib import Path

from agelab.machine.vm.guest import GuestSpec, MemoryDisk
from agelab.scenario import selection

SPEC = GuestSpec(
    name="agelab-golden",
    emulator=Path("/agelab/qemu/qemu-system-x86_64"),
    machine=selection.machine("pentium4-2800"),
    memory_mib=256,
    kernel=Path("/agelab/image/vmlinux"),
    initramfs=Path("/agelab/cell/initramfs"),
    disks=(
        MemoryDisk(Path("/agelab/image/root.squashfs"), 100 << 20, written=False, constant=True),
        MemoryDisk(Path("/agelab/cell/plan"), 256 << 20, written=False),
        MemoryDisk(Path("/agelab/corpus/corpus.iso"), 42 << 20, written=False, constant=True),
        MemoryDisk(Path("/agelab/cell/disk"), 640 << 20, written=True),
    ),
    console=Path("/agelab/cell/console-1.log"),
    events=Path("/agelab/cell/events-1.jsonl"),
    preload=(Path("/agelab/clock/clock.so"),),
)
