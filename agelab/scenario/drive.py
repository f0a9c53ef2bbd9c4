"""Profile of a modelled drive: figures from a data sheet, and estimates."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from agelab.base.types import Figure, Flag, Frozen, Sourced, Whole

MAX_SEEK_POINTS = 128
"""Maximum number of points of a seek curve in the kernel module (harness/drive)."""
MAX_ZONES = 64
"""Maximum number of zones in the kernel module."""
MAX_PER_TRACK, MAX_CYLINDERS = 100_000, 100_000_000
"""Beyond what any disk has."""


class SeekTable(Sourced):
    """Seek curve as a table; between two of its points the time rises evenly."""

    points: tuple[tuple[int, float], ...] = Field(description="cylinders and milliseconds of a read's seek, rising")

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the points, each with its place."""
        if not 1 <= len(self.points) <= MAX_SEEK_POINTS:
            yield f"seek.points: {len(self.points)} points, and not 1 to {MAX_SEEK_POINTS}"
            return
        if self.points[0][0] != 1:
            yield f"seek.points[0]: is of {self.points[0][0]} cylinders: a curve begins at 1"
        for at, (_, ms) in enumerate(self.points):
            if not 0 < ms <= 1000:
                yield f"seek.points[{at}]: {ms:g} ms is not more than 0 and 1000 at most"
        for at, ((before, less), (cylinders, ms)) in enumerate(pairwise(self.points), 1):
            if cylinders <= before:
                yield f"seek.points[{at}]: {cylinders} cylinders come after {before}"
            if ms < less:
                yield f"seek.points[{at}]: the curve falls, from {less:g} ms to {ms:g} ms"


class ZoneTable(Sourced):
    """Zones of equal recording density, from the outer edge inwards."""

    table: tuple[tuple[int, int, int], ...] = Field(
        description="first cylinder, last cylinder and sectors per track of each zone"
    )

    def capacity(self, heads: int) -> int:
        """Return the sectors that all tracks hold, spares among them."""
        return sum((last - first + 1) * heads * per_track for first, last, per_track in self.table)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the zones, each with its place."""
        if not 1 <= len(self.table) <= MAX_ZONES:
            yield f"zones.table: {len(self.table)} zones, and not 1 to {MAX_ZONES}"
            return
        if self.table[0][0] != 0:
            yield f"zones.table[0]: begins at cylinder {self.table[0][0]}, and not at 0"
        for at, (first, last, per_track) in enumerate(self.table):
            if last < first:
                yield f"zones.table[{at}]: ends at cylinder {last}, before its first, {first}"
            if not 1 <= per_track <= MAX_PER_TRACK:
                yield f"zones.table[{at}]: has {per_track} sectors per track, and not 1 to {MAX_PER_TRACK}"
            if last > MAX_CYLINDERS:
                yield f"zones.table[{at}]: ends at cylinder {last}, which is more than {MAX_CYLINDERS}"
        for at, ((_, before, _), (first, _, _)) in enumerate(pairwise(self.table), 1):
            if first <= before:
                yield f"zones.table[{at}]: overlaps the zone before: begins at cylinder {first}, that ends at {before}"
            elif first > before + 1:
                yield f"zones.table[{at}]: leaves a gap of cylinders {before + 1} to {first - 1} to the zone before"


SECTOR = 512
"""Bytes of a logical sector."""
MAX_DIES = 256
"""Maximum number of dies of a solid-state drive in the kernel module."""
MAX_BUFFER_KIB = 65536
"""Largest write buffer of a solid-state drive in the kernel module."""
UNIT_KIB = 4
"""What a solid-state drive maps, KiB."""
OPEN_LINES = 2
"""Lines that are being written: one with what the host writes, one with what is moved."""
MIN_SEGMENT_KIB = 4
"""Smallest segment of a cache in the kernel module: its grain."""
_MS, _US, _RATE = (0, 1000), (0.001, 1e6), (0.01, 1e5)
BOUNDS: dict[str, tuple[float, float]] = {
    **{"sectors": (1, 1 << 40), "overhead_us": (0, 1e6), "hit_overhead_us": _US, "write_overhead_us": _US},
    **{"queue_depth": (1, 1024), "max_request_kib": (4, 65536), "mb_per_s": _RATE},
    # cache
    **{"kib": (0, 1 << 24), "segments": (1, 32), "write_segments": (1, 32), "read_ahead_kib": (0, 1 << 24)},
    **{"read_ahead_tracks": (1, 2), "bus_after_percent": (0, 100), "write_after_percent": (0, 100)},
    # a disk's medium
    **{"rpm": (1, 1e6), "heads": (1, 1000), "outer_mb_s": _RATE, "inner_mb_s": _RATE},
    **{"track_to_track_ms": _MS, "average_ms": _MS, "full_stroke_ms": _MS, "write_average_ms": _MS},
    **{"head_switch_ms": _MS, "track_skew_ms": _MS, "cylinder_skew_ms": _MS},
    # flash
    **{"channels": (1, 64), "read_us": _US, "write_us": _US, "read_mb_s": _RATE, "write_mb_s": _RATE},
    # a solid-state drive's; moved pages need a free line, the host another
    **{
        "dies_per_channel": (1, MAX_DIES),
        "planes": (1, 4),
        "page_kib": (UNIT_KIB, 1024),
        "block_kib": (UNIT_KIB, 1 << 20),
    },
    **{
        "bits_per_cell": (1, 8),
        "channel_mb_s": _RATE,
        "program_us": _US,
        "erase_ms": (0.001, 10_000),
        "suspend_us": _US,
    },
    **{"over_provisioning_percent": (0.01, 1000), "reserve_lines": (2, 1000), "map_kib": (UNIT_KIB, 4096)},
    **{"fast_mib": (1, 1 << 24), "fast_program_us": _US, "discard_us": (0, 1e6), "link_us": _US},
}
"""Least and most of each figure, by its key: those of the kernel module's arrays, or beyond what any drive has."""


