"""Facts about a device or file through one open descriptor: identity, content, users.

Signatures and users come from util-linux programs, which get the descriptor's path: they examine the device that was
opened, whatever its name refers to by then.
"""

import errno
import fcntl
import hashlib
import json
import os
import stat
import struct
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from agelab import fileio, process

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
_FLOCK = "hhqqi4x"
"""struct flock of fcntl(2): type, whence, start, length, pid."""


def descriptor_path(descriptor: int) -> str:
    """Return a path that opens the same file as ``descriptor``, for any program of this user while it stays open."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def size(descriptor: int) -> int:
    """Return the size of a block device or file in bytes; 0 for a device that has gone."""
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return found.st_size
    return int(struct.unpack("Q", fcntl.ioctl(descriptor, _BLKGETSIZE64, bytes(8)))[0])


def signatures(descriptor: int) -> tuple[str, ...]:
    """Return the signatures found: partition tables, filesystems, members of md, LVM and the like."""
    said = process.run(["wipefs", "--no-act", "--json", descriptor_path(descriptor)]).stdout
    found = json.loads(said)["signatures"] if said.strip() else []
    return tuple(sorted(f"{entry['type']} at {entry['offset']}" for entry in found))


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
    return _directory_of(os.fstat(descriptor).st_rdev, sys)


def _directory_of(number: int, sys: Path = SYS) -> Path:
    return (sys / f"dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def serial(descriptor: int, sys: Path = SYS) -> str | None:
    """Return the serial number of the disk (for a partition, of its disk), or None."""
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
        return None
    disk = device_directory(descriptor, sys)
    if (disk / "partition").exists():
        disk = disk.parent
    for name in ("serial", "device/serial"):
        if found := _read_text(disk / name):
            return found
    page = disk / "device/vpd_pg80"  # SCSI and ATA: four bytes of header, then the number
    if page.exists() and (found := fileio.read_bytes(page)[4:].decode("ascii", "replace").strip(" \0")):
        return found
    if not (disk / "device").exists():
        return None
    for ancestor in (disk / "device").resolve().parents:
        if (ancestor / "idVendor").exists():  # the USB device that is the disk or contains it
            return _read_text(ancestor / "serial")
    return None


def _read_text(path: Path) -> str | None:
    try:
        return fileio.read_text(path, errors="replace").strip(" \0\n") or None
    except OSError:
        return None


def identity_token(descriptor: int, seen: tuple[str, ...], sys: Path = SYS) -> str:
    """Return a token that changes with the device, its size, what was seen on it, or the data at its start and end."""
    found, length = os.fstat(descriptor), size(descriptor)
    said: list[Any] = [length, seen]
    if stat.S_ISBLK(found.st_mode):
        directory = device_directory(descriptor, sys)
        disk = directory.parent if (directory / "partition").exists() else directory
        said += [found.st_rdev, _read_text(disk / "diskseq"), _read_text(disk / "loop/backing_file")]
    else:
        said += [found.st_dev, found.st_ino]
    content = hashlib.sha256(json.dumps(said).encode())
    for start in (0, max(0, length - MIB)):
        with suppress(OSError):  # what cannot be read was seen
            content.update(os.pread(descriptor, MIB, start))
    return f"disk-{content.hexdigest()[:16]}"


def block_device_users(path: str) -> list[str]:
    """Return the uses of a block device or its partitions on this host: mounts, swap, md, LVM, dm-crypt."""
    words = ["lsblk", "--json", "--output", "PATH,TYPE,MOUNTPOINTS", path]
    said = process.run(words, ok=(0, 1, 32, 64)).stdout
    return [use for top in json.loads(said or "{}").get("blockdevices", []) for use in _uses(top)]


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


def unlocked_users(descriptor: int) -> list[str]:
    """Return the uses that an exclusive open does not exclude: loop devices, swap, virtual machines.

    A user of a disk uses its partitions too, a user of a partition part of its disk, and a user of what a device lies
    on the device.
    """
    uses = _unlocked_users(descriptor, "it")
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
        return uses
    directory = device_directory(descriptor)
    own = [directory, *_beneath(directory)]
    names = {str(_node(one)) for one in own}
    files = [Path(loop["back-file"]) for loop in _loops() if loop["name"] in names]
    uses += [use for file in files if file.is_block_device() for use in block_device_users(str(file))]
    uses += _other_loops(names)
    inside = (part.parent for part in sorted(directory.glob("*/partition")))
    for node in dict.fromkeys([*map(_node, (*inside, *own[1:])), *files]):
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


def _beneath(directory: Path) -> list[Path]:
    """Return the directories in sysfs of the devices that one lies on.

    They are a partition's disk, the members of dm and md, and the device behind a loop device.
    """
    below = [member.resolve() for member in sorted(directory.glob("slaves/*"))]
    if (directory / "partition").exists():
        below.append(directory.parent)
    backing = _read_text(directory / "loop/backing_file")
    if backing and Path(backing).is_block_device():
        below.append(_directory_of(Path(backing).stat().st_rdev))
    return [found for one in below for found in (one, *_beneath(one))]


def _other_loops(names: Collection[str]) -> Iterator[str]:
    """Yield the uses by other loop devices of the files that those of these names are over."""
    loops = _loops()
    files = {_backing_of(loop): loop["back-file"] for loop in loops if loop["name"] in names}
    for loop in loops:
        if loop["name"] not in names and (file := files.get(_backing_of(loop))):
            yield f"{loop['name']} is a loop device over {file}"
            yield from block_device_users(loop["name"])


def _unlocked_users(descriptor: int, what: str, but: Collection[str] = ()) -> list[str]:
    found = os.fstat(descriptor)
    uses = [f"{loop} is a loop device over {what}" for loop in _loops_over(found) if loop not in but]
    for line in fileio.read_text(Path("/proc/swaps"), errors="surrogateescape").splitlines()[1:]:
        swap = Path(line.split()[0].replace("\\040", " "))
        if swap.exists() and os.path.samestat(swap.stat(), found):
            uses.append(f"{what} is swap space")
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    if answer[0] != fcntl.F_UNLCK:
        uses.append(f"another program has locked {what}, as virtual machines do")
    return uses


def _loops_over(found: os.stat_result) -> Iterator[str]:
    for loop in _loops():
        backing = Path(loop["back-file"])
        if stat.S_ISBLK(found.st_mode):
            same = backing.is_block_device() and backing.stat().st_rdev == found.st_rdev
        else:
            same = _backing_of(loop) == (found.st_dev, found.st_ino)
        if same:
            yield loop["name"]


def _backing_of(loop: dict[str, Any]) -> tuple[int, int] | str:
    """Return device and inode of the file that a loop device is over.

    The kernel tells them to whoever may open the device; for others it is what the file's name leads to, else the name.
    """
    if loop["back-maj:min"]:
        return os.makedev(*map(int, loop["back-maj:min"].split(":"))), int(loop["back-ino"])
    with suppress(OSError):
        found = Path(loop["back-file"]).stat()
        return found.st_dev, found.st_ino
    return str(loop["back-file"])


def _loops() -> list[dict[str, Any]]:
    """Return what losetup says of each loop device."""
    words = ["losetup", "--json", "--list", "--output", "NAME,BACK-INO,BACK-MAJ:MIN,BACK-FILE"]
    return list(json.loads(process.run(words).stdout or "{}").get("loopdevices", []))
