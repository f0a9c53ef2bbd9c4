"""The files of a guest's disks: on the host's disk, or in memory behind a link with the file's name.

A file in memory has no name of its own (memfd_create(2)): the link leads to the descriptor of this process, so the
kernel frees it when agelab and the guest have ended, however they end. All that names the file finds it where it is on
disk, QEMU's command and the cell's inputs too.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agelab.store import stored_disk

_OWN = re.compile(rf"/proc/{os.getpid()}/fd/(\d+)")


@dataclass(frozen=True)
class DiskFiles:
    """Creates, copies and removes the disks of a cell while it runs."""

    in_memory: bool = False

    def create(self, path: Path, size: int) -> None:
        """Create a disk of so many bytes, a hole from end to end, as long as its slot."""
        self._begin(path)
        os.truncate(path, stored_disk.slot_bytes(size))

    def copy(self, source: Path, path: Path) -> None:
        """Copy a disk, without its holes."""
        self._begin(path)
        stored_disk.sparse_copy(source, path)

    def remove(self, path: Path) -> None:
        """Remove a disk, if there is one."""
        target = path.readlink() if path.is_symlink() else None
        path.unlink(missing_ok=True)
        if target and (own := _OWN.fullmatch(str(target))):
            with suppress(OSError):
                os.close(int(own[1]))

    def _begin(self, path: Path) -> None:
        """Put an empty file, in memory or not, in the place of what is there."""
        self.remove(path)
        if self.in_memory:
            descriptor = os.memfd_create(path.name, os.MFD_CLOEXEC)
            path.symlink_to(f"/proc/{os.getpid()}/fd/{descriptor}")
        else:
            path.touch(exist_ok=False)
