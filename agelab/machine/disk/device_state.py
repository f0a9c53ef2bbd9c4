"""Facts about a device or file through one open descriptor: identity, content and users.

Users are named in words: what would lose data, or disturb, if the disk were written to. An exclusive open is refused
for some of these uses; it names none, and lets others pass.

Signatures come from a program of util-linux, which gets the descriptor's path: it examines the device that was opened,
whatever its name refers to by then.
"""

import errno
import fcntl
import hashlib
import json
import os
import stat
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agelab.base import fileio, process

MIB = 1 << 20
EDGE = 4 * MIB
"""Bytes at a device's start and end that are looked at."""
PLACES, PIECE = 1024, MIB // 4
"""Places of a device, spread evenly, that are looked at, and bytes around each."""
SHOWN = 16
"""Bytes that are shown of what was found."""
ZEROS = bytes(MIB)
SYS = Path("/sys")
_BLKGETSIZE64 = 0x80081272


def descriptor_path(descriptor: int) -> str:
    """Return a path that opens the same file as ``descriptor``, for any program of this user while it stays open."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def size(descriptor: int) -> int:
    """Return the size of a block device or file in bytes; 0 for a device that has gone."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    return int(struct.unpack("Q", fcntl.ioctl(descriptor, _BLKGETSIZE64, bytes(8)))[0])


def signatures(descriptor: int) -> tuple[str, ...]:
    """Return the signatures found: partition tables, filesystems, members of md, LVM and the like."""
    printed = process.run(["wipefs", "--no-act", "--json", descriptor_path(descriptor)]).stdout
    entries = json.loads(printed)["signatures"] if printed.strip() else []
    return tuple(sorted(f"{entry['type']} at {entry['offset']}" for entry in entries))


def unsigned_data(descriptor: int) -> str:
    """Return the first data found that are not zeros, as a message has them, or "".

    A file is read throughout, but for its holes; a device where ``_sampled`` says.
    """
    length = size(descriptor)
    in_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    for start, end in _written(descriptor, length) if in_file else _sampled(length):
        for at in range(start, end, MIB):
            try:
                piece = os.pread(descriptor, min(MIB, end - at), at)
            except OSError as error:
                return f"what cannot be read at byte {at} ({os.strerror(error.errno or errno.EIO)})"
            if piece != ZEROS[: len(piece)]:
                data = piece.lstrip(b"\0")
                shown = repr(data[:SHOWN].rstrip(b"\0")).removeprefix("b")
                return f"{shown} at byte {at + len(piece) - len(data)}, where an empty disk has zeros"
    return ""