class Interface(Frozen):
    """Interface between drive and host."""

    name: str = Field(min_length=1, description="as named by the maker, e.g. ATA/100 or SATA 3 Gb/s")
    mb_per_s: Figure = Field(description="data rate, 10**6 bytes per second")


class Cache(Frozen):
    """Cache of a drive: of a solid-state drive its write buffer; for flash its effect is part of the latencies."""

    kib: Whole = Field(description="total size, KiB")
    segments: Whole = Field(description="number of streams it can hold at once")
    read_ahead_kib: Whole = Field(description="size of read-ahead, KiB")
    write_back: Flag = Field(description="whether a write completes in the cache, as the drive is shipped")
    write_segments: Whole | None = Field(default=None, description="segments for writes; if omitted all but one")
    read_ahead_tracks: Whole | None = Field(
        default=None,
        description="1: it reads ahead to the end of a track at most; 2: to the end of the next one where the segment "
        "began on an earlier track; if omitted tracks do not matter",
    )
    bus_after_percent: Whole | None = Field(
        default=None,
        description="share of a read in the cache before the drive takes the bus (SCSI's buffer full ratio); 0, the "
        "default: from the first sector on",
    )
    write_after_percent: Whole | None = Field(
        default=None,
        description="share of a write that goes to the platters which must have come over the bus before the head "
        "begins; 0, the default: so much that the head does not overtake the bus",
    )

    def problems(self) -> Iterator[str]:
        """Yield contradictions between the figures."""
        if not self.segments.value:
            return
        segment = self.kib.value // self.segments.value
        if segment < self.read_ahead_kib.value:
            yield f"a segment ({segment} KiB) must hold read_ahead_kib ({self.read_ahead_kib.value})"
        if segment < MIN_SEGMENT_KIB:
            yield f"a segment ({segment} KiB) must have {MIN_SEGMENT_KIB} KiB"
        if self.write_segments and self.write_segments.value > self.segments.value:
            yield f"write_segments {self.write_segments.value} are more than segments ({self.segments.value})"


