"""Exclusive claims on real disks, held for the whole run.

Each disk is opened once. All checks use that descriptor, and QEMU gets the descriptor's path, so it does not matter
if the name refers to another device later. The kernel refuses an exclusive open of a block device that is mounted,
swap, or a member of md, LVM or dm, or has such a partition; while the claim is held it refuses these uses to others.
The claim outlasts single cells, so what the first cell writes does not lock out the second.
"""

import errno
import fcntl
import mmap
import os
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agelab.base import atomic
from agelab.base.errors import AgelabError, HostError, InputError
from agelab.machine.disk import device_state, pci
from agelab.machine.disk.spec import DIRECT, DriveSpec

PAGE = 4096
UDEV_SECONDS = 5.0
"""Seconds that udev may take to look at a device that somebody has just written to."""
BY_ID = Path("/dev/disk/by-id")


@dataclass(frozen=True)
class ClaimedDisk:
    """One claimed disk, and the facts that decide whether it may be overwritten."""

    label: str
    """Name of the disk in messages."""
    descriptor: int
    size: int
    serial: str | None
    token: str
    signatures: tuple[str, ...]
    unsigned: str = ""
    """The first data found on a disk without signatures."""

    @property
    def content(self) -> str:
        """What lies on the disk, in words; "" for an empty one."""
        return ", ".join(dict.fromkeys(name.partition(" at ")[0] for name in self.signatures)) or self.unsigned

    @property
    def erase_name(self) -> str:
        """Name for --erase: the serial number, or the identity token of a disk without one."""
        return self.serial or self.token


@dataclass(frozen=True)
class DriveClaim:
    """A real drive claimed until ``claim_drives`` exits."""

    spec: DriveSpec
    disks: tuple[ClaimedDisk, ...]
    """One disk for ``file`` and ``block``; each disk of the controller for ``pci``."""

    @property
    def size(self) -> int:
        """Size in bytes; for a controller that of its smallest disk."""
        return min(disk.size for disk in self.disks)

    @property
    def token(self) -> str:
        """Identity token at the time of the claim."""
        return self.disks[0].token

    @property
    def source(self) -> str:
        """Path of the claimed device for QEMU, or the PCI address."""
        return self.spec.name if self.spec.kind == "pci" else device_state.descriptor_path(self.disks[0].descriptor)

    def problem(self) -> str | None:
        """Return why the drive is no longer as claimed, or None. Call it before a boot and after a failure."""
        if self.spec.kind == "pci":
            return pci.problem(self.spec.name)
        disk = self.disks[0]
        try:
            if (now := device_state.size(disk.descriptor)) != disk.size:
                gone = "it has gone" if not now else f"it has {now} bytes now, not {disk.size}"
                return f"{disk.label}: {gone}"
            _read_page(disk.descriptor)
        except OSError as error:
            return f"{disk.label}: {os.strerror(error.errno or errno.EIO)}"
        return None


@contextmanager
def claim_drives(specs: Sequence[DriveSpec], erase: Collection[str] = ()) -> Iterator[tuple[DriveClaim, ...]]:
    """Hold the real drives among ``specs``, in their order, for the duration of the body.

    ``erase`` contains serials or tokens of disks that may be overwritten. Raises HostError for a drive that is in use
    or inaccessible, InputError for a disk with data that ``erase`` does not name, or for a name in ``erase`` that
    matches no disk. Writes nothing.

    A controller is taken from the host for as long, so that nothing here touches its disks between two guests.
    """
    with ExitStack() as stack:
        behind = stack.enter_context(ExitStack())
        real = [spec for spec in specs if spec.real]
        claims = tuple(DriveClaim(spec, _open_disks(spec, behind if spec.kind == "pci" else stack)) for spec in real)
        _refuse_data([disk for claim in claims for disk in claim.disks], erase)
        stack.enter_context(pci.taken([spec.name for spec in real if spec.kind == "pci"]))
        behind.close()  # or the disks would come back under other names
        yield claims


def _refuse_data(disks: Sequence[ClaimedDisk], erase: Collection[str]) -> None:
    """Raise one InputError for all disks with data that ``erase`` does not name, and for unknown names in it."""
    names = [disk.erase_name for disk in disks]
    full = [disk for disk in disks if disk.content and disk.erase_name not in erase]
    wrong = [f"{disk.label} ({_identity(disk)}) holds data: {disk.content}" for disk in full]
    there = ", ".join(f"{disk.label} is {disk.erase_name}" for disk in disks) or "there is no real disk"
    wrong += [f"--erase {name}: no disk of this run has that name; {there}" for name in erase if name not in names]
    if wrong:
        words = ",".join([*(name for name in names if name in erase), *dict.fromkeys(disk.erase_name for disk in full)])
        hint = f"nothing was written. To lose all of it, run again with --erase {words} (make: ERASE={words})"
        raise InputError("\n".join(wrong), hint=hint if full else "")


def _identity(disk: ClaimedDisk) -> str:
    name = f"serial {disk.serial}" if disk.serial else f"no serial, token {disk.token}"
    return f"{name}, {disk.size} bytes"


