"""The plan of one boot, as the host wrote it.

The host has validated it; here it only becomes types. Format: docs/design.md, "The plan and the events".
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.dilation import Dilation


@dataclass(frozen=True)
class Memory:
    """What the guest's memory must look like when the first step starts."""

    available: int | None
    """What is available at the first step, in bytes; None leaves it as it is."""
    sysctl: dict[str, str]
    """Names below /proc/sys (``vm/dirty_ratio``) and what to write to them."""


@dataclass(frozen=True)
class Corpus:
    """The source data: a disk image that becomes a read-only mount."""

    disk: int
    """Which memory-backed disk holds it (0 is the root)."""
    size: int
    """Bytes of the image; the disk may be longer."""
    held: bool
    """Whether it is copied into RAM first and mounted from there."""


@dataclass(frozen=True)
class Partition:
    """A part of a drive, and the memory-backed disk that holds its data."""

    disk: int | None
    """None where the drive is a real one."""
    first: int
    """Where it begins on the drive, in sectors of 512 bytes."""
    sectors: int


@dataclass(frozen=True)
class Real:
    """How a real drive is found: a virtio disk by its serial, one behind a controller by its place among them."""

    serial: str | None = None
    passthrough: tuple[int, int] | None = None
    """Which of how many, from 0, in the order of the controllers' addresses."""


@dataclass(frozen=True)
class Drive:
    """One drive of the machine."""

    name: str
    settings: str | None
    """What the modelled drive is told (harness/drive/); None is the bare memory-backed disk, or a real drive."""
    real: Real | None
    partitions: tuple[Partition, ...]
    record: tuple[int, int] | None = None
    """The disk that takes the record of a modelled drive whose power is cut, and its bytes."""


@dataclass(frozen=True)
class BlockLayer:
    """The queue before each modelled drive; None leaves a thing to the kernel."""

    scheduler: str
    parameters: dict[str, int]
    """Of the scheduler, by their names in queue/iosched; times are the machine's."""
    requests: int | None
    """How many the scheduler holds (nr_requests)."""
    read_ahead_kib: int | None
    writeback_throttle_us: int | None
    """The latency to which write-back is throttled (wbt_lat_usec); 0 is not at all."""


@dataclass(frozen=True)
class Layers:
    """How a disk is made of its members; in the commands stand places for what only the guest knows (drives.fill)."""

    device: str
    """The path of what they make."""
    make: tuple[tuple[str, ...], ...]
    """Puts new members together."""
    open: tuple[tuple[str, ...], ...]
    """Puts together what was made before."""
    close: tuple[tuple[str, ...], ...]
    module_parameters: dict[str, str]
    """``module/parameter`` to what it is set to before, where the kernel has it."""
    files: dict[str, str]
    """Path to content, written before."""
    fills: bool
    """Whether making it writes it in full: it is made after the moment at which the first step starts."""


@dataclass(frozen=True)
class Fork:
    """A copy of a disk, to be looked at."""

    name: str
    """The device is /dev/disk/<name>."""
    members: tuple[tuple[int, int], ...]
    """Drive and partition of each, both counted from 0."""
    layers: Layers | None
    """None where it is its only member."""
    mount: tuple[str, ...]
    umount: tuple[str, ...]


@dataclass(frozen=True)
class Disk(Fork):
    """A disk under test, and the command that makes a filesystem of it."""

    mkfs: tuple[str, ...] | None
    """None where there is a filesystem on it already."""
    source: Fork | None
    """What its tree is copied from, mounted while its steps run."""


@dataclass(frozen=True)
class Map:
    """A fork, and what is to be found out about where things lie on it."""

    fork: Fork
    extents: str
    """How a file's blocks are asked for: fiemap, fibmap, or none."""
    free: tuple[str, ...] | None
    """The command that lists its free space while it is not mounted."""


@dataclass(frozen=True)
class Step:
    """One run of one step of the scenario."""

    name: str
    repetition: int
    run: str
    caches: str
    sync: bool
    pause: float
    expect: tuple[int, ...]
    refuses: tuple[str, ...]
    """What its error output may say besides what the filesystem cannot hold (``Plan.refuses``)."""
    deadline: float
    """Seconds of guest time after which the step counts as hung."""
    trace: tuple[str, ...] | None
    """Options of strace, under which the command runs then."""
    moves: int | None
    """Bytes that the step moves, for its throughput."""
    records: tuple[tuple[str, str], ...]
    """The metrics, and their units, whose values are the whole numbers that it prints, in this order."""
    disk: int
    """Which of the plan's disks it runs on."""
    cut_after: float | None = None
    """Seconds of guest time after which the power is cut."""
    fail_after: float | None = None
    """Seconds of guest time after which the drive of ``Plan.failing`` stops answering."""


@dataclass(frozen=True)
class Recovery:
    """What is done with the disk under test in the boot after a power cut."""

    repair: tuple[str, ...]
    """The command that repairs its filesystem."""
    repair_first: bool
    """Whether that comes before each mount after a cut, or only where the mount fails."""
    fsck: tuple[str, ...]
    """The check that changes nothing."""
    survived: str | None
    """What the steps have left in their safe place (main.SAFE); None in a boot that does not follow a cut."""


@dataclass(frozen=True)
class Failing:
    """A modelled drive that stops answering, and what is done after the last step."""

    drive: str
    member: int
    """Which member of the disk under test lies on it."""
    commands: tuple[tuple[str, ...], ...]
    """They put a new drive in its place, and end when all is on it."""
    fsck: tuple[str, ...]
    """The check that changes nothing."""


