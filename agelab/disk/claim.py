"""Claims: a real disk is opened once, exclusively, and is this run's until its end.

Everything is checked through that one descriptor, and QEMU is handed the descriptor's own path: a name that
comes to mean another device after the check changes nothing. The kernel refuses an exclusive open of a block
device that is mounted, is swap, belongs to md, LVM or dm, or has a partition that is or does; and as long as the
claim is held it refuses all of these to others. Since it is held for the whole run, what the first cell writes does
not lock out the second.
"""

import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agelab.disk import device_state, pci
from agelab.disk.spec import DriveSpec
from agelab.errors import AgelabError, HostError, InputError

PAGE = 4096


@dataclass(frozen=True)
class ClaimedDisk:
    """One disk with all that decides whether it may be written to."""

    label: str
    """How the user knows it, for messages."""
    descriptor: int
    size: int
    serial: str | None
    token: str
    signatures: tuple[str, ...]

    @property
    def erase_name(self) -> str:
        """What the user names to have it erased: its serial, or where it has none the token."""
        return self.serial or self.token


@dataclass(frozen=True)
class DriveClaim:
    """A real drive that is this run's own until ``claimed`` ends."""

    spec: DriveSpec
    disks: tuple[ClaimedDisk, ...]
    """One for ``file`` and ``block``; for ``pci`` each disk of the controller."""

    @property
    def size(self) -> int:
        """Bytes; for a controller those of its smallest disk."""
        return min(disk.size for disk in self.disks)

    @property
    def token(self) -> str:
        """The identity token as it was when the claim was made."""
        return self.disks[0].token

    @property
    def source(self) -> str:
        """What QEMU is given: a path that opens the claimed device itself, or the PCI address."""
        return (
            self.spec.name
            if self.spec.kind == "pci"
            else device_state.descriptor_path(self.disks[0].descriptor)
        )

    def problem(self) -> str | None:
        """Why the drive is not what was claimed any more, or None: ask before a boot and after a failure."""
        if self.spec.kind == "pci":
            return pci.problem(self.spec.name, [disk.descriptor for disk in self.disks])
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
    """Hold the real drives among ``specs``, in their order, for as long as the body runs.

    ``erase`` has the serials or tokens of disks whose disk may be overwritten. Raises HostError for a drive
    that is in use or cannot be had, InputError for one with disk that ``erase`` does not name, or for a name in
    ``erase`` that is none of theirs. Nothing is written.
    """
    with ExitStack() as stack:
        claims = tuple(DriveClaim(spec, _open_disks(spec, stack)) for spec in specs if spec.real)
        _refuse_data([disk for claim in claims for disk in claim.disks], erase)
        yield claims


def _refuse_data(disks: Sequence[ClaimedDisk], erase: Collection[str]) -> None:
    """Refuse every disk with disk that is not named, all in one error."""
    full = [disk for disk in disks if disk.signatures and disk.erase_name not in erase]
    if full:
        kinds = [f"{disk.label} ({_identity(disk)}) holds data: {_content_summary(disk)}" for disk in full]
        named = [disk.erase_name for disk in disks if disk.erase_name in erase]
        words = ",".join([*named, *dict.fromkeys(disk.erase_name for disk in full)])
        raise InputError(
            "\n".join(kinds),
            hint=f"nothing was written. To lose all of it, run again with --erase {words} (make: ERASE={words})",
        )
    for name in erase:
        if name not in (disk.erase_name for disk in disks):
            there = (
                ", ".join(f"{disk.label} is {disk.erase_name}" for disk in disks) or "there is no real disk"
            )
            raise InputError(f"--erase {name}: no disk of this run is called so; {there}")


def _identity(disk: ClaimedDisk) -> str:
    name = f"serial {disk.serial}" if disk.serial else f"no serial, token {disk.token}"
    return f"{name}, {disk.size} bytes"


def _content_summary(disk: ClaimedDisk) -> str:
    return ", ".join(dict.fromkeys(name.partition(" at ")[0] for name in disk.signatures))


