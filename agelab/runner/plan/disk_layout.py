"""The disk under test of a cell: its drives, and which of their partitions it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agelab.base.errors import InputError
from agelab.base.types import Defaults
from agelab.machine.disk import DriveClaim, DriveSpec, parse
from agelab.machine.vm.guest import REAL_SERIAL
from agelab.runner.plan import cell_drive
from agelab.runner.plan.cell_drive import MODEL_NONE, CellDrive
from agelab.runner.plan.partition_table import PartitionPlace, PartitionTable
from agelab.scenario.disk_use import DiskUse, PartitionUse
from agelab.scenario.drive import SECTOR
from agelab.scenario.layout import Layout
from agelab.scenario.machine import Machine

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
        return tuple(part.bytes for drive in backed for part in drive.partitions)

    @property
    def cache_bytes(self) -> int:
        return sum(drive.cache_bytes for drive in self.drives)

    @property
    def modelled(self) -> bool:
        """True if the guest needs the modelled drive's module."""
        return any(drive.profile for drive in self.drives)

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
        self, run_seed: int, first_disk: int, first_drive: int = 0, *, undo: bool = False
    ) -> list[dict[str, Any]]:
        """Return the drives as the guest's plan has them.

        Drives are numbered from ``first_drive``, the memory-backed disks behind them from ``first_disk``.
        ``undo``: their power may be cut.
        """
        told, disk = [], first_disk
        for index, drive in enumerate(self.drives):
            parts = []
            for part in drive.partitions:
                backed = None if drive.spec.real else disk
                disk += not drive.spec.real
                parts.append({"disk": backed, "first": part.first, "sectors": part.sectors})
            name = f"drive{first_drive + index}"
            settings = drive.settings(name, run_seed, index, undo=undo)
            real = self._found_by(index) if drive.spec.real else None
            told.append({"name": name, "settings": settings, "real": real, "partitions": parts})
        return told

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
    wanted: Sequence[DriveSpec] = (),
    claims: Sequence[DriveClaim] = (),
    swap: int = 0,
    companion: tuple[PartitionUse, int] | None = None,
) -> DiskLayout:
    """Lay out the drives and partitions of a cell; ``sizes`` are the bytes of each partition under test.

    ``wanted`` are the drives that the user asked for in place of the scenario's, ``claims`` the real ones among
    them. ``swap`` is the size of the machine's swap space, ``companion`` the partition beside the disk under test and
    its bytes. Raises InputError where the machine has no such drive, or a partition does not fit.
    """
    places = _places(disk, layout, wanted)
    drives = _drives(places, disk, machine, layout, wanted, claims)
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
    swapped = None
    if swap and machine.swap and not real:
        swapped = table.add_innermost(table.drive(machine.swap.drive), swap // SECTOR)
    parameters = layout.parameters(defaults)
    if disk.chunk_kib and CHUNK in parameters:
        parameters[CHUNK] = str(disk.chunk_kib)
    return DiskLayout(table.complete(), tuple(members), layout, parameters, swapped, beside)


def _places(disk: DiskUse, layout: Layout, wanted: Sequence[DriveSpec]) -> list[PartitionUse]:
    """Return the partitions under test. Drives have the next numbers where the scenario does not name them."""
    if len(wanted) > layout.drives:
        raise InputError(
            f"layout {layout.name} is made of {_counted(layout.drives)}, not {len(wanted)}: {_listed(wanted)}",
            hint="agelab schema layout says how a layout of more is written (docs/layouts.md)",
        )
    first, *listed = disk.partitions
    found: list[PartitionUse] = []
    for member in layout.members:
        if member.beside is not None:
            found.append(found[member.beside])
            continue
        number = len({place.drive for place in found})
        place = listed[len(found) - 1] if found and len(found) <= len(listed) else first
        if (found and place is first) or (
            len(wanted) > number and place.drive in {one.drive for one in found}
        ):
            place = place.model_copy(update={"drive": first.drive + number})
        found.append(place)
    return found


def _counted(drives: int) -> str:
    return "one drive" if drives == 1 else f"{drives} drives"


def _drives(
    places: Sequence[PartitionUse],
    disk: DiskUse,
    machine: Machine,
    layout: Layout,
    wanted: Sequence[DriveSpec],
    claims: Sequence[DriveClaim],
) -> list[CellDrive]:
    """Return the drives of these places, in the order of their first places, without partitions."""
    numbers = list(dict.fromkeys(place.drive for place in places))
    asked = list(wanted) or [parse(text) for text in disk.drives]
    if len({spec.real for spec in asked}) > 1:
        raise InputError(f"{_listed(asked)}: one is real and one is not; all must be the same")
    if asked and asked[0].real and len(asked) < len(numbers):
        raise InputError(
            f"layout {layout.name} is made of {_counted(len(numbers))}, and {_listed(asked)} "
            f"{'is' if len(asked) == 1 else 'are'} {len(asked)}: name as many with --disks"
        )
    held = {claim.spec: claim for claim in claims}
    # The twin of a partition that the scenario lists is of its kind.
    listed = {part.drive for part in disk.partitions}
    found = []
    for place, number in enumerate(numbers):
        member = next(one for one, where in zip(layout.members, places, strict=True) if where.drive == number)
        if place < len(asked):
            spec = asked[place]
        elif member.drive and not (asked and asked[-1].name == MODEL_NONE):
            spec = parse(member.drive)
        elif asked:
            spec = asked[-1]
        else:
            found.append(cell_drive.own(machine, number if number in listed else disk.partitions[0].drive))
            continue
        found.append(CellDrive(spec, cell_drive.profile(spec), held.get(spec)))
    return found


def _listed(specs: Sequence[DriveSpec]) -> str:
    return ", ".join(f"{spec.kind}:{spec.name}" for spec in specs)
