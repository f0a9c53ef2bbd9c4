"""The partitions of a cell's drives, and the disk under test that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from agelab.base.errors import InputError
from agelab.base.types import Defaults
from agelab.machine.disk import DriveClaim, DriveSpec, parse
from agelab.machine.drive.used import UsedDrive
from agelab.machine.vm.guest import REAL_SERIAL
from agelab.runner.plan import cell_drive
from agelab.runner.plan.cell_drive import MODEL_NONE, CellDrive, Partition
from agelab.scenario.disk_use import DiskUse, PartitionUse
from agelab.scenario.drive import SECTOR
from agelab.scenario.layout import Layout
from agelab.scenario.machine import Machine

FIRST_SECTOR: dict[Defaults, int] = {"period": 63, "today": 2048}
"""The first sector of a modelled drive's first partition: after the first track, or after a mebibyte. On a real drive
it is sector 0: the drive's own blocks may be larger than the 512 bytes of those days."""
PartitionPlace = tuple[int, int]
"""Number of a drive of the cell, and of a partition on it."""
SECTORS_PER_MIB = (1 << 20) // SECTOR


class PartitionTable:
    """The partitions of a cell's drives as they are laid out."""

    def __init__(self, machine: Machine, defaults: Defaults, drives: list[CellDrive]) -> None:
        self.machine = machine
        self.defaults = defaults
        self.drives = drives
        self.partitions: list[list[Partition]] = [[] for _ in drives]
        self.under_test: dict[int, int] = {}
        """The machine's drives that the disk under test lies on, by their numbers among the cell's."""
        self.others: dict[int, int] = {}
        """The machine's other drives, likewise."""

    def drive(self, number: int) -> int:
        """Return the number among the cell's drives of a drive of the machine, which is added if need be."""
        if number in self.under_test:
            return self.under_test[number]
        if number not in self.others:
            self.others[number] = len(self.drives)
            self.drives.append(cell_drive.another(self.drives, self.machine, number))
            self.partitions.append([])
        return self.others[number]

    def add(self, number: int, place: PartitionUse, size: int) -> PartitionPlace:
        """Add a partition where the scenario says."""
        return self._append(number, _partition(place, self.drives[number], size, self.defaults))

    def add_behind(self, other: PartitionPlace, size: int) -> PartitionPlace:
        """Add a partition behind another one, on its drive."""
        drive, part = other
        sectors = size // SECTOR
        if not self.drives[drive].has_places:
            return self._append(drive, Partition(0, sectors))
        return self._append(drive, _fitting(self.drives[drive], self.partitions[drive][part].end, sectors, "behind"))

    def add_innermost(self, number: int, sectors: int) -> PartitionPlace:
        """Add a partition in the free place that is nearest to the drive's inner end."""
        drive, taken = self.drives[number], self.partitions[number]
        return self._append(number, _innermost(drive, taken, sectors, self.defaults))

    def _append(self, number: int, partition: Partition) -> PartitionPlace:
        self.partitions[number].append(partition)
        return number, len(self.partitions[number]) - 1

    def complete(self) -> tuple[CellDrive, ...]:
        """Return the drives with their partitions. Raises InputError where two overlap."""
        drives = []
        for drive, partitions in zip(self.drives, self.partitions, strict=True):
            _require_apart(drive, partitions)
            drives.append(replace(drive, partitions=tuple(partitions)))
        return tuple(drives)


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
    return _fitting(drive, first, sectors, place.at)


def _fitting(drive: CellDrive, first: int, sectors: int, at: object) -> Partition:
    """Return the partition that begins there. Raises InputError where the drive is too small for it."""
    whole = drive.profile.sectors.value if drive.profile else drive.claim.size // SECTOR if drive.claim else 0
    if first < 0 or first + sectors > whole:
        raise InputError(
            f"a partition takes {sectors * SECTOR} bytes ({at}) of {drive.spec.kind}:{drive.spec.name}, "
            f"which has {whole * SECTOR}",
            hint="name a larger drive with --disks",
        )
    return Partition(first, sectors)


def _innermost(drive: CellDrive, taken: Sequence[Partition], sectors: int, defaults: Defaults) -> Partition:
    if drive.profile is None:
        return Partition(0, sectors)
    end = drive.profile.sectors.value
    for part in sorted(taken, key=lambda part: -part.first):
        if part.end > end - sectors:
            end = part.first
    if end - sectors < FIRST_SECTOR[defaults]:
        raise InputError(
            f"{sectors * SECTOR} bytes of swap do not fit on {drive.spec.kind}:{drive.spec.name} beside the "
            "partitions under test"
        )
    return Partition(end - sectors, sectors)


def _require_apart(drive: CellDrive, partitions: Sequence[Partition]) -> None:
    """Raise InputError where two partitions share sectors."""
    if not drive.has_places:
        return
    for partition, following in pairwise(sorted(partitions, key=lambda part: part.first)):
        if partition.end > following.first:
            raise InputError(f"the partitions overlap on {drive.spec.kind}:{drive.spec.name}")


