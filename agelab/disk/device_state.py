"""Facts about a device through one open descriptor: identity, content, users.

Signatures and users come from util-linux programs, which get the descriptor's path: they examine the device that was
opened, whatever its name refers to by then.
"""

import fcntl
import hashlib
import json
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agelab import fileio, process

MIB = 1 << 20
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


def device_directory(descriptor: int, sys: Path = SYS) -> Path:
    """Return the device's directory in sysfs, found by device number."""
    number = os.fstat(descriptor).st_rdev
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


def identity_token(descriptor: int, sys: Path = SYS) -> str:
    """Return a token that changes with the device, its size, or the data at its beginning and end."""
    found, length = os.fstat(descriptor), size(descriptor)
    said: list[Any] = [length, signatures(descriptor)]
    if stat.S_ISBLK(found.st_mode):
        directory = device_directory(descriptor, sys)
        disk = directory.parent if (directory / "partition").exists() else directory
        said += [found.st_rdev, _read_text(disk / "diskseq"), _read_text(disk / "loop/backing_file")]
    else:
        said += [found.st_dev, found.st_ino]
    content = hashlib.sha256(json.dumps(said).encode())
    with open(descriptor_path(descriptor), "rb", buffering=0) as reader:  # noqa: PTH123 (a descriptor's path)
        for start in (0, max(0, length - MIB)):
            reader.seek(start)
            content.update(reader.read(MIB))
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

    A user of a disk uses its partitions too, and a user of a partition uses part of its disk.
    """
    uses = _unlocked_users(descriptor, "it")
    for node in _overlapping_nodes(descriptor):
        try:
            other = os.open(node, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:  # this user may have access to one partition only
            continue
        try:
            uses += _unlocked_users(other, str(node))
        finally:
            os.close(other)
    return uses


def _overlapping_nodes(descriptor: int) -> list[Path]:
    """Return the device nodes of a disk's partitions; for a partition, that of its disk."""
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
        return []
    directory = device_directory(descriptor)
    inside = (part.parent for part in sorted(directory.glob("*/partition")))
    others = [directory.parent] if (directory / "partition").exists() else inside
    return [Path("/dev") / other.name.replace("!", "/") for other in others]


def _unlocked_users(descriptor: int, what: str) -> list[str]:
    found = os.fstat(descriptor)
    uses = [f"{loop} is a loop device over {what}" for loop in _loops_over(found)]
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
    said = process.run(
        ["losetup", "--json", "--list", "--output", "NAME,BACK-INO,BACK-MAJ:MIN,BACK-FILE"]
    ).stdout
    for loop in json.loads(said or "{}").get("loopdevices", []):
        number = os.makedev(*(int(part) for part in loop["back-maj:min"].split(":")))
        backing = Path(loop["back-file"])
        if stat.S_ISBLK(found.st_mode):
            same = backing.is_block_device() and backing.stat().st_rdev == found.st_rdev
        else:
            same = (number, int(loop["back-ino"])) == (found.st_dev, found.st_ino)
        if same:
            yield loop["name"]
