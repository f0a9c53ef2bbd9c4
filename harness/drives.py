"""The drives of a cell, the partitions on them, and the disk under test, which is one of these or made of several.

One more may be the swap space; what is counted of the disk under test is without it, but where both are on one drive
the drive's own counters are of both.

A drive without settings is the bare memory-backed disk behind a linear mapping. With settings it is modelled
(harness/drive/): the module holds the memory-backed disks behind it, and nothing else may open them. A real drive
is the host's, given to the guest.
"""

import ctypes
import fcntl
import os
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import block_layer, machine
from harness.dilation import Dilation
from harness.plan import BlockLayer, Drive, Fork, Partition, Real

ADD = Path("/sys/module/agedrive/parameters/add")
DEVICES = Path("/dev/disk")
"""Where disks are found by name."""
SWAP_UUID = "6167656c-6162-4000-8000-000000000002"
MODULES = Path("/sys/module")
BLOCK = Path("/sys/block")
MAPPER = Path("/dev/mapper")
PLACE = re.compile(r"\{([a-z]+[0-9]*)\}")
"""A place in a command for what only the guest knows."""
BLKPG = 0x1269
BLKPG_ADD_PARTITION = 1
BLKPG_DEL_PARTITION = 2
SECTOR = 512
PAGE = 4096
"""A solid-state drive's map begins at the next such border behind the data of its first partition."""
BLANKED = 1 << 20
"""Bytes at either end of a real partition that are made zeros before its first use."""
PATIENCE = 60.0
"""Seconds for a real disk to appear: controllers look for theirs while the guest starts."""
OURS = ("pmem", "loop", "dm-", "md", "ram", "zram", "drive", "fd", "sr")
"""How block devices begin that are none of the host's disks."""

Do = Callable[[list[str], str], None]
"""Runs a command; the second argument says what for, in the words of a failure."""


class _Partition(ctypes.Structure):
    """struct blkpg_partition of linux/blkpg.h."""

    _fields_ = (
        ("start", ctypes.c_longlong),
        ("length", ctypes.c_longlong),
        ("pno", ctypes.c_int),
        ("devname", ctypes.c_char * 64),
        ("volname", ctypes.c_char * 64),
    )


