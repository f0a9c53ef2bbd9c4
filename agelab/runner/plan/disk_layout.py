"""Which drives a cell has, where its partitions lie on them, and what the guest is told of both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from agelab.disk import DriveClaim, DriveSpec, parse
from agelab.drive import geometry
from agelab.errors import InputError
from agelab.model.base import Defaults, Layout
from agelab.model.drive import SECTOR, Drive
from agelab.model.machine import Machine
from agelab.model.scenario import DiskUse, PartitionUse
from agelab.scenario import selection
from agelab.vm.guest import REAL_SERIAL

MODEL_NONE = "none"
"""The model that is none: the bare memory-backed disk."""
FIRST_SECTOR: dict[Defaults, int] = {"period": 63, "today": 2048}
"""Where the first partition of a modelled drive begins: behind its first track, or behind a mebibyte. On a real one
it begins where the drive does: its own blocks may be larger than the 512 bytes of those days."""
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

    spec: DriveSpec
    profile: Drive | None
    """What the modelled drive is like; None for the bare memory-backed disk and for real drives."""
    claim: DriveClaim | None
    """What makes a real drive this run's own."""
    partitions: tuple[Partition, ...]
    queue_depth: int | None = None
    """What its controller lets it queue, where that is less than the drive could."""

    @property
    def cache_bytes(self) -> int:
        """What its write cache takes of the guest's memory."""
        return geometry.write_cache_bytes(self.profile) if self.profile else 0

    def settings(self, name: str, run_seed: int, index: int) -> str | None:
        """What the kernel module is told, or None for a drive that is not modelled."""
        if self.profile is None:
            return None
        return geometry.module_parameters(
            self.profile, name=name, run_seed=run_seed, index=index, queue_depth=self.queue_depth
        )


@dataclass(frozen=True)
class DiskLayout:
    """The drives of a cell, the disk under test and the swap space on them."""

    drives: tuple[CellDrive, ...]
    members: tuple[tuple[int, int], ...]
    """Drive and partition of each member of the disk under test."""
    raid: tuple[int, str] | None
    """Chunk in KiB and metadata."""
    swap: tuple[int, int] | None
    """Drive and partition of the swap space."""
    beside: tuple[int, int] | None = None
    """Drive and partition of the filesystem beside the disk under test."""

    @property
    def backing(self) -> tuple[int, ...]:
        """The bytes of each memory-backed disk, in the order of drives and their partitions."""
        made = (drive for drive in self.drives if not drive.spec.real)
        return tuple(part.bytes for drive in made for part in drive.partitions)

    @property
    def cache_bytes(self) -> int:
        return sum(drive.cache_bytes for drive in self.drives)

    @property
    def modelled(self) -> bool:
        """Whether the guest needs the modelled drive's module."""
        return any(drive.profile for drive in self.drives)

    @property
    def real(self) -> bool:
        """Whether the disk under test is the host's: it cannot be forked."""
        return any(self.drives[drive].spec.real for drive, _ in self.members)

    @property
    def content(self) -> tuple[int, ...]:
        """Which of the memory-backed disks (by their place in ``backing``) hold the disk under test, in its order."""
        return () if self.real else tuple(self._places()[member] for member in self.members)

    @property
    def beside_place(self) -> int | None:
        """Which of the memory-backed disks holds the filesystem beside."""
        return self._places()[self.beside] if self.beside else None

    def _places(self) -> dict[tuple[int, int], int]:
        """Drive and partition to a place in ``backing``."""
        before, places = 0, {}
        for number, drive in enumerate(self.drives):
            for part, _ in enumerate(drive.partitions):
                places[number, part] = before
                before += not drive.spec.real
        return places

    @property
    def specs(self) -> tuple[str, ...]:
        """The drives that the disk under test lies on."""
        under_test = dict.fromkeys(drive for drive, _ in self.members)
        return tuple(str(self.drives[drive].spec) for drive in under_test)

    def for_guest(self, run_seed: int, first_disk: int, first_drive: int = 0) -> list[dict[str, Any]]:
        """The drives as the plan has them: they are numbered from ``first_drive``, the memory-backed disks behind them
        from ``first_disk``."""
        told, disk = [], first_disk
        for index, drive in enumerate(self.drives):
            parts = []
            for part in drive.partitions:
                backed = None if drive.spec.real else disk
                disk += not drive.spec.real
                parts.append({"disk": backed, "first": part.first, "sectors": part.sectors})
            name = f"drive{first_drive + index}"
            settings = drive.settings(name, run_seed, index)
            real = self._found_by(index) if drive.spec.real else None
            told.append({"name": name, "settings": settings, "real": real, "partitions": parts})
        return told

    def _found_by(self, index: int) -> dict[str, Any]:
        """How the guest finds a real drive."""
        behind = [number for number, drive in enumerate(self.drives) if drive.spec.kind == "pci"]
        if index in behind:
            return {"passthrough": [behind.index(index), len(behind)]}
        return {"serial": REAL_SERIAL.format(index)}


