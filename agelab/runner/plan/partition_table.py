"""Where the partitions of a cell lie on its drives."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from agelab.base.errors import InputError
from agelab.base.types import Defaults
from agelab.runner.plan import cell_drive
from agelab.runner.plan.cell_drive import CellDrive, Partition
from agelab.scenario.disk_use import PartitionUse
from agelab.scenario.drive import SECTOR
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

    def drive(self, wanted: int) -> int:
        """Return the number among the cell's drives of a drive of the machine, which is added if need be."""
        if wanted in self.under_test:
            return self.under_test[wanted]
        if wanted not in self.others:
            self.others[wanted] = len(self.drives)
            self.drives.append(cell_drive.another(self.drives, self.machine, wanted))
            self.partitions.append([])
        return self.others[wanted]

    def add(self, number: int, place: PartitionUse, size: int) -> PartitionPlace:
        """Add a partition where the scenario says."""
        return self._append(number, _partition(place, self.drives[number], size, self.defaults))

    def add_behind(self, other: PartitionPlace, size: int) -> PartitionPlace:
        """Add a partition behind another one, on its drive."""
        drive, part = other
        sectors = size // SECTOR
        if not self.drives[drive].has_places:
            return self._append(drive, Partition(0, sectors))
        return self._append(
            drive, _fitting(self.drives[drive], self.partitions[drive][part].end, sectors, "behind")
        )

    def add_innermost(self, number: int, sectors: int) -> PartitionPlace:
        """Add a partition in the free place that is nearest to the drive's inner end."""
        drive, taken = self.drives[number], self.partitions[number]
        return self._append(number, _innermost(drive, taken, sectors, self.defaults))

    def _append(self, number: int, partition: Partition) -> PartitionPlace:
        self.partitions[number].append(partition)
        return number, len(self.partitions[number]) - 1

    def complete(self) -> tuple[CellDrive, ...]:
        """Return the drives with their partitions. Raises InputError where two overlap."""
        found = []
        for drive, partitions in zip(self.drives, self.partitions, strict=True):
            _require_apart(drive, partitions)
            found.append(replace(drive, partitions=tuple(partitions)))
        return tuple(found)


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
    for one, following in pairwise(sorted(partitions, key=lambda part: part.first)):
        if one.end > following.first:
            raise InputError(f"the partitions overlap on {drive.spec.kind}:{drive.spec.name}")
