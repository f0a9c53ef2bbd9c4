"""The forks of a cell: where they are, and how a guest gets them."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agelab import stored_disk
from agelab.model.step_id import AGED
from agelab.runner.plan.cell_spec import CellSpec
from agelab.stored_disk import MEMBER_FILE, StoredDisk
from agelab.vm.guest import MemoryDisk


@dataclass(frozen=True)
class Forks:
    """The forks of one cell, in its directory."""

    directory: Path
    spec: CellSpec
    begins_with: StoredDisk | None
    """What stands for the aged disk's fork, where the cell does not make one."""

    def place(self, name: str) -> Path:
        """The directory of that fork, whether it is there or not."""
        if name == AGED and self.begins_with:
            return self.begins_with.artefact.directory
        return self.directory / f"fork-{name}"

    def there(self, name: str) -> bool:
        """Whether it was taken."""
        return all(path.exists() for path in self.files(name))

    def files(self, name: str) -> list[Path]:
        """What holds it, a file for each member of the disk under test."""
        return [
            self.place(name) / MEMBER_FILE.format(number) for number, _ in enumerate(self.spec.disk.content)
        ]

    def attached(self, name: str, *, written: bool = False) -> tuple[MemoryDisk, ...]:
        """It as a guest gets it. Unless it is ``written``, what the guest writes does not reach the files."""
        sizes = [self.spec.disk.backing[place] for place in self.spec.disk.content]
        pairs = zip(self.files(name), sizes, strict=True)
        return tuple(MemoryDisk(path, size, written=written) for path, size in pairs)

    def take(self, name: str, files: Sequence[Path], stack: ExitStack, *, last: bool) -> None:
        """Fork a disk that lies in ``files``; the fork goes away with the cell. The last fork is the disk itself."""
        self._room(name, stack)
        for path, target in zip(files, self.files(name), strict=True):
            if last:
                path.rename(target)
            else:
                stored_disk.sparse_copy(path, target)

    def make(self, name: str, stack: ExitStack) -> None:
        """An empty disk in a fork's place, which goes away with the cell."""
        self._room(name, stack)
        for disk in self.attached(name):
            empty(disk)

    def drop(self, name: str) -> None:
        """Let go of a fork."""
        for path in self.files(name):
            path.unlink(missing_ok=True)

    def _room(self, name: str, stack: ExitStack) -> None:
        directory = self.place(name)
        directory.mkdir()
        stack.callback(directory.rmdir)
        for path in self.files(name):
            stack.callback(path.unlink, missing_ok=True)


def empty(disk: MemoryDisk) -> None:
    """Make its file, a hole from end to end."""
    with disk.path.open("wb") as file:
        file.truncate(disk.size)