@dataclass(frozen=True)
class Plan:
    """Everything one boot does."""

    boot: int
    first_step: int
    booted_at: int | None
    """The date at which the guest takes itself to have booted, in seconds since 1970; None leaves its clock alone."""
    entropy: str
    """What fills the guest's random pool, in hex: it follows from the run seed."""
    dilation: Dilation
    """Between the guest's clock and the times of this plan."""
    start_at: float | None
    """Guest seconds since boot at which the first step starts; None is as soon as it can."""
    memory: Memory
    corpus: Corpus | None
    drives: tuple[Drive, ...]
    block: BlockLayer | None
    """None where no drive is modelled."""
    copy_prices: dict[str, int] | None
    """Instructions that 1024 bytes cost more which are read from the page cache or written to it; None is no more."""
    disks: tuple[Disk, ...]
    """The disks under test, one after the other."""
    tell_mount: bool
    """Whether the host wants to know how the disk under test is mounted."""
    links: dict[str, str]
    """Paths that lead elsewhere: path to target. To a directory it is a mount (--bind), else a symbolic link."""
    swap: tuple[int, int] | None
    """Drive and partition of the swap space, both counted from 0."""
    beside: Fork | None
    """A filesystem beside the disk under test, which holds what the steps copy from, and has room for more."""
    maps: tuple[Map, ...]
    results: int | None
    """Which memory-backed disk takes what the boot brings back as files."""
    refuses: tuple[str, ...]
    """Whole lines of a program's error output, as regular expressions, that tell what the filesystem cannot hold."""
    gone: tuple[str, ...]
    """What the kernel says of a filesystem that has shut itself down, as regular expressions."""
    environment: dict[str, str]
    steps: tuple[Step, ...]
    recovery: Recovery | None = None
    """None where no step's power is cut."""
    failing: Failing | None = None
    """None where no drive fails."""


def read(path: Path) -> Plan:
    """The plan in that file."""
    raw: dict[str, Any] = json.loads(path.read_text())
    return Plan(
        boot=raw["boot"],
        first_step=raw["first_step"],
        booted_at=raw["booted_at"],
        entropy=raw["entropy"],
        dilation=Dilation(raw["dilation"]),
        start_at=raw["start_at"],
        memory=Memory(**raw["memory"]),
        corpus=Corpus(**raw["corpus"]) if raw["corpus"] else None,
        drives=tuple(_drive(drive) for drive in raw["drives"]),
        block=BlockLayer(**raw["block"]) if raw["block"] else None,
        copy_prices=raw["copy_prices"],
        disks=tuple(_disk(disk) for disk in raw["disks"]),
        tell_mount=raw["tell_mount"],
        links=raw["links"],
        swap=(raw["swap"][0], raw["swap"][1]) if raw["swap"] else None,
        beside=_fork(raw["beside"]) if raw["beside"] else None,
        maps=tuple(_map(entry) for entry in raw["maps"]),
        results=raw["results"],
        refuses=tuple(raw["refuses"]),
        gone=tuple(raw["gone"]),
        environment=raw["environment"],
        steps=tuple(_step(step) for step in raw["steps"]),
        recovery=_recovery(raw["recovery"]) if "recovery" in raw else None,
        failing=_failing(raw["failing"]) if "failing" in raw else None,
    )


def _step(raw: dict[str, Any]) -> Step:
    records = tuple((metric, unit) for metric, unit in raw["records"])
    lists = {"expect": tuple(raw["expect"]), "refuses": tuple(raw["refuses"])}
    trace = tuple(raw["trace"]) if raw["trace"] else None
    return Step(**{**raw, **lists, "trace": trace, "records": records})


def _recovery(raw: dict[str, Any]) -> Recovery:
    return Recovery(tuple(raw["repair"]), raw["repair_first"], tuple(raw["fsck"]), raw["survived"])


def _failing(raw: dict[str, Any]) -> Failing:
    return Failing(raw["drive"], raw["member"], tuple(map(tuple, raw["commands"])), tuple(raw["fsck"]))


def _drive(raw: dict[str, Any]) -> Drive:
    parts = tuple(Partition(**part) for part in raw["partitions"])
    real = Real(**raw["real"]) if raw["real"] else None
    return Drive(raw["name"], raw["settings"], real, parts, tuple(raw["record"]) if "record" in raw else None)


def _disk(raw: dict[str, Any]) -> Disk:
    made = tuple(raw["mkfs"]) if raw["mkfs"] else None
    source = _fork(raw["source"]) if raw["source"] else None
    return Disk(**vars(_fork(raw)), mkfs=made, source=source)


def _fork(raw: dict[str, Any]) -> Fork:
    return Fork(raw["name"], *_members(raw), tuple(raw["mount"]), tuple(raw["umount"]))


def _map(raw: dict[str, Any]) -> Map:
    return Map(_fork(raw), raw["extents"], tuple(raw["free"]) if raw["free"] else None)


def _members(raw: dict[str, Any]) -> tuple[tuple[tuple[int, int], ...], Layers | None]:
    members = tuple((drive, partition) for drive, partition in raw["members"])
    return members, _layers(raw["layers"]) if raw["layers"] else None


def _layers(raw: dict[str, Any]) -> Layers:
    commands = {name: tuple(map(tuple, raw[name])) for name in ("make", "open", "close")}
    return Layers(**{**raw, **commands})