CHUNK = "chunk_kib"
"""The parameter of a layout that a study may state."""


@dataclass(frozen=True)
class DiskLayout:
    """The drives of a cell, and what their partitions are for."""

    drives: tuple[CellDrive, ...]
    members: tuple[PartitionPlace, ...]
    """The members of the disk under test."""
    layout: Layout
    parameters: Mapping[str, str]
    """Those of the layout."""
    swap: PartitionPlace | None
    companion: PartitionPlace | None = None
    """The filesystem beside the disk under test."""

    @property
    def memory_disks(self) -> tuple[int, ...]:
        """The bytes of each memory-backed disk, in the order of drives and their partitions."""
        backed = (drive for drive in self.drives if not drive.spec.real)
        return tuple(size for drive in backed for size in drive.memory_disks)

    def used(self, run_seed: int) -> dict[int, UsedDrive]:
        """Return how drives were used before their first boot, by the place in ``memory_disks`` that has the map."""
        places = self._places()
        drives = {places.get((index, 0)): drive.used(run_seed, index) for index, drive in enumerate(self.drives)}
        return {place: used for place, used in drives.items() if place is not None and used}

    @property
    def recorded(self) -> tuple[tuple[int, dict[int, Partition]], ...]:
        """The bytes for the record of each drive that can have one; its partitions by places in ``memory_disks``."""
        places = self._places()
        return tuple(
            (drive.record_bytes, {places[number, part]: of for part, of in enumerate(drive.partitions)})
            for number, drive in enumerate(self.drives)
            if drive.profile
        )

    @property
    def cache_bytes(self) -> int:
        return sum(drive.cache_bytes for drive in self.drives)

    @property
    def modelled(self) -> bool:
        """True if the guest needs the modelled drive's module."""
        return any(drive.profile for drive in self.drives)

    @property
    def takes_discards(self) -> bool:
        """True if a discard reaches the drive: a solid-state one that takes them, with nothing above it."""
        [drive, *more] = dict.fromkeys(drive for drive, _ in self.members)
        return not more and not self.layout.make and self.drives[drive].takes_discards

    @property
    def real(self) -> bool:
        """True if the disk under test is the host's: it cannot be forked."""
        return any(self.drives[drive].spec.real for drive, _ in self.members)

    @property
    def member_places(self) -> tuple[int, ...]:
        """Places in ``memory_disks`` of the members of the disk under test."""
        return () if self.real else tuple(self._places()[member] for member in self.members)

    @property
    def companion_place(self) -> int | None:
        """Place in ``memory_disks`` of the companion."""
        return self._places()[self.companion] if self.companion else None

    def _places(self) -> dict[PartitionPlace, int]:
        """Return each partition's place in ``memory_disks``."""
        before, places = 0, {}
        for number, drive in enumerate(self.drives):
            for part, _ in enumerate(drive.partitions):
                places[number, part] = before
                before += not drive.spec.real
        return places

    @property
    def drive_specs(self) -> tuple[str, ...]:
        """The drives that the disk under test lies on."""
        under_test = dict.fromkeys(drive for drive, _ in self.members)
        return tuple(str(self.drives[drive].spec) for drive in under_test)

    def to_json(
        self, run_seed: int, first_disk: int, first_drive: int = 0, *, records: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the drives as the guest's plan has them.

        Drives are numbered from ``first_drive``, the memory-backed disks behind them from ``first_disk``.
        Where their power is cut, the disks that take their records are numbered from ``records``.
        """
        plans, disk = [], first_disk
        for index, drive in enumerate(self.drives):
            parts = []
            for part in drive.partitions:
                backed = None if drive.spec.real else disk
                disk += not drive.spec.real
                parts.append({"disk": backed, "first": part.first, "sectors": part.sectors})
            name = f"drive{first_drive + index}"
            settings = drive.settings(name, run_seed, index)
            real = self._found_by(index) if drive.spec.real else None
            plan: dict[str, Any] = {"name": name, "settings": settings, "real": real, "partitions": parts}
            if records is not None and settings:
                plan["record"] = [records, drive.record_bytes]
                records += 1
            plans.append(plan)
        return plans

    def _found_by(self, index: int) -> dict[str, Any]:
        """Return the part of the plan by which the guest finds a real drive."""
        passed_through = [number for number, drive in enumerate(self.drives) if drive.spec.kind == "pci"]
        if index in passed_through:
            return {"passthrough": [passed_through.index(index), len(passed_through)]}
        return {"serial": REAL_SERIAL.format(index)}


def lay_out(
    disk: DiskUse,
    machine: Machine,
    layout: Layout,
    defaults: Defaults,
    sizes: Sequence[int],
    asked: Sequence[DriveSpec] = (),
    claims: Sequence[DriveClaim] = (),
    swap: int = 0,
    companion: tuple[PartitionUse, int] | None = None,
) -> DiskLayout:
    """Lay out the drives and partitions of a cell; ``sizes`` are the bytes of each partition under test.

    ``asked`` are the drives that the user asked for in place of the scenario's, ``claims`` the real ones among
    them. ``swap`` is the size of the machine's swap space, ``companion`` the partition beside the disk under test and
    its bytes. Raises InputError where the machine has no such drive, or a partition does not fit.
    """
    places = _places(disk, layout, asked)
    drives = _drives(places, disk, machine, layout, asked, claims)
    numbers = {drive: number for number, drive in enumerate(dict.fromkeys(place.drive for place in places))}
    table = PartitionTable(machine, defaults, drives)
    members: list[PartitionPlace] = []
    for member, place, size in zip(layout.members, places, sizes, strict=True):
        number = numbers[place.drive]
        behind = None if member.beside is None else members[member.beside]
        members.append(table.add(number, place, size) if behind is None else table.add_behind(behind, size))
    listed = {part.drive for part in disk.partitions}  # a twin's number is no drive's of the machine
    real = any(drive.spec.real for drive in drives)
    table.under_test = {} if real else {drive: numbers[drive] for drive in listed & set(numbers)}
    beside = None
    if companion:
        place, companion_bytes = companion
        beside = table.add(table.drive(place.drive), place, companion_bytes)
        number, part = beside
        if part == 0 and table.drives[number].is_solid_state:
            raise InputError(
                f"the companion disk cannot be alone on the solid-state drive {table.drives[number].spec}: it was made "
                "elsewhere",
                hint="name another drive for it in [beside]",
            )
    swapped = None
    if swap and machine.swap and not real:
        swapped = table.add_innermost(table.drive(machine.swap.drive), swap // SECTOR)
    parameters = layout.parameters(defaults)
    if disk.chunk_kib and CHUNK in parameters:
        parameters[CHUNK] = str(disk.chunk_kib)
    return DiskLayout(table.complete(), tuple(members), layout, parameters, swapped, beside)


def _places(disk: DiskUse, layout: Layout, asked: Sequence[DriveSpec]) -> list[PartitionUse]:
    """Return the partitions under test. Drives have the next numbers where the scenario does not name them."""
    if len(asked) > layout.drives:
        raise InputError(
            f"layout {layout.name} is made of {_counted(layout.drives)}, not {len(asked)}: {_listed(asked)}",
            hint="agelab schema layout says how a layout of more is written (docs/layouts.md)",
        )
    first, *listed = disk.partitions
    places: list[PartitionUse] = []
    for member in layout.members:
        if member.beside is not None:
            places.append(places[member.beside])
            continue
        number = len({place.drive for place in places})
        place = listed[len(places) - 1] if places and len(places) <= len(listed) else first
        if (places and place is first) or (
            len(asked) > number and place.drive in {earlier.drive for earlier in places}
        ):
            place = place.model_copy(update={"drive": first.drive + number})
        places.append(place)
    return places


def _counted(drives: int) -> str:
    return "one drive" if drives == 1 else f"{drives} drives"


def _drives(
    places: Sequence[PartitionUse],
    disk: DiskUse,
    machine: Machine,
    layout: Layout,
    asked: Sequence[DriveSpec],
    claims: Sequence[DriveClaim],
) -> list[CellDrive]:
    """Return the drives of these places, in the order of their first places, without partitions."""
    numbers = list(dict.fromkeys(place.drive for place in places))
    specs = list(asked) or [parse(text) for text in disk.drives]
    if len({spec.real for spec in specs}) > 1:
        raise InputError(f"{_listed(specs)}: one is real and one is not; all must be the same")
    if specs and specs[0].real and len(specs) < len(numbers):
        raise InputError(
            f"layout {layout.name} is made of {_counted(len(numbers))}, and {_listed(specs)} "
            f"{'is' if len(specs) == 1 else 'are'} {len(specs)}: name as many with --disks"
        )
    held = {claim.spec: claim for claim in claims}
    # The twin of a partition that the scenario lists is of its kind.
    listed = {part.drive for part in disk.partitions}
    drives = []
    for place, number in enumerate(numbers):
        member = next(member for member, where in zip(layout.members, places, strict=True) if where.drive == number)
        if place < len(specs):
            spec = specs[place]
        elif member.drive and not (specs and specs[-1].name == MODEL_NONE):
            spec = parse(member.drive)
        elif specs:
            spec = specs[-1]
        else:
            drives.append(cell_drive.own(machine, number if number in listed else disk.partitions[0].drive))
            continue
        drives.append(CellDrive(spec, cell_drive.profile(spec), held.get(spec)))
    return drives


def _listed(specs: Sequence[DriveSpec]) -> str:
    return ", ".join(f"{spec.kind}:{spec.name}" for spec in specs)
