"""The disks that a power cut leaves: as they were before the boot, and of the drives' records what had been done."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agelab.machine.drive.record import Record, written_back
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.execute.disks import DiskFiles
from agelab.runner.plan.cell_drive import Partition


@dataclass(frozen=True)
class RecordedDrive:
    """A drive, and the disk that takes its record."""

    log: Path
    partitions: Sequence[tuple[MemoryDisk, Partition]]
    """Those that keep what is written to them."""

    def keep(self, files: DiskFiles, cleanup: ExitStack) -> None:
        """Keep what is on it now."""
        for disk, _ in self.partitions:
            cleanup.callback(files.remove, _before(disk))
            files.copy(disk.path, _before(disk))

    def cut(self, at: int, files: DiskFiles) -> None:
        """Leave on it what had reached the platters at that time of the drive, in nanoseconds.

        Raises AgelabError where its record is not whole.
        """
        for disk, partition in self.partitions:
            before = _before(disk)
            record = Record(self.log, before, partition.first, partition.sectors)
            done = zip(record.entries, written_back(record.entries), strict=True)
            pieces = [piece for entry, pieces in done if entry.done <= at for piece in pieces]
            record.put(before, pieces)
            with disk.path.open("rb") as left, before.open("r+b") as made:
                for file in (left, made):  # behind the data: the map of a solid-state drive
                    file.seek(partition.bytes)
                made.write(left.read(disk.size - partition.bytes))
            files.remove(disk.path)
            before.rename(disk.path)


def _before(disk: MemoryDisk) -> Path:
    return disk.path.with_name(f"{disk.path.name}-before")