class RotatingDisk(Frozen):
    """Platters and an arm. Seek times are those of reads, settling included, in milliseconds."""

    kind: Literal["disk"] = Field(description="kind of medium")
    rpm: Whole = Field(description="revolutions per minute")
    heads: Whole = Field(description="surfaces that hold data")
    outer_mb_s: Figure = Field(description="sustained rate at the outer edge, 10**6 bytes per second")
    inner_mb_s: Figure = Field(description="sustained rate at the inner edge, 10**6 bytes per second")
    track_to_track_ms: Figure = Field(description="seek to the next cylinder")
    average_ms: Figure = Field(description="mean seek over random pairs of cylinders")
    full_stroke_ms: Figure = Field(description="seek from the first cylinder to the last")
    write_average_ms: Figure = Field(description="as average_ms, for a write: the arm settles longer")
    head_switch_ms: Figure = Field(description="switch to another surface of the same cylinder")
    track_skew_ms: Figure | None = Field(
        default=None, description="by which a track begins later than the one before it on the same cylinder"
    )
    cylinder_skew_ms: Figure | None = Field(
        default=None, description="by which a cylinder's first track begins later than the track before it"
    )
    reads_any_order: Flag | None = Field(
        default=None,
        description="whether a read within a track begins with whichever of its sectors comes first",
    )
    seek: SeekTable | None = Field(
        default=None, description="measured seek curve, in place of the one through the three seek times"
    )
    zones: ZoneTable | None = Field(default=None, description="measured zones, in place of those from the two rates")

    def problems(self) -> Iterator[str]:
        """Yield contradictions between the figures.

        The seek curve of Lee and Katz rises all the way only if the full stroke lies between (15 average - 4 minimum)
        / 11 and 3 average - 2 minimum: below it the curve falls towards its end, above it it falls at its start.
        """
        least, average, most = self.track_to_track_ms.value, self.average_ms.value, self.full_stroke_ms.value
        if self.outer_mb_s.value < self.inner_mb_s.value:
            yield f"outer_mb_s {self.outer_mb_s.value:g} is less than inner_mb_s {self.inner_mb_s.value:g}"
        low, high = (15 * average - 4 * least) / 11, 3 * average - 2 * least
        if not least <= average <= most:
            yield f"not track_to_track_ms {least:g} <= average_ms {average:g} <= full_stroke_ms {most:g}"
        elif not low <= most <= high:
            yield (
                f"full_stroke_ms {most:g}: with this track_to_track_ms and average_ms the seek curve rises all "
                f"the way only from {low:.2f} to {high:.2f}"
            )
        if self.write_average_ms.value < average:
            yield f"write_average_ms {self.write_average_ms.value:g} is less than average_ms {average:g}"
        if bool(self.track_skew_ms) != bool(self.cylinder_skew_ms):
            yield "track_skew_ms and cylinder_skew_ms are given together, or neither"
        for name in ("track_skew_ms", "cylinder_skew_ms"):
            skew = getattr(self, name)
            if skew and self.rpm.value and skew.value >= 60_000 / self.rpm.value:
                yield f"{name} {skew.value:g} is a revolution or more"
        for table in (self.seek, self.zones):
            yield from table.problems() if table else ()


class Flash(Frozen):
    """Chips behind channels: an access takes the channel's latency and then the transfer time, wherever it is."""

    kind: Literal["flash"] = Field(description="kind of medium")
    read_us: Figure = Field(description="channel's latency of a random read, microseconds")
    write_us: Figure = Field(description="channel's latency of a random write, microseconds")
    channels: Whole = Field(description="accesses processed at the same time")
    read_mb_s: Figure = Field(description="sequential read, 10**6 bytes per second, all channels together")
    write_mb_s: Figure = Field(description="sequential write, 10**6 bytes per second, all channels together")