def _open_disks(spec: DriveSpec, stack: ExitStack) -> tuple[ClaimedDisk, ...]:
    if spec.kind == "pci":
        devices = pci.disks(spec.name)
        disks = tuple(
            _claim_block(f"{spec.kind}:{spec.name} disk {path.name}", path, stack) for path in devices
        )
        pci.require_own_iommu_group(spec.name)
        return disks
    path = Path(spec.name)
    what = f"{spec.kind}:{path}"
    return ((_claim_block if spec.kind == "block" else _claim_file)(what, path, stack),)


def _claimed_disk(what: str, descriptor: int) -> ClaimedDisk:
    return ClaimedDisk(
        label=what,
        descriptor=descriptor,
        size=device_state.size(descriptor),
        serial=device_state.serial(descriptor),
        token=device_state.identity_token(descriptor),
        signatures=device_state.signatures(descriptor),
    )


def _claim_block(what: str, path: Path, stack: ExitStack) -> ClaimedDisk:
    descriptor = _open(what, path, True, stack)
    if uses := [
        *device_state.block_device_users(device_state.descriptor_path(descriptor)),
        *device_state.unlocked_users(descriptor),
    ]:
        raise _in_use(what, uses)
    _lock(what, descriptor)
    if device_state.size(descriptor) == 0:
        raise HostError(f"{what} has no medium in it")
    return _claimed_disk(what, descriptor)


def _claim_file(what: str, path: Path, stack: ExitStack) -> ClaimedDisk:
    descriptor = _open(what, path, False, stack)
    _lock(what, descriptor)
    if uses := device_state.unlocked_users(descriptor):
        raise _in_use(what, uses)
    if device_state.size(descriptor) == 0:
        raise InputError(f"{what} is empty", hint=f"give it a size: truncate -s 10G {path}")
    return _claimed_disk(what, descriptor)


def _open(what: str, path: Path, block: bool, stack: ExitStack) -> int:
    more = os.O_EXCL if block else 0
    try:
        _require_kind(what, path.stat().st_mode, block)  # some devices do things when they are opened
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | more)
    except OSError as error:
        raise _open_error(what, path, error, block) from error
    stack.callback(os.close, descriptor)
    _require_kind(what, os.fstat(descriptor).st_mode, block)
    return descriptor


def _require_kind(what: str, mode: int, block: bool) -> None:
    if block and not stat.S_ISBLK(mode):
        hint = "a file is file:<path>" if stat.S_ISREG(mode) else ""
        raise InputError(f"{what} is not a block device", hint=hint)
    if not block and not stat.S_ISREG(mode):
        hint = "a device is block:<device>" if stat.S_ISBLK(mode) else ""
        raise InputError(f"{what} is not a regular file", hint=hint)


def _open_error(what: str, path: Path, error: OSError, block: bool) -> AgelabError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        hint = "ls -l /dev/disk/by-id shows the disks" if block else f"to make one: truncate -s 10G {path}"
        return InputError(f"{what} does not exist", hint=hint)
    if error.errno in (errno.EBUSY, errno.ETXTBSY):
        return _in_use(what, device_state.block_device_users(str(path)) if block else ["it is swap space"])
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = (
            "run as root, or as a user of the device's group" if block else "make it writable for this user"
        )
        return HostError(f"{what} cannot be written: {os.strerror(error.errno)}", hint=hint)
    return HostError(f"{what} cannot be opened: {os.strerror(error.errno or errno.EIO)}")


def _lock(what: str, descriptor: int) -> None:
    """The lock by which udev and partitioning programs know that a disk is not theirs."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _in_use(what, ["another program has locked it"]) from error


def _in_use(what: str, uses: Sequence[str]) -> HostError:
    why = "; ".join(dict.fromkeys(uses)) or "another program, or another run, holds it"
    return HostError(
        f"{what} is in use: {why}",
        hint="nothing was written; unmount or stop what uses it, or name another disk",
    )


def _read_page(descriptor: int) -> None:
    """Read the first page from the device, not from memory."""
    reader = os.open(device_state.descriptor_path(descriptor), os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a filesystem without direct access; its files do not go away
            fcntl.fcntl(reader, fcntl.F_SETFL, os.O_DIRECT)
        with mmap.mmap(-1, PAGE) as page:
            os.preadv(reader, [page], 0)
    finally:
        os.close(reader)
