"""The forks of a cell: copies of its disk, as files and as disks of a guest."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.execute.disk_files import DiskFiles
from agelab.runner.plan.cell_spec import CellSpec
from agelab.scenario.step import AGED
from agelab.store.stored_disk import MEMBER_FILE, StoredDisk


@dataclass(frozen=True)
class Forks:
    """The forks of one cell, in its directory."""

    directory: Path
    spec: CellSpec
    starts_from: StoredDisk | None
    """Stands for the fork of the aged disk where the cell does not make one."""
    disk_files: DiskFiles = field(default_factory=DiskFiles)

    def directory_of(self, name: str) -> Path:
        """Return the directory of a fork, whether it exists or not."""
        if name == AGED and self.starts_from:
            return self.starts_from.artefact.directory
        return self.directory / f"fork-{name}"

    def exists(self, name: str) -> bool:
        return all(path.exists() for path in self.files(name))

    def files(self, name: str) -> list[Path]:
        """Return the files of a fork, one for each member of the disk under test."""
        members = range(len(self.spec.disk.member_places))
        return [self.directory_of(name) / MEMBER_FILE.format(number) for number in members]

    def attached(self, name: str, *, written: bool = False) -> tuple[MemoryDisk, ...]:
        """Return a fork as disks of a guest. Unless ``written``, the guest's writes do not reach the files."""
        sizes = [self.spec.disk.memory_disks[place] for place in self.spec.disk.member_places]
        pairs = zip(self.files(name), sizes, strict=True)
        return tuple(MemoryDisk(path, size, written=written) for path, size in pairs)

    def take(self, name: str, files: Sequence[Path], cleanup: ExitStack, *, is_last: bool) -> None:
        """Fork the disk in ``files``. The last fork is the disk itself."""
        self._make_room(name, cleanup)
        for path, target in zip(files, self.files(name), strict=True):
            if is_last:
                path.rename(target)
            else:
                self.disk_files.copy(path, target)

    def create(self, name: str, cleanup: ExitStack) -> None:
        """Create an empty disk in the place of a fork."""
        self._make_room(name, cleanup)
        for disk in self.attached(name):
            self.disk_files.create(disk.path, disk.size)

    def remove(self, name: str) -> None:
        for path in self.files(name):
            self.disk_files.remove(path)

    def _make_room(self, name: str, cleanup: ExitStack) -> None:
        """Create a fork's directory, which ``cleanup`` removes with the files in it."""
        directory = self.directory_of(name)
        directory.mkdir()
        cleanup.callback(directory.rmdir)
        for path in self.files(name):
            cleanup.callback(self.disk_files.remove, path)
