"""The drives of a cell: modelled ones, real ones, and bare memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from agelab.base.errors import InputError
from agelab.machine.disk import DriveClaim, DriveSpec, parse
from agelab.machine.disk.spec import BEGINS
from agelab.machine.drive import geometry, translation
from agelab.machine.drive.record import ROOM
from agelab.machine.drive.translation import Mapped
from agelab.machine.drive.used import UsedDrive, used_drive
from agelab.scenario import selection
from agelab.scenario.drive import SECTOR, Drive, SolidState
from agelab.scenario.machine import Machine
from agelab.store.stored_disk import DISK_ALIGNMENT

MODEL_NONE = "none"
"""Stands for no model: the bare memory-backed disk."""
FRESH, TRIMMED, _ = BEGINS
PAGE = 4096
"""Where the map of a solid-state drive begins behind its first partition (harness/drives.py)."""


@dataclass(frozen=True)
class Partition:
    """A part of a drive, in sectors."""

    first: int
    sectors: int

    @property
    def bytes(self) -> int:
        return self.sectors * SECTOR

    @property
    def end(self) -> int:
        """The sector after the last."""
        return self.first + self.sectors


@dataclass(frozen=True)
class CellDrive:
    """One drive of a cell."""

    spec: DriveSpec
    profile: Drive | None
    """The modelled drive; None for the bare memory-backed disk and for real drives."""
    claim: DriveClaim | None
    """Holds a real drive for this run."""
    partitions: tuple[Partition, ...] = ()
    queue_depth: int | None = None
    """The controller's limit, where it is below the drive's own."""

    @property
    def cache_bytes(self) -> int:
        """The size of its write cache, by which guests have more memory: with less, each result would be another."""
        return geometry.write_cache_bytes(self.profile) if self.profile else 0

    @property
    def mapped(self) -> Mapped | None:
        """What a solid-state drive maps. Raises InputError where its partitions lie apart."""
        if self.profile is None or not isinstance(self.profile.medium, SolidState) or not self.partitions:
            return None
        return translation.mapped(self.profile.name, [(part.first, part.end) for part in self.partitions])

    @property
    def is_solid_state(self) -> bool:
        return self.profile is not None and isinstance(self.profile.medium, SolidState)

    @property
    def takes_discards(self) -> bool:
        medium = self.profile.medium if self.profile else None
        return isinstance(medium, SolidState) and medium.discard.value

    @property
    def memory_disks(self) -> tuple[int, ...]:
        """The bytes behind each partition; behind the first there is a solid-state drive's map as well."""
        sizes = [part.bytes for part in self.partitions]
        if self.profile and isinstance(self.profile.medium, SolidState) and (mapped := self.mapped):
            table = translation.table_bytes(self.profile, self.profile.medium, mapped)
            sizes[0] = -(-(self._map_at + table) // DISK_ALIGNMENT) * DISK_ALIGNMENT
        return tuple(sizes)

    @property
    def record_bytes(self) -> int:
        """The room for its record where its power is cut: all of it is written once before, and some again."""
        return ROOM + sum(part.bytes for part in self.partitions)

    @property
    def _map_at(self) -> int:
        return -(-self.partitions[0].bytes // PAGE) * PAGE

    def used(self, run_seed: int, index: int) -> UsedDrive | None:
        """Return how it was used before its first boot; None for one that never was."""
        if self.spec.begins in ("", FRESH) or not (text := self.settings("", run_seed, index)):
            return None
        seed = geometry.phase(run_seed, index, 1 << 63)
        return used_drive(text, seed, self.spec.begins == TRIMMED, self._map_at)

    @property
    def has_places(self) -> bool:
        """True if partitions have a place on it; on a bare memory-backed disk each has a file of its own."""
        return self.profile is not None or self.claim is not None

    def settings(self, name: str, run_seed: int, index: int) -> str | None:
        """Return the parameters of the kernel module, or None for a drive that is not modelled."""
        if self.profile is None:
            return None
        return geometry.module_parameters(
            self.profile, name=name, run_seed=run_seed, index=index, queue_depth=self.queue_depth, mapped=self.mapped
        )


def own(machine: Machine, number: int) -> CellDrive:
    """Return the machine's drive of that number. Raises InputError where it has none."""
    if number >= len(machine.drives):
        raise InputError(
            f"machine {machine.name} has no drive {number}: it has {len(machine.drives)}",
            hint="choose drives with --disks, or another machine with --machine",
        )
    built_in = machine.drives[number]
    spec, depth = parse(f"model:{built_in.drive}"), built_in.queue_depth
    return CellDrive(spec, profile(spec), None, queue_depth=depth.value if depth else None)


def another(drives: Sequence[CellDrive], machine: Machine, number: int) -> CellDrive:
    """Return the machine's drive of that number; a bare one where all other drives are bare or real."""
    if all(drive.spec.name == MODEL_NONE or drive.spec.real for drive in drives):
        return CellDrive(parse(f"model:{MODEL_NONE}"), None, None)
    return own(machine, number)


def profile(spec: DriveSpec) -> Drive | None:
    """Return the drive file that a specification names. Raises InputError for a name that no file has, and for a drive
    that cannot begin as it says."""
    found = None if spec.real or spec.name == MODEL_NONE else selection.drive(spec.name)
    if spec.begins and not (found and isinstance(found.medium, SolidState)):
        raise InputError(
            f"drive {spec}: only a modelled solid-state drive begins {spec.begins}",
            hint=f"leave ?begins={spec.begins} out, or name one of "
            + ", ".join(drive.name for drive in selection.drives() if isinstance(drive.medium, SolidState)),
        )
    return found
