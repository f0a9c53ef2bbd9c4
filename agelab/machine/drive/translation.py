"""Convert a solid-state drive's figures to the kernel module's parameters, for the part of it that is simulated.

The part is a small drive of the same kind: as many lines as the whole one, if they can be so small, with as many dies,
and of the same over-provisioning. An erase takes less in proportion, so that it costs a page as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from agelab.base.errors import InputError
from agelab.scenario.drive import OPEN_LINES, SECTOR, UNIT_KIB, Drive, SolidState

UNIT_SECTORS = UNIT_KIB * 1024 // SECTOR
PLACE_BYTES, LINE_BYTES, GROUP_BYTES, STATE_BYTES = 4, 12, 8, 64
"""Of each unit and each place, of each line, of each group of lines, and once (harness/drive/drive.h)."""
GROUP_LINES = 64
"""Lines of a group (harness/drive/ftl.c)."""
MAX_GAP = 1 << 20
"""Bytes that may lie between two partitions of a drive."""


@dataclass(frozen=True)
class Mapped:
    """The sectors of a drive behind which there is memory."""

    first: int
    end: int

    @property
    def base(self) -> int:
        """The sector at which its first unit begins."""
        return self.first // UNIT_SECTORS * UNIT_SECTORS

    @property
    def units(self) -> int:
        return -(-(self.end - self.base) // UNIT_SECTORS)


def mapped(name: str, partitions: Sequence[tuple[int, int]]) -> Mapped:
    """Return what these partitions (first and last sectors) take. Raises InputError where they lie apart."""
    ordered = sorted(partitions)
    for (_, end), (first, _) in pairwise(ordered):
        if (first - end) * SECTOR > MAX_GAP:
            raise InputError(
                f"two partitions of the solid-state drive {name} have {(first - end) * SECTOR} bytes between them: "
                "only what lies side by side can be modelled",
                hint="place the second one behind the first, or on another drive",
            )
    return Mapped(ordered[0][0], ordered[-1][1])


@dataclass(frozen=True)
class Lines:
    """The lines of a part of a drive."""

    units: int
    """Of each."""
    normal: int
    fast: int


def lines(drive: Drive, flash: SolidState, units: int) -> Lines:
    """Return the lines for so many mapped units. Raises InputError for too few."""
    stripe, whole = flash.stripe_kib // UNIT_KIB, drive.sectors.value // UNIT_SECTORS
    line = flash.line_kib // UNIT_KIB
    kept = flash.reserve_lines.value + OPEN_LINES
    # What the whole drive keeps free is none of what garbage may take; the part keeps as many lines, beside it.
    spare = flash.spare_lines(drive.sectors.value) - kept
    share = spare * line / whole
    size = max(1, round(units / whole * line / stripe)) * stripe
    normal = ceil(units * (1 + share) / size) + kept
    if normal * size < units + (kept + 1) * size:
        least = ceil((stripe + 1) / share * UNIT_KIB / 1024)
        raise InputError(
            f"{units * UNIT_KIB // 1024} MiB of {drive.name} are too few: its dies write "
            f"{flash.stripe_kib} KiB at once, more than is spare of so little",
            hint=f"simulate {least} MiB of it or more: take a larger scale",
        )
    fast = 0
    if flash.fast_mib:
        held = flash.fast_mib.value * 1024 // UNIT_KIB * units / whole
        fast = max(1, round(held * flash.bits_per_cell.value / size))
    return Lines(size, normal, fast)


def parameters(drive: Drive, flash: SolidState, part: Mapped) -> dict[str, int | str]:
    """Return the module's words. Raises InputError where the part is too small."""
    found = lines(drive, flash, part.units)
    page = flash.page_kib.value // UNIT_KIB
    words: dict[str, int | str] = {
        "base": part.base,
        "units": part.units,
        "channels": flash.channels.value,
        "dies": flash.dies,
        "planes": flash.planes.value,
        "page_units": page,
        "cell_bits": flash.bits_per_cell.value,
        "program_units": page * flash.planes.value * flash.bits_per_cell.value,
        "channel_rate": round(flash.channel_mb_s.value * 1e6),
        "read_ns": round(flash.read_us.value * 1000),
        "program_ns": round(flash.program_us.value * 1000),
        "erase_ns": round(flash.erase_ms.value * 1e6 * found.units / (flash.line_kib // UNIT_KIB)),
        "suspend_ns": round(flash.suspend_us.value * 1000),
        "lines": found.normal + found.fast,
        "line_units": found.units,
        "reserve": flash.reserve_lines.value,
        "buffer_units": drive.cache.kib.value // UNIT_KIB,
    }
    if flash.fast_program_us:
        words |= {"fast_lines": found.fast, "fast_program_ns": round(flash.fast_program_us.value * 1000)}
    if flash.link_us:
        words["link_ns"] = round(flash.link_us.value * 1000)
    if flash.map_kib:
        words["map_pages"] = flash.map_kib.value // UNIT_KIB
    if flash.discard.value:
        words["discard"] = 1
    return words | {"discard_ns": round(flash.discard_us.value * 1000)}


def table_bytes(drive: Drive, flash: SolidState, part: Mapped) -> int:
    """Return the bytes behind the data that hold the map (ftl_bytes in harness/drive/ftl.c)."""
    found = lines(drive, flash, part.units)
    count = found.normal + found.fast
    places, groups = part.units + count * found.units, -(-count // GROUP_LINES)
    return STATE_BYTES + places * PLACE_BYTES + count * LINE_BYTES + groups * GROUP_BYTES
