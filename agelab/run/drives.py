"""Which drives a cell has, where the partitions under test lie on them, and what the guest is told of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agelab.drive import geometry
from agelab.errors import InputError
from agelab.model.base import Defaults, Layout
from agelab.model.drive import SECTOR, Drive
from agelab.model.machine import Machine
from agelab.model.scenario import DiskUse, PartitionUse
from agelab.scenario import selection

MODEL = "model:"
BARE = "model:none"
"""The bare memory-backed disk."""
FIRST_SECTOR: dict[Defaults, int] = {"period": 63, "today": 2048}
"""Where the first partition of a drive begins: behind its first track, or behind a mebibyte."""
RAID0: dict[Defaults, tuple[int, str]] = {"period": (64, "1.0"), "today": (512, "1.2")}
"""Chunk in KiB and metadata of mdadm before 3.1, and of now.

Before 3.1 it was 0.90, which mdadm 4.2 refuses for RAID-0; 1.0 lies at the members' ends just so: every chunk of
data is where 0.90 had it."""
SECTORS_PER_MIB = (1 << 20) // SECTOR


@dataclass(frozen=True)
class Partition:
    """A part of a drive, in sectors."""

    first: int
    sectors: int

    @property
    def bytes(self) -> int:
        return self.sectors * SECTOR


@dataclass(frozen=True)
class CellDrive:
    """One drive of a cell."""

    spec: str
    """``model:<name>``."""
    profile: Drive | None
    """None for the bare memory-backed disk."""
    partitions: tuple[Partition, ...]

    @property
    def cache_bytes(self) -> int:
        """What its cache takes of the guest's memory."""
        return self.profile.cache.kib.value << 10 if self.profile else 0

    def settings(self, name: str, run_seed: int, index: int) -> str | None:
        """What the kernel module is told, or None for a drive that is not modelled."""
        return (
            geometry.settings(self.profile, name=name, run_seed=run_seed, index=index)
            if self.profile
            else None
        )


@dataclass(frozen=True)
class Arrangement:
    """The drives of a cell and the disk under test on them."""

    drives: tuple[CellDrive, ...]
    members: tuple[tuple[int, int], ...]
    """Drive and partition of each member of the disk under test."""
    raid: tuple[int, str] | None
    """Chunk in KiB and metadata."""

    @property
    def backing(self) -> tuple[int, ...]:
        """The bytes of each memory-backed disk, in the order of drives and their partitions."""
        return tuple(part.bytes for drive in self.drives for part in drive.partitions)

    @property
    def cache_bytes(self) -> int:
        return sum(drive.cache_bytes for drive in self.drives)

    @property
    def modelled(self) -> bool:
        """Whether the guest needs the modelled drive's module."""
        return any(drive.profile for drive in self.drives)

    @property
    def specs(self) -> tuple[str, ...]:
        return tuple(drive.spec for drive in self.drives)

    def for_guest(self, run_seed: int, first_disk: int) -> list[dict[str, Any]]:
        """The drives as the plan has them, their memory-backed disks numbered from ``first_disk``."""
        told, disk = [], first_disk
        for index, drive in enumerate(self.drives):
            parts = []
            for part in drive.partitions:
                parts.append({"disk": disk, "first": part.first, "sectors": part.sectors})
                disk += 1
            name = f"drive{index}"
            settings = drive.settings(name, run_seed, index)
            told.append({"name": name, "settings": settings, "partitions": parts})
        return told


def arrange(
    disk: DiskUse, machine: Machine, layout: Layout, defaults: Defaults, wanted: Sequence[str], size: int
) -> Arrangement:
    """The drives and partitions of a cell whose partitions under test have ``size`` bytes each.

    ``wanted`` are the drives that the user asked for in place of the scenario's. Raises InputError where the
    machine has no such drive, or a partition does not fit.
    """
    places = _places(disk, layout, wanted)
    specs = _specs(places, disk, machine, wanted)
    numbers = {drive: number for number, drive in enumerate(dict.fromkeys(place.drive for place in places))}
    parts: list[list[Partition]] = [[] for _ in numbers]
    members = []
    for place in places:
        number = numbers[place.drive]
        profile = _profile(specs[number])
        parts[number].append(_partition(place, profile, size, defaults))
        members.append((number, len(parts[number]) - 1))
    drives = []
    for spec, on_it in zip(specs, parts, strict=True):
        _apart(spec, on_it)
        drives.append(CellDrive(spec, _profile(spec), tuple(on_it)))
    chunk, metadata = RAID0[defaults]
    raid = (disk.chunk_kib or chunk, metadata) if layout == "raid0" else None
    return Arrangement(tuple(drives), tuple(members), raid)


def _places(disk: DiskUse, layout: Layout, wanted: Sequence[str]) -> list[PartitionUse]:
    """The partitions that the layout takes; a drive that the scenario does not name has the number after its own."""
    if layout == "single":
        if len(wanted) > 1:
            raise InputError(f"layout single is one drive, not {len(wanted)}: {', '.join(wanted)}")
        return [disk.partitions[0]]
    first, *rest = disk.partitions
    second = rest[0] if rest else first.model_copy(update={"drive": first.drive + 1})
    if len(wanted) > 1 and second.drive == first.drive:
        second = second.model_copy(update={"drive": first.drive + 1})
    return [first, second]


def _specs(
    places: Sequence[PartitionUse], disk: DiskUse, machine: Machine, wanted: Sequence[str]
) -> list[str]:
    """The drive specification of each drive that the places are on."""
    drives = list(dict.fromkeys(place.drive for place in places))
    asked = list(wanted or disk.drives)
    if len(asked) > 2:
        raise InputError(f"raid0 is made of two drives, not {len(asked)}: {', '.join(asked)}")
    if asked:
        return [asked[min(number, len(asked) - 1)] for number, _ in enumerate(drives)]
    specs = []
    for drive in drives:
        # The twin of the one partition that the scenario lists is of its kind.
        own = drive if drive in {part.drive for part in disk.partitions} else disk.partitions[0].drive
        if own >= len(machine.drives):
            raise InputError(
                f"machine {machine.name} has no drive {own}: it has {len(machine.drives)}",
                hint="choose drives with --disks, or another machine with --machine",
            )
        specs.append(MODEL + machine.drives[own].drive)
    return specs


def _profile(spec: str) -> Drive | None:
    """The drive file that a specification names. Raises InputError for a name that no file has."""
    return None if spec == BARE else selection.drive(spec.removeprefix(MODEL))


def _partition(place: PartitionUse, profile: Drive | None, size: int, defaults: Defaults) -> Partition:
    sectors = size // SECTOR
    if profile is None:
        return Partition(0, sectors)
    if place.at == "outer":
        first = FIRST_SECTOR[defaults]
    elif place.at == "inner":
        first = profile.sectors.value - sectors
    else:
        first = place.at * SECTORS_PER_MIB
    if first < 0 or first + sectors > profile.sectors.value:
        raise InputError(
            f"a partition of {size / 1e6:.0f} MB at {place.at} does not fit on the drive {profile.name} "
            f"({profile.sectors.value * SECTOR / 1e9:.1f} GB)"
        )
    return Partition(first, sectors)


def _apart(spec: str, partitions: Sequence[Partition]) -> None:
    """Raise InputError where two partitions share sectors. A bare disk has no places: each has its own."""
    for one, other in pairwise(sorted(partitions, key=lambda part: part.first)):
        if spec != BARE and one.first + one.sectors > other.first:
            raise InputError(f"the partitions under test overlap on {spec}")
