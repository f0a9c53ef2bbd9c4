"""One boot of a cell, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agelab.machine.vm.guest import MemoryDisk

MountedAs = tuple[str, str]
"""Type and options of a mount."""


@dataclass(frozen=True)
class BootStart:
    """The start of a boot in its phase, and what the boot before it has left."""

    number: int = 0
    """The boot's number in its phase, from 0."""
    first_step: int = 0
    mounted: MountedAs | None = None
    """The mount of the disk under test by a script in an earlier boot."""
    survived: str | None = None
    """After a power cut, the content of the steps' safe place."""


FIRST_BOOT = BootStart()


@dataclass(frozen=True)
class Boot:
    """One boot, ready to start."""

    name: str
    """The prefix of its files' names in the cell's directory: the phase's name and a dash, or nothing."""
    number: int
    """The boot's number in its phase, from 0."""
    day: int
    """The date, in days after the cell's first boot."""
    plan: Mapping[str, Any]
    memory_mib: int
    disks: tuple[MemoryDisk, ...]
    """The memory-backed disks after root and corpus."""
    phase: str = ""
    """The phase in the names of its samples' steps: nothing while the disk is made."""