class SolidState(Frozen):
    """Flash behind a translation layer that maps pages of 4 KiB.

    A line is a block of each plane of each die: it is erased as one.
    """

    kind: Literal["ssd"] = Field(description="kind of medium")
    channels: Whole = Field(description="buses between controller and dies")
    dies_per_channel: Whole = Field(description="dies on each of them")
    planes: Whole = Field(description="planes of a die, which are programmed and erased together")
    page_kib: Whole = Field(description="page of one plane, KiB: what a read takes from the cells")
    block_kib: Whole = Field(description="block of one plane, KiB: what is erased")
    bits_per_cell: Whole = Field(description="pages that are programmed together, as they lie in the same cells")
    channel_mb_s: Figure = Field(description="rate of a channel, 10**6 bytes per second")
    read_us: Figure = Field(description="read of a page from its cells, microseconds")
    program_us: Figure = Field(description="program of all bits of a page in every plane, microseconds")
    erase_ms: Figure = Field(description="erase of a block in every plane, milliseconds")
    suspend_us: Figure = Field(description="longest wait of a read for a program or an erase, microseconds")
    over_provisioning_percent: Figure = Field(
        description="blocks beyond the capacity, without bad ones and those of fast_mib"
    )
    reserve_lines: Whole = Field(description="free lines at which garbage collection begins")
    fast_mib: Whole | None = Field(
        default=None,
        description="capacity of blocks that hold one bit a cell, and take first what is written; 0",
    )
    fast_program_us: Figure | None = Field(default=None, description="program of these; given with fast_mib")
    map_kib: Whole | None = Field(
        default=None, description="part of the map that the drive keeps in its memory; if omitted, all"
    )
    discard: Flag = Field(description="whether it takes discards (TRIM)")
    discard_us: Figure = Field(description="time of a discard, microseconds")
    link_us: Figure | None = Field(
        default=None,
        description="time of the link to the host for a command, beside its data, microseconds; 0",
    )

    @property
    def dies(self) -> int:
        return self.channels.value * self.dies_per_channel.value

    @property
    def line_kib(self) -> int:
        """Return the size of a line."""
        return self.dies * self.planes.value * self.block_kib.value

    @property
    def stripe_kib(self) -> int:
        """Return what all dies program at once, the least that a line can be."""
        return self.dies * self.planes.value * self.page_kib.value * self.bits_per_cell.value

    def spare_lines(self, sectors: int) -> float:
        """Return how many lines are beyond the capacity."""
        return sectors * SECTOR * self.over_provisioning_percent.value / 100 / (self.line_kib << 10)

    def problems(self) -> Iterator[str]:
        """Yield contradictions between the figures."""
        page, block, bits = self.page_kib.value, self.block_kib.value, self.bits_per_cell.value
        if self.dies > MAX_DIES:
            yield f"dies_per_channel: {self.dies} dies in all, and not {MAX_DIES} at most"
        if page % UNIT_KIB:
            yield f"page_kib {page} is no multiple of {UNIT_KIB}"
        if block < page * bits:
            yield f"block_kib {block} is less than what is programmed at once, {bits} x page_kib {page}"
        elif block % (page * bits):
            yield f"block_kib {block} is no multiple of what is programmed at once, {bits} x page_kib {page}"
        if bool(self.fast_mib) != bool(self.fast_program_us):
            yield "fast_mib and fast_program_us are given together, or neither"

    def whole_drive_problems(self, sectors: int, buffer_kib: int) -> Iterator[str]:
        """Yield contradictions between the figures and those of the whole drive; ``problems`` has found none."""
        spare, kept = self.spare_lines(sectors), self.reserve_lines.value + OPEN_LINES
        if self.fast_mib and self.fast_mib.value * self.bits_per_cell.value << 20 > sectors * SECTOR:
            yield (
                f"medium: fast_mib {self.fast_mib.value} takes more cells than the drive's "
                f"{sectors * SECTOR >> 20} MiB: {self.bits_per_cell.value} times as many"
            )
        if spare < kept + 1:
            yield (
                f"medium: over_provisioning_percent {self.over_provisioning_percent.value:g} is {spare:.1f} lines of "
                f"{self.line_kib / 1024:g} MiB: reserve_lines and {OPEN_LINES} that are written take {kept}, "
                "so no garbage collection could free a block"
            )
        least = 2 * self.planes.value * self.page_kib.value * self.bits_per_cell.value
        if not least <= buffer_kib <= MAX_BUFFER_KIB:
            yield f"cache: kib {buffer_kib} is not {least} (twice what a die programs at once) to {MAX_BUFFER_KIB}"