def lay_out(
    disk: DiskUse,
    machine: Machine,
    layout: Layout,
    defaults: Defaults,
    size: int,
    wanted: Sequence[DriveSpec] = (),
    claims: Sequence[DriveClaim] = (),
    swap: int = 0,
    beside: tuple[PartitionUse, int] | None = None,
) -> DiskLayout:
    """The drives and partitions of a cell whose partitions under test have ``size`` bytes each.

    ``wanted`` are the drives that the user asked for in place of the scenario's, ``claims`` the real ones among
    them. ``swap`` is the bytes of the machine's swap space, ``beside`` where the filesystem beside lies, and its
    bytes. Raises InputError where the machine has no such drive, or a partition does not fit.
    """
    places = _places(disk, layout, wanted)
    drives = _drives(places, disk, machine, wanted, claims)
    numbers = {drive: number for number, drive in enumerate(dict.fromkeys(place.drive for place in places))}
    parts: list[list[Partition]] = [[] for _ in drives]
    members = []
    for place in places:
        number = numbers[place.drive]
        parts[number].append(_partition(place, drives[number], size, defaults))
        members.append((number, len(parts[number]) - 1))
    listed = {part.drive for part in disk.partitions}  # a twin's number is no drive's of the machine
    real = any(drive.spec.real for drive in drives)

    def on(wanted: int) -> int:
        """The place of the machine's drive of that number among the cell's: one of them, or one more."""
        if wanted in listed & set(numbers) and not real:
            return numbers[wanted]
        if wanted not in more:
            more[wanted] = len(drives)
            drives.append(_beside(drives, machine, wanted))
            parts.append([])
        return more[wanted]

    more: dict[int, int] = {}
    neighbour = swapped = None
    if beside:
        place, taken = beside
        number = on(place.drive)
        parts[number].append(_partition(place, drives[number], taken, defaults))
        neighbour = (number, len(parts[number]) - 1)
    if swap and machine.swap and not real:
        number = on(machine.swap.drive)
        parts[number].append(_innermost(drives[number], parts[number], swap // SECTOR, defaults))
        swapped = (number, len(parts[number]) - 1)
    for drive, on_it in zip(drives, parts, strict=True):
        _apart(drive, on_it)
    complete = (replace(drive, partitions=tuple(on_it)) for drive, on_it in zip(drives, parts, strict=True))
    chunk, metadata = RAID0[defaults]
    raid = (disk.chunk_kib or chunk, metadata) if layout == "raid0" else None
    return DiskLayout(tuple(complete), tuple(members), raid, swapped, neighbour)


def _places(disk: DiskUse, layout: Layout, wanted: Sequence[DriveSpec]) -> list[PartitionUse]:
    """The partitions that the layout takes; a drive that the scenario does not name has the number after its own."""
    if layout == "single":
        if len(wanted) > 1:
            raise InputError(
                f"layout single is one drive, not {len(wanted)}: {_listed(wanted)}",
                hint="or choose --layout raid0",
            )
        return [disk.partitions[0]]
    first, *rest = disk.partitions
    second = rest[0] if rest else first.model_copy(update={"drive": first.drive + 1})
    if len(wanted) > 1 and second.drive == first.drive:
        second = second.model_copy(update={"drive": first.drive + 1})
    return [first, second]


def _drives(
    places: Sequence[PartitionUse],
    disk: DiskUse,
    machine: Machine,
    wanted: Sequence[DriveSpec],
    claims: Sequence[DriveClaim],
) -> list[CellDrive]:
    """Each drive that the places are on, in the order of their first places; the partitions come later."""
    numbers = list(dict.fromkeys(place.drive for place in places))
    asked = list(wanted) or [parse(text) for text in disk.drives]
    if len(asked) > 2:
        raise InputError(f"raid0 is made of two drives, not {len(asked)}: {_listed(asked)}")
    if len({spec.real for spec in asked}) > 1:
        raise InputError(f"{_listed(asked)}: one is real and one is not; both must be the same")
    if asked and asked[0].real and len(asked) < len(numbers):
        raise InputError(f"raid0 is made of two drives: name another beside {asked[0]}")
    if asked:
        held = {claim.spec: claim for claim in claims}
        specs = [asked[min(place, len(asked) - 1)] for place, _ in enumerate(numbers)]
        return [CellDrive(spec, _profile(spec), held.get(spec), ()) for spec in specs]
    # The twin of the one partition that the scenario lists is of its kind.
    listed = {part.drive for part in disk.partitions}
    return [_own(machine, number if number in listed else disk.partitions[0].drive) for number in numbers]


def _own(machine: Machine, number: int) -> CellDrive:
    """The machine's drive of that number. Raises InputError where it has none."""
    if number >= len(machine.drives):
        raise InputError(
            f"machine {machine.name} has no drive {number}: it has {len(machine.drives)}",
            hint="choose drives with --disks, or another machine with --machine",
        )
    own = machine.drives[number]
    spec = parse(f"model:{own.drive}")
    return CellDrive(spec, _profile(spec), None, (), own.queue_depth.value if own.queue_depth else None)


def _beside(drives: Sequence[CellDrive], machine: Machine, number: int) -> CellDrive:
    """The machine's drive of that number, bare where all of these are, or are real."""
    if all(drive.spec.name == MODEL_NONE or drive.spec.real for drive in drives):
        return CellDrive(parse(f"model:{MODEL_NONE}"), None, None, ())
    return _own(machine, number)


def _listed(specs: Sequence[DriveSpec]) -> str:
    return ", ".join(f"{spec.kind}:{spec.name}" for spec in specs)


def _profile(spec: DriveSpec) -> Drive | None:
    """The drive file that a specification names. Raises InputError for a name that no file has."""
    return None if spec.real or spec.name == MODEL_NONE else selection.drive(spec.name)


def _partition(place: PartitionUse, drive: CellDrive, size: int, defaults: Defaults) -> Partition:
    sectors = size // SECTOR
    if drive.profile:
        outer, whole = FIRST_SECTOR[defaults], drive.profile.sectors.value
    elif drive.claim:
        outer, whole = 0, drive.claim.size // SECTOR
    else:
        return Partition(0, sectors)
    if place.at == "outer":
        first = outer
    elif place.at == "inner":
        first = whole - sectors
    else:
        first = place.at * SECTORS_PER_MIB
    if first < 0 or first + sectors > whole:
        raise InputError(
            f"a partition takes {size} bytes ({place.at}) of {drive.spec.kind}:{drive.spec.name}, "
            f"which has {whole * SECTOR}",
            hint="name a larger drive with --disks",
        )
    return Partition(first, sectors)


def _innermost(drive: CellDrive, taken: Sequence[Partition], sectors: int, defaults: Defaults) -> Partition:
    """The free place for a partition that is nearest to the inner end."""
    if drive.profile is None:
        return Partition(0, sectors)
    end = drive.profile.sectors.value
    for part in sorted(taken, key=lambda part: -part.first):
        if part.first + part.sectors > end - sectors:
            end = part.first
    if end - sectors < FIRST_SECTOR[defaults]:
        raise InputError(
            f"{sectors * SECTOR} bytes of swap do not fit on {drive.spec.kind}:{drive.spec.name} beside the "
            "partitions under test"
        )
    return Partition(end - sectors, sectors)


def _apart(drive: CellDrive, partitions: Sequence[Partition]) -> None:
    """Raise InputError where two partitions share sectors. A bare disk has no places: each has its own."""
    if drive.profile is None and drive.claim is None:
        return
    for one, other in pairwise(sorted(partitions, key=lambda part: part.first)):
        if one.first + one.sectors > other.first:
            raise InputError(f"the partitions overlap on {drive.spec.kind}:{drive.spec.name}")