class _Argument(ctypes.Structure):
    """struct blkpg_ioctl_arg of linux/blkpg.h."""

    _fields_ = (
        ("op", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("datalen", ctypes.c_int),
        ("data", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class UnderTest:
    """The disk under test, by what is counted of it."""

    members: tuple[str, ...]
    """The block devices it is made of, as in /proc/diskstats."""
    modelled: tuple[str, ...]
    """The modelled drives that these lie on, as in /sys/block."""


def set_up(
    drives: tuple[Drive, ...],
    swap: tuple[int, int] | None,
    boot: int,
    do: Do,
    dilation: Dilation,
    block: BlockLayer | None,
    *,
    blank: bool,
) -> "Attached":
    """Make the drives, and switch swap on. ``blank``: nothing is left of what was on real ones.

    Raises OSError for a drive that the kernel refuses, Refused for a queue, and what ``do`` raises.
    """
    attached = Attached(drives, attach(drives, do, dilation, block, blank=blank), do, block)
    if swap:
        space = f"/dev/{attached.names[swap[0]][swap[1]]}"
        if boot == 0:
            do(["mkswap", f"--uuid={SWAP_UUID}", space], "making the swap space")
        do(["swapon", space], "switching swap on")
    return attached


def attach(
    drives: tuple[Drive, ...], do: Do, dilation: Dilation, block: BlockLayer | None, *, blank: bool
) -> list[list[str]]:
    """Make the drives; the block devices of their partitions. ``blank``: nothing is left of what was on real ones."""
    disks = machine.disks()
    mapped = 0
    names: list[list[str]] = []
    for drive in drives:
        if drive.real:
            names.append(real(drive.real, drive.partitions, blank=blank))
        elif drive.settings is None:
            names.append([f"dm-{mapped + number}" for number, _ in enumerate(drive.partitions)])
            for number, part in enumerate(drive.partitions):
                do(linear(f"{drive.name}p{number + 1}", part, disks), "setting up the disk under test")
            mapped += len(drive.partitions)
        else:
            names.append(_model(drive, disks, dilation, block))
    return names


class Attached:
    """The drives of a guest, of whose partitions disks are put together."""

    def __init__(
        self, drives: tuple[Drive, ...], names: list[list[str]], do: Do, block: BlockLayer | None = None
    ) -> None:
        self.drives = drives
        self.names = names
        """Of each drive the block devices of its partitions."""
        self.do = do
        self.block = block
        self.made: dict[str, dict[str, str]] = {}
        """Disk that is made of members, to what its commands stand for."""

    def put_together(self, disk: Fork, *, fresh: bool) -> UnderTest:
        """Make ``/dev/disk/<its name>`` a link to the disk: the one partition, or what is made of several; what is
        counted of it."""
        members = tuple(self.names[drive][number] for drive, number in disk.members)
        device = f"/dev/{members[0]}"
        if disk.layers:
            for name, value in disk.layers.module_parameters.items():
                module, _, parameter = name.partition("/")
                if (setting := MODULES / module / "parameters" / parameter).exists():
                    setting.write_text(value)
            for path, content in disk.layers.files.items():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text(content)
            words = self.made[disk.name] = places(disk, members, len(self.made))
            device = words["device"]
            for command in disk.layers.make if fresh else disk.layers.open:
                self.do(fill(command, words), "putting the disk together")
            make_node(device)
        DEVICES.mkdir(exist_ok=True)
        (DEVICES / disk.name).symlink_to(device)
        lain_on = (self.drives[drive] for drive, _ in disk.members)
        modelled = dict.fromkeys(drive.name for drive in lain_on if drive.settings is not None)
        if disk.layers and modelled and self.block and self.block.read_ahead_kib is not None:
            block_layer.read_ahead(queue(device), self.block.read_ahead_kib)
        return UnderTest(members, tuple(modelled))

    def replacing(self, disk: Fork, member: int, commands: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
        """The one command that runs these, in which {failed} is the member on the new drive."""
        words = self.made[disk.name]
        words = {**words, "failed": words[f"member{member}"]}
        return ("sh", "-ec", "\n".join(shlex.join(fill(command, words)) for command in commands))

    def take_apart(self, disk: Fork) -> None:
        """Take the disk apart, so that another may have its identity."""
        if disk.layers and disk.name in self.made:
            for command in disk.layers.close:
                self.do(fill(command, self.made[disk.name]), "taking the disk apart")


def fail(drive: str) -> None:
    """Make a modelled drive stop answering. Raises OSError for one that is not there."""
    ADD.with_name("fail").write_text(drive)


def renew(drive: str) -> None:
    """Put a new drive in the place of a modelled one that has failed. Raises OSError."""
    ADD.with_name("renew").write_text(drive)


def places(disk: Fork, members: tuple[str, ...], number: int) -> dict[str, str]:
    """What stands in the commands of the disk that is made as the guest's so many-th, by the placeholders' names."""
    assert disk.layers is not None, "a disk that is one partition has no commands"
    words = {f"member{at}": f"/dev/{name}" for at, name in enumerate(members)}
    words |= {"name": disk.name, "number": str(number)}
    return {
        **words,
        "members": " ".join(words[f"member{at}"] for at, _ in enumerate(members)),
        "device": (disk.layers.device.replace("{number}", str(number)).replace("{name}", disk.name)),
    }


def fill(command: tuple[str, ...], words: dict[str, str]) -> list[str]:
    """Put words into a command; the members are words of their own where they stand alone."""
    argv: list[str] = []
    for word in command:
        if word == "{members}":
            argv += words["members"].split()
        else:
            argv.append(PLACE.sub(lambda place: words.get(place[1], place[0]), word))
    return argv


def make_node(device: str) -> None:
    """Make a mapped device's path a link to what the kernel calls it, where the program that made it has left it out.

    udev, which would do so, does not run.
    """
    path = Path(device)
    if path.parent != MAPPER or path.exists():
        return
    for name in BLOCK.glob("dm-*/dm/name"):
        if name.read_text().strip() == path.name:
            path.symlink_to(f"/dev/{name.parts[-3]}")


def queue(device: str) -> Path:
    """The queue of a block device in /sys, whatever its path is."""
    number = os.stat(device).st_rdev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/queue")


def linear(name: str, part: Partition, disks: list[str]) -> list[str]:
    """The command that lays a linear mapping over a memory-backed disk.

    The pmem driver takes whole pages past the block layer (pmem_rw_page, until Linux 6.3), where no counter
    sees them; through device-mapper every page is a request that counts.
    """
    table = f"0 {part.sectors} linear /dev/{_behind(part, disks)} 0"
    return ["dmsetup", "create", "--noudevsync", "--table", table, name]


def _behind(part: Partition, disks: list[str]) -> str:
    """The memory-backed disk that holds a partition's data."""
    assert part.disk is not None, "a real drive holds its own data"
    return disks[part.disk]


def _model(drive: Drive, disks: list[str], dilation: Dilation, block: BlockLayer | None) -> list[str]:
    """Add a modelled drive and its partitions, behind which alone memory stands; the partitions' names."""
    behind = ",".join(
        f"0x{machine.address(_behind(part, disks)):x}:{part.first}:{part.sectors}" for part in drive.partitions
    )
    dilation.tell_module()
    first = drive.partitions[0]
    table = machine.address(_behind(first, disks)) + -(-first.sectors * SECTOR // PAGE) * PAGE
    places = f" memory={behind}"
    if "kind=ssd" in (drive.settings or "").split():
        places += f" table=0x{table:x}"
    if drive.record:
        disk, size = drive.record
        places += f" record=0x{machine.address(disks[disk]):x}:{size}"
    try:
        ADD.write_text(f"{drive.settings}{places}")
    except OSError as error:
        raise OSError(f"the module refuses {drive.name}: {error.strerror}; the console may say why") from error
    if block:
        block_layer.set_up(Path("/sys/block", drive.name, "queue"), block, dilation)
    return partition(drive.name, drive.partitions)


def partition(disk: str, parts: tuple[Partition, ...]) -> list[str]:
    """Tell the kernel of partitions that no table on the disk names (ioctl BLKPG); their names."""
    device = os.open(f"/dev/{disk}", os.O_RDONLY)
    try:
        for stale in sorted(Path("/sys/block", disk).glob("*/partition")):
            _tell(device, BLKPG_DEL_PARTITION, _Partition(0, 0, int(stale.read_text())))
        for number, part in enumerate(parts, start=1):
            _tell(device, BLKPG_ADD_PARTITION, _Partition(part.first * SECTOR, part.sectors * SECTOR, number))
    finally:
        os.close(device)
    between = "p" if disk[-1].isdigit() else ""
    return [f"{disk}{between}{number}" for number, _ in enumerate(parts, start=1)]


def _tell(device: int, what: int, where: _Partition) -> None:
    fcntl.ioctl(device, BLKPG, bytes(_Argument(what, 0, ctypes.sizeof(where), ctypes.addressof(where))))


def real(disk: Real, parts: tuple[Partition, ...], *, blank: bool) -> list[str]:
    """The partitions of a real disk, once it is there. ``blank``: nothing is left of what was on them."""
    deadline = time.monotonic() + PATIENCE
    while (name := find(disk)) is None:
        if time.monotonic() > deadline:
            what = f"the disk {disk.serial}" if disk.serial else "a passed-through disk"
            raise OSError(f"{what} did not appear within {PATIENCE:g} s")
        time.sleep(0.1)
    names = partition(name, parts)
    for member, part in zip(names, parts, strict=True):
        if blank:
            with open(f"/dev/{member}", "wb", buffering=0) as device:
                for offset in (0, part.sectors * SECTOR - BLANKED):
                    device.seek(offset)
                    device.write(bytes(BLANKED))
    return names


def find(disk: Real, sys: Path = Path("/sys/block")) -> str | None:
    """The name of a real disk, or None while it is not there. Raises OSError where there are too many."""
    serials = {block.name: _serial(block) for block in sorted(sys.iterdir())}
    if disk.passthrough is None:
        return next((name for name, serial in serials.items() if serial == disk.serial), None)
    which, count = disk.passthrough
    foreign = [name for name, serial in serials.items() if not name.startswith(OURS) and not serial]
    foreign.sort(key=lambda name: os.path.realpath(sys / name))
    if len(foreign) > count:
        raise OSError(f"the controllers have {len(foreign)} disks ({', '.join(foreign)}), not {count}")
    return foreign[which] if len(foreign) == count else None


def _serial(block: Path) -> str:
    """The serial that the host gave a virtio disk; nothing for any other."""
    return (block / "serial").read_text().strip() if (block / "serial").exists() else ""
