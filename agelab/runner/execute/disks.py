"""The disks of a cell's guests as files: those under test and their forks, and the one with a boot's plan."""

import io
import os
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from agelab.base.errors import InputError
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.plan.cell_spec import CellSpec
from agelab.scenario.step import AGED
from agelab.store import stored_disk
from agelab.store.stored_disk import MEMBER_FILE, StoredDisk

_OWN = re.compile(rf"/proc/{os.getpid()}/fd/(\d+)")


PIECE = 1 << 20


@dataclass(frozen=True)
class Content:
    """What a new disk has in it, from some byte on."""

    file: Path
    at: int


@dataclass(frozen=True)
class DiskFiles:
    """Creates, copies and removes the disks of a cell while it runs."""

    in_memory: bool = False

    def create(self, disk: MemoryDisk, content: Content | None = None) -> None:
        """Create a disk, a hole from end to end but for its content, as long as its slot."""
        self._begin(disk.path)
        os.truncate(disk.path, stored_disk.slot_bytes(disk.size))
        if content:
            with content.file.open("rb") as source, disk.path.open("r+b") as target:
                target.seek(content.at)
                shutil.copyfileobj(source, target, PIECE)

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

    def create(self, name: str, cleanup: ExitStack, contents: Mapping[int, Content]) -> None:
        """Create an empty disk in the place of a fork; ``contents`` are of new drives, by their places."""
        self._make_room(name, cleanup)
        for place, disk in zip(self.spec.disk.member_places, self.attached(name), strict=True):
            self.disk_files.create(disk, contents.get(place))

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


SECRET_BLOCK = 4096
PLAN_DISK_BYTES = 256 << 20
"""Size of the disk in the guest."""
PROGRAM, DATA = 0o755, 0o644
MODULES = "modules"
_MODULE = re.compile(r"[A-Za-z0-9_+.-]+")
MOST_SHOWN = 200
"""Characters of a name that an error shows."""
ORDER = "order"
"""The file that lists the modules in the order of their insertion."""
PLACES = ("brought", "control", "jobs", "tools")
"""Directories of the files that are not agelab's own."""


@dataclass(frozen=True)
class ModuleFile:
    """A kernel module as a guest gets it."""

    image: bytes
    """ELF."""
    optional: bool = False
    """True if the guest can do without."""


def plan_archive(plan: bytes, programs: Mapping[str, bytes], modules: Mapping[str, ModuleFile]) -> bytes:
    """Return the tar plan_archive of a boot; equal content gives equal bytes.

    ``programs`` maps paths below the harness's directory to content; ``modules`` are inserted in their order. Raises
    InputError for more than the disk holds, and for a name by which a file could get anywhere but its own place.
    """
    for name in modules:
        if not _MODULE.fullmatch(name):
            raise InputError(f"the kernel has a module called {name!r}: no guest can be given it")
    for name in programs:
        if name.split("/")[0] not in PLACES:
            raise _refused_file(name, f"such files lie below {', '.join(PLACES)}")
    order = "".join(f"{name}.ko{' optional' if module.optional else ''}\n" for name, module in modules.items())
    files = {"plan.json": plan, f"{MODULES}/{ORDER}": order.encode()}
    files |= {f"{MODULES}/{name}.ko": module.image for name, module in modules.items()}
    _require_apart((*files, *programs))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:", format=tarfile.GNU_FORMAT) as tar:
        for mode, members in ((DATA, files), (PROGRAM, programs)):
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), mode
                tar.addfile(entry, io.BytesIO(data))
    data = packed.getvalue()
    if len(data) > PLAN_DISK_BYTES - SECRET_BLOCK:
        raise InputError(
            f"the programs and modules for a guest take {len(data)} bytes: there is room for {PLAN_DISK_BYTES}",
            hint="bring fewer or smaller files into the guest",
        )
    return data


def _require_apart(names: Sequence[str]) -> None:
    """Raise InputError unless each file has a place of its own: the harness unpacks them wherever their names lead."""
    files, directories = set[str](), set[str]()
    for name in names:
        parts = name.split("/")
        above = {"/".join(parts[:end]) for end in range(1, len(parts))}
        if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name or not _is_encodable(name):
            raise _refused_file(name, "its name is no plain relative path")
        if name in files or name in directories or above & files:
            raise _refused_file(name, "another file has that place")
        files.add(name)
        directories |= above


def _is_encodable(name: str) -> bool:
    try:
        return bool(name.encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        return False


def _refused_file(name: str, why: str) -> InputError:
    return InputError(f"no guest can be given the file {name[:MOST_SHOWN]!r}: {why}", hint="rename it")


def write_plan_disk(path: Path, secret: bytes, packed: bytes) -> None:
    """Write the disk of one boot."""
    with path.open("wb") as disk:
        disk.write(secret.ljust(SECRET_BLOCK, b"\0") + packed)
        disk.truncate(PLAN_DISK_BYTES)
