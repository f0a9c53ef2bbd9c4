"""Facts about a device or file through one open descriptor: identity and content.

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
from collections.abc import Iterator
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
    return directory_of(os.fstat(descriptor).st_rdev, sys)


def directory_of(number: int, sys: Path = SYS) -> Path:
    """Return the directory in sysfs of the block device of this number."""
    return (sys / f"dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def has_direct_io(descriptor: int) -> bool:
    """Return whether a file can be read past the page cache (O_DIRECT, open(2))."""
    try:
        os.close(os.open(descriptor_path(descriptor), os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT))
    except OSError as error:
        return error.errno != errno.EINVAL
    return True


def is_optical(directory: Path) -> bool:
    """Return whether a device in sysfs is a drive for CDs or DVDs: SCSI's device type 5 (include/scsi/scsi_proto.h)."""
    return read_text(directory / "device/type") == "5"


def is_read_only(descriptor: int, sys: Path = SYS) -> bool:
    """Return whether the kernel lets nobody write to a block device."""
    return read_text(device_directory(descriptor, sys) / "ro") == "1"


def serial(descriptor: int, sys: Path = SYS) -> str | None:
    """Return the serial number of the disk (for a partition, of its disk), or None."""
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
        return None
    disk = device_directory(descriptor, sys)
    if (disk / "partition").exists():
        disk = disk.parent
    for name in ("serial", "device/serial"):
        if found := read_text(disk / name):
            return found
    page = disk / "device/vpd_pg80"  # SCSI and ATA: four bytes of header, then the number
    if page.exists() and (found := fileio.read_bytes(page)[4:].decode("ascii", "replace").strip(" \0")):
        return found
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


def identity_token(descriptor: int, seen: tuple[str, ...], sys: Path = SYS) -> str:
    """Return a token that changes with the device, its size, what was seen on it, or the data at its start and end."""
    found, length = os.fstat(descriptor), size(descriptor)
    said: list[Any] = [length, seen]
    if stat.S_ISBLK(found.st_mode):
        directory = device_directory(descriptor, sys)
        disk = directory.parent if (directory / "partition").exists() else directory
        said += [found.st_rdev, read_text(disk / "diskseq"), read_text(disk / "loop/backing_file")]
    else:
        said += [found.st_dev, found.st_ino]
    content = hashlib.sha256(json.dumps(said).encode())
    for start in (0, max(0, length - MIB)):
        with suppress(OSError):  # what cannot be read was seen
            content.update(os.pread(descriptor, MIB, start))
    return f"disk-{content.hexdigest()[:16]}"