def _written(descriptor: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the parts of a file that are no holes."""
    end = 0
    while end < length:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # holes from here on
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def _sampled(length: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the parts of a device that are looked at.

    They are its start and end; 2 MiB from each power of two on, where first partitions and copies of superblocks begin;
    and places that are spread evenly, which cover a small device.
    """
    step = max(PIECE, length // PLACES)
    parts = [
        (0, EDGE),
        (length - EDGE, length),
        *((1 << power, (1 << power) + 2 * MIB) for power in range(20, length.bit_length())),
        *((at - PIECE // 2, at + PIECE // 2) for at in range(0, length + step, step)),
    ]
    for start, end in parts:
        yield max(0, start), min(end, length)


def device_directory(descriptor: int, sys: Path = SYS) -> Path:
    """Return the device's directory in sysfs, found by device number."""
    return directory_of(os.fstat(descriptor).st_rdev, sys)


def directory_of(number: int, sys: Path = SYS) -> Path:
    """Return the directory in sysfs of the block device of this number."""
    return (sys / f"dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def has_direct_io(descriptor: int) -> bool:
    """Return True if a file can be read past the page cache (O_DIRECT, open(2))."""
    try:
        os.close(os.open(descriptor_path(descriptor), os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT))
    except OSError as error:
        return error.errno != errno.EINVAL
    return True


def is_optical(directory: Path) -> bool:
    """Return True if a device in sysfs is a drive for CDs or DVDs: SCSI's device type 5 (include/scsi/scsi_proto.h)."""
    return read_text(directory / "device/type") == "5"


def is_read_only(descriptor: int) -> bool:
    """Return True if the kernel lets nobody write to a block device."""
    return read_text(device_directory(descriptor) / "ro") == "1"


def serial(descriptor: int, sys: Path = SYS) -> str | None:
    """Return the serial number of the disk (for a partition, of its disk), or None."""
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
        return None
    disk = device_directory(descriptor, sys)
    if (disk / "partition").exists():
        disk = disk.parent
    for name in ("serial", "device/serial"):
        if number := read_text(disk / name):
            return number
    page = disk / "device/vpd_pg80"  # SCSI and ATA: four bytes of header, then the number
    if page.exists() and (number := fileio.read_bytes(page)[4:].decode("ascii", "replace").strip(" \0")):
        return number
    if not (disk / "device").exists():
        return None
    for ancestor in (disk / "device").resolve().parents:
        if (ancestor / "idVendor").exists():  # the USB device that is the disk or contains it
            return read_text(ancestor / "serial")
    return None


def read_text(path: Path) -> str | None:
    """Return what a file of one line says, or None where there is none or it says nothing."""
    try:
        return fileio.read_text(path, errors="replace").strip(" \0\n") or None
    except OSError:
        return None


def identity_token(descriptor: int, seen: tuple[str, ...]) -> str:
    """Return a token that changes with the device, its size, what was seen on it, or the data at its start and end."""
    status, length = os.fstat(descriptor), size(descriptor)
    facts: list[Any] = [length, seen]
    if stat.S_ISBLK(status.st_mode):
        directory = device_directory(descriptor)
        disk = directory.parent if (directory / "partition").exists() else directory
        facts += [status.st_rdev, read_text(disk / "diskseq"), read_text(disk / "loop/backing_file")]
    else:
        facts += [status.st_dev, status.st_ino]
    content = hashlib.sha256(json.dumps(facts).encode())
    for start in (0, max(0, length - MIB)):
        with suppress(OSError):  # what cannot be read was seen
            content.update(os.pread(descriptor, MIB, start))
    return f"disk-{content.hexdigest()[:16]}"


PROC = Path("/proc")
CONFIG = SYS / "kernel/config"
"""Where the kernel's targets are set up (Documentation/filesystems/configfs.rst of Linux)."""
_FLOCK = "hhqqi4x"
"""struct flock of fcntl(2): type, whence, start, length, pid."""
_DEVICE_OPTIONS = ("logdev", "rtdev")
"""Mount options of XFS that name a second device (xfs(5))."""


def device_users(descriptor: int) -> list[str]:
    """Return the uses of a device or file on this host.

    A user of a disk uses its partitions too, a user of a partition part of its disk, and a user of what a device lies
    on the device.
    """
    uses, names = _shared_users(descriptor), _names(descriptor)
    if names:
        uses = [*block_device_users(descriptor_path(descriptor)), *_kernel_users(descriptor, names), *uses]
    return list(dict.fromkeys([*uses, *_openers(descriptor, names)]))


def users_of_held(path: Path) -> list[str]:
    """Return the uses of a device that cannot be opened exclusively: also those that only hold it in memory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:  # this user may not look at it
        return block_device_users(str(path))
    try:
        if users := device_users(descriptor):
            return users
        names = _names(descriptor)
        return [*_unmounted_users(names), *_openers(descriptor, names, writing=False)]
    finally:
        os.close(descriptor)


def block_device_users(path: str) -> list[str]:
    """Return the uses of a block device or its partitions on this host: mounts, swap, md, LVM, dm-crypt."""
    # Without --tree what lies on a device is no child of it.
    words = ["lsblk", "--json", "--tree", "--output", "PATH,TYPE,MOUNTPOINTS", path]
    printed = process.run(words, ok=(0, 1, 32, 64)).stdout
    return [use for top in json.loads(printed or "{}").get("blockdevices", []) for use in _uses(top)]


def _uses(node: dict[str, Any]) -> Iterator[str]:
    for point in node.get("mountpoints") or []:
        if point == "[SWAP]":
            yield f"{node['path']} is swap space"
        elif point:
            yield f"{node['path']} is mounted on {point}"
    for child in node.get("children", []):
        if child["type"] != "part":
            yield f"{node['path']} is part of {child['path']} ({child['type']})"
        yield from _uses(child)


def _shared_users(descriptor: int) -> list[str]:
    """Return the uses that an exclusive open does not exclude: loop devices, swap, virtual machines."""
    uses = _unlocked_users(descriptor, "it")
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
        return uses
    directory = device_directory(descriptor)
    own = [directory, *_beneath(directory)]
    names = {str(_node(device)) for device in own}
    files = [Path(loop["back-file"]) for loop in _loops() if loop["name"] in names]
    uses += [use for file in files if file.is_block_device() for use in block_device_users(str(file))]
    uses += _other_loops(names)
    for node in dict.fromkeys([*map(_node, (*_inside(directory), *own[1:])), *files]):
        try:
            other = os.open(node, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:  # this user may have access to one partition only
            continue
        try:
            uses += _unlocked_users(other, str(node), names)
        finally:
            os.close(other)
    return uses


def _node(directory: Path) -> Path:
    """Return the device node of a directory in sysfs."""
    return Path("/dev") / directory.name.replace("!", "/")


def _inside(directory: Path) -> list[Path]:
    """Return the directories in sysfs of a disk's partitions."""
    return [part.parent for part in sorted(directory.glob("*/partition"))]


def _beneath(directory: Path) -> list[Path]:
    """Return the directories in sysfs of the devices that one lies on.

    They are a partition's disk, the members of dm and md, and the device behind a loop device.
    """
    below = [member.resolve() for member in sorted(directory.glob("slaves/*"))]
    if (directory / "partition").exists():
        below.append(directory.parent)
    backing = read_text(directory / "loop/backing_file")
    if backing and Path(backing).is_block_device():
        below.append(directory_of(Path(backing).stat().st_rdev))
    return [path for device in below for path in (device, *_beneath(device))]


def _other_loops(names: Collection[str]) -> Iterator[str]:
    """Yield the uses by other loop devices of the files that those of these names are over."""
    loops = _loops()
    files = {_backing_of(loop): loop["back-file"] for loop in loops if loop["name"] in names}
    for loop in loops:
        if loop["name"] not in names and (file := files.get(_backing_of(loop))):
            yield f"{loop['name']} is a loop device over {file}"
            yield from block_device_users(loop["name"])


def _unlocked_users(descriptor: int, what: str, but: Collection[str] = ()) -> list[str]:
    status = os.fstat(descriptor)
    uses = [f"{loop} is a loop device over {what}" for loop in _loops_over(status) if loop not in but]
    for line in fileio.read_text(Path("/proc/swaps"), errors="surrogateescape").splitlines()[1:]:
        swap = Path(line.split()[0].replace("\\040", " "))
        if swap.exists() and os.path.samestat(swap.stat(), status):
            uses.append(f"{what} is swap space")
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    if answer[0] != fcntl.F_UNLCK:
        uses.append(f"another program has locked {what}, as virtual machines do")
    return uses


def _loops_over(status: os.stat_result) -> Iterator[str]:
    for loop in _loops():
        backing = Path(loop["back-file"])
        if stat.S_ISBLK(status.st_mode):
            same = backing.is_block_device() and backing.stat().st_rdev == status.st_rdev
        else:
            same = _backing_of(loop) == (status.st_dev, status.st_ino)
        if same:
            yield loop["name"]


def _backing_of(loop: dict[str, Any]) -> tuple[int, int] | str:
    """Return device and inode of the file that a loop device is over.

    The kernel tells them to whoever may open the device; for others it is what the file's name leads to, else the name.
    """
    if loop["back-maj:min"]:
        return os.makedev(*map(int, loop["back-maj:min"].split(":"))), int(loop["back-ino"])
    with suppress(OSError):
        status = Path(loop["back-file"]).stat()
        return status.st_dev, status.st_ino
    return str(loop["back-file"])


def _loops() -> list[dict[str, Any]]:
    """Return what losetup says of each loop device."""
    words = ["losetup", "--json", "--list", "--output", "NAME,BACK-INO,BACK-MAJ:MIN,BACK-FILE"]
    return list(json.loads(process.run(words).stdout or "{}").get("loopdevices", []))


def _names(descriptor: int) -> dict[int, str]:
    """Map the numbers of a device, its partitions and what it lies on to their names; a file has none."""
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
        return {}
    own = device_directory(descriptor)
    numbers = {directory: read_text(directory / "dev") for directory in (own, *_inside(own), *_beneath(own))}
    return {
        os.makedev(*map(int, text.split(":"))): str(_node(directory)) for directory, text in numbers.items() if text
    }


def _kernel_users(descriptor: int, names: Mapping[int, str]) -> Iterator[str]:
    """Yield the uses by filesystems, zram and the kernel's targets that lsblk does not show."""

    def named(path: str | None) -> str | None:
        """Return the name of the device of this path, if it is one of ``names``."""
        with suppress(OSError, ValueError):
            return names.get(Path(path).stat().st_rdev) if path else None
        return None

    beneath = [str(_node(directory)) for directory in _beneath(device_directory(descriptor))]
    yield from _mounts_elsewhere(names, named)
    for device in sorted(SYS.glob("fs/btrfs/*/devices/*")):
        if node := named(f"/dev/{device.name}"):
            yield f"{node} is one of the disks of a btrfs that is mounted"
    for member in sorted(SYS.glob("fs/bcache/*/[bc]*[0-9]")):  # bdev* and cache* of a set
        node = named(f"/dev/{member.resolve().parent.name}")
        if node and node not in beneath:  # of a bcache itself they are
            yield f"{node} is part of a bcache"
    for journal in sorted(PROC.glob("fs/jbd2/*")):  # an inner journal has its inode's number in its name
        if node := named(f"/dev/{journal.name}"):
            yield f"{node} is the journal of a filesystem that is mounted"
    for backing in sorted(SYS.glob("block/zram*/backing_dev")):
        if node := named(read_text(backing)):
            yield f"{node} is the backing device of /dev/{backing.parent.name}"
    for kind, pattern in (
        ("NVMe", "nvmet/subsystems/*/namespaces/*/device_path"),
        ("SCSI", "target/core/*/*/udev_path"),
    ):
        for exported in sorted(CONFIG.glob(pattern)):
            if node := named(read_text(exported)):
                yield f"{node} is exported by the kernel's {kind} target ({exported.parent.relative_to(CONFIG)})"


def _mounts_elsewhere(names: Mapping[int, str], named: Callable[[str | None], str | None]) -> Iterator[str]:
    """Yield the mounts in any mount namespace of this host, and the second devices of mounted filesystems."""
    own = (PROC / "self/ns/mnt").stat().st_ino
    seen: set[int] = set()
    for place in _processes():
        with suppress(OSError, ValueError):
            space = (place / "ns/mnt").stat().st_ino
            if space in seen:
                continue
            seen.add(space)
            where = "" if space == own else f", in the mount namespace of {_command(place)}"
            for line in fileio.read_text(place / "mountinfo", errors="surrogateescape").splitlines():
                before, _, after = line.partition(" - ")
                number, point = before.split()[2], before.split()[4]
                options = dict(word.partition("=")[::2] for word in after.split()[-1].split(","))
                if node := names.get(os.makedev(*map(int, number.split(":")))):
                    yield f"{node} is mounted on {point}{where}"
                for option in _DEVICE_OPTIONS:
                    if node := named(options.get(option)):
                        yield f"{node} is a part ({option}) of the filesystem that is mounted on {point}{where}"


def _processes() -> Iterator[Path]:
    """Yield the directories in /proc of the other processes that this user may ask."""
    own = str(os.getpid())
    return (place for place in PROC.glob("[0-9]*") if place.name != own)


def _command(place: Path) -> str:
    return f"process {place.name} ({read_text(place / 'comm') or 'no name'})"


def _open_files(place: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the open files of a process that have a path."""
    with suppress(OSError):
        for link in (place / "fd").iterdir():
            with suppress(OSError):
                if fileio.link_text(link).startswith("/"):
                    yield link, link.stat()


def _openers(descriptor: int, names: Mapping[int, str], *, writing: bool = True) -> Iterator[str]:
    """Yield the processes that have a device or file open, for writing unless told otherwise."""
    asked = os.fstat(descriptor)
    block = stat.S_ISBLK(asked.st_mode)
    for place in _processes():
        for link, status in _open_files(place):
            same = status.st_rdev in names if block else os.path.samestat(status, asked)
            if same and stat.S_ISBLK(status.st_mode) == block and (not writing or _writes(place, link.name)):
                what = names.get(status.st_rdev, "it")
                yield f"{_command(place)} has {what} open{' for writing' if writing else ''}"


def _writes(place: Path, number: str) -> bool:
    """Return True if a process may write to one of its open files (proc(5), fdinfo)."""
    text = read_text(place / "fdinfo" / number) or ""
    flags = next((line.split()[1] for line in text.splitlines() if line.startswith("flags:")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def _unmounted_users(names: Mapping[int, str]) -> Iterator[str]:
    """Yield the processes with open files on a filesystem of these devices that is mounted nowhere any more."""
    for place in _processes():
        for _, status in _open_files(place):
            if node := names.get(status.st_dev):
                yield f"{node} was unmounted while {_command(place)} had files on it open, which it still has"