def _kind_of_medium(raw: object) -> str | None:
    """Return the tag of a medium; its ~ keeps it out of the places that errors name."""
    kind = raw.get("kind") if isinstance(raw, dict) else getattr(raw, "kind", None)
    return f"~{kind}" if kind in ("disk", "flash", "ssd") else None


Medium = Annotated[
    Annotated[RotatingDisk, Tag("~disk")] | Annotated[Flash, Tag("~flash")] | Annotated[SolidState, Tag("~ssd")],
    Discriminator(
        _kind_of_medium,
        custom_error_type="kind",
        custom_error_message='kind must be "disk", "flash" or "ssd"',
    ),
]


class Drive(Frozen):
    """A file of scenarios/drives/."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="the file's name")
    summary: str = Field(description="the drive in one line")
    sources: dict[str, str] = Field(description="documents named by published figures: title and number")
    sectors: Whole = Field(description="addressable sectors of 512 bytes")
    overhead_us: Figure = Field(description="time of the electronics for a command, microseconds")
    hit_overhead_us: Figure | None = Field(
        default=None, description="the same for a read from the cache, if it is not overhead_us"
    )
    write_overhead_us: Figure | None = Field(default=None, description="the same for a write, if it is not overhead_us")
    queue_depth: Whole = Field(description="commands accepted at once: 1 without NCQ")
    max_request_kib: Whole = Field(description="largest request from the kernel, KiB")
    interface: Interface = Field(description="interface to the host")
    cache: Cache = Field(description="cache of the drive")
    medium: Medium = Field(description="platters and an arm, or chips")

    @model_validator(mode="after")
    def _figures_hold_together(self) -> Self:
        problems = list(self._out_of_bounds())
        if isinstance(self.medium, RotatingDisk):
            problems += [f"medium: {problem}" for problem in self.medium.problems()]
            problems += [f"cache: {problem}" for problem in self.cache.problems()]
            problems += self._zones_hold_the_sectors(self.medium)
        if isinstance(self.medium, SolidState) and not problems:
            problems += [f"medium: {problem}" for problem in self.medium.problems()]
        if isinstance(self.medium, SolidState) and not problems:
            problems += self.medium.whole_drive_problems(self.sectors.value, self.cache.kib.value)
        for place, figure in self.figures():
            if figure.source and figure.source not in self.sources:
                problems.append(f"{place}: no source {figure.source!r} in sources")
            if figure.origin == "published" and not figure.source:
                problems.append(f"{place}: is published, and names no source")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _out_of_bounds(self) -> Iterator[str]:
        for place, figure in self.figures():
            if isinstance(figure, Figure | Whole):
                least, most = BOUNDS[place.rpartition(".")[2]]
                if not least <= figure.value <= most:
                    yield f"{place}: {figure.value:g} is not {least:g} to {most:g}"

    def _zones_hold_the_sectors(self, disk: RotatingDisk) -> Iterator[str]:
        if disk.zones and not any(disk.zones.problems()):
            held = disk.zones.capacity(disk.heads.value)
            if held < self.sectors.value:
                yield f"medium: zones.table: {held} sectors, fewer than the drive's {self.sectors.value}"

    def figures(self) -> list[tuple[str, Sourced]]:
        """Return every figure with its place in the file."""
        figures: list[tuple[str, Sourced]] = []
        for prefix, part in (
            ("", self),
            ("interface.", self.interface),
            ("cache.", self.cache),
            ("medium.", self.medium),
        ):
            figures += [(prefix + name, value) for name, value in part if isinstance(value, Sourced)]
        return figures