def _open_disks(spec: DriveSpec, stack: ExitStack) -> tuple[ClaimedDisk, ...]:
    if spec.kind == "pci":
        what = f"{spec.kind}:{spec.name}"
        devices = pci.disks(spec.name)
        pci.require_own_iommu_group(spec.name)
        for drive in pci.optical_drives(spec.name):
            if uses := device_state.users_of_held(drive):
                raise _in_use(what, uses)
        return tuple(_claim_block(f"{what} disk {_lasting_name(path)}", path, stack) for path in devices)
    path = Path(spec.name)
    what = f"{spec.kind}:{path}"
    if spec.kind == "block":
        return (_claim_block(what, path, stack),)
    disk = _claim_file(what, path, stack)
    if spec.cache in DIRECT and not device_state.has_direct_io(disk.descriptor):
        raise InputError(
            f"{what}: its filesystem has no direct I/O, which cache={spec.cache} is",
            hint=f"move it to a disk, or name it as '{what}?cache=writeback&aio=threads'",
        )
    return (disk,)


def _claimed_disk(what: str, descriptor: int) -> ClaimedDisk:
    signatures = device_state.signatures(descriptor)
    unsigned = "" if signatures else device_state.unsigned_data(descriptor)
    return ClaimedDisk(
        label=what,
        descriptor=descriptor,
        size=device_state.size(descriptor),
        serial=device_state.serial(descriptor),
        token=device_state.identity_token(descriptor, signatures or ((unsigned,) if unsigned else ())),
        signatures=signatures,
        unsigned=unsigned,
    )


def _claim_block(what: str, path: Path, stack: ExitStack) -> ClaimedDisk:
    descriptor = _open(what, path, True, stack)
    if uses := device_state.device_users(descriptor):
        raise _in_use(what, uses)
    if device_state.is_read_only(descriptor):
        raise HostError(f"{what} is read-only", hint=f"if it should not be: blockdev --setrw {path}")
    _lock(what, descriptor, UDEV_SECONDS)
    if device_state.size(descriptor) == 0:
        raise HostError(f"{what} has no medium in it")
    return _claimed_disk(what, descriptor)


def _claim_file(what: str, path: Path, stack: ExitStack) -> ClaimedDisk:
    descriptor = _open(what, path, False, stack)
    _lock(what, descriptor)
    if uses := device_state.device_users(descriptor):
        raise _in_use(what, uses)
    if device_state.size(descriptor) == 0:
        raise InputError(f"{what} is empty", hint=f"give it a size: truncate -s 10G {path}")
    return _claimed_disk(what, descriptor)


def _open(what: str, path: Path, block: bool, stack: ExitStack) -> int:
    more = os.O_EXCL if block else 0
    try:
        _require_kind(what, path, path.stat(), block)  # before opening, too: some devices act on open
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | more)
    except OSError as error:
        raise _open_error(what, path, error, block) from error
    stack.callback(os.close, descriptor)
    _require_kind(what, path, os.fstat(descriptor), block)
    return descriptor


def _lasting_name(device: Path) -> Path:
    """Return the name of a device that stays when the host numbers its disks anew; its own where there is none."""
    device = device.resolve()
    return next((link for link in sorted(BY_ID.glob("*")) if link.resolve() == device), device)


def _require_kind(what: str, path: Path, status: os.stat_result, block: bool) -> None:
    mode = status.st_mode
    if block and not stat.S_ISBLK(mode):
        hint = f"a file is file:{path}" if stat.S_ISREG(mode) else ""
        raise InputError(f"{what} is not a block device", hint=hint)
    if block and device_state.is_optical(device_state.directory_of(status.st_rdev)):
        raise InputError(f"{what} is a drive for CDs or DVDs, not a disk")
    if not block and stat.S_ISBLK(mode):
        raise InputError(
            f"{what} is not a file, but the device {path.resolve()}", hint=f"a device is block:{_lasting_name(path)}"
        )
    if not block and not stat.S_ISREG(mode):
        raise InputError(f"{what} is not a regular file")


def _open_error(what: str, path: Path, error: OSError, block: bool) -> AgelabError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        hint = "ls -l /dev/disk/by-id shows the disks" if block else f"to make one: truncate -s 10G {path}"
        return InputError(f"{what} does not exist", hint=hint)
    if error.errno in (errno.EBUSY, errno.ETXTBSY):
        return _in_use(what, device_state.users_of_held(path) if block else ["it is swap space"])
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = "run as root, or as a user of the device's group" if block else "make it writable for this user"
        return HostError(f"{what} cannot be written: {os.strerror(error.errno)}", hint=hint)
    return HostError(f"{what} cannot be opened: {os.strerror(error.errno or errno.EIO)}")


def _lock(what: str, descriptor: int, patience: float = 0.0) -> None:
    """Take the lock that udev and partitioning programs respect, within so many seconds."""
    until = time.monotonic() + patience
    while not atomic.try_lock(descriptor):
        if time.monotonic() >= until:
            raise _in_use(what, ["another program has locked it"])
        time.sleep(0.1)


def _in_use(what: str, uses: Sequence[str]) -> HostError:
    why = "; ".join(dict.fromkeys(uses)) or "another program, or another run, holds it"
    return HostError(
        f"{what} is in use: {why}", hint="nothing was written; unmount or stop what uses it, or name another disk"
    )


def _read_page(descriptor: int) -> None:
    """Read the first page from the device, bypassing the page cache."""
    reader = os.open(device_state.descriptor_path(descriptor), os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # the filesystem has no direct I/O; files do not disappear like devices
            fcntl.fcntl(reader, fcntl.F_SETFL, os.O_DIRECT)
        with mmap.mmap(-1, PAGE) as page:
            os.preadv(reader, [page], 0)
    finally:
        os.close(reader)
