"""Profile of a modelled drive: figures from a data sheet, and estimates."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from agelab.model.base import Figure, Flag, Frozen, Sourced, Whole

SECTOR = 512
"""Bytes of a logical sector."""
MAX_CACHE_SEGMENTS = 32
"""Maximum number of cache segments in the kernel module (harness/drive)."""
MAX_CHANNELS = 64
"""Maximum number of channels of a flash drive in the kernel module."""
MIN_REQUEST_KIB = 4
"""Smallest limit of a request in the kernel module: a page."""


class Interface(Frozen):
    """Interface between drive and host."""

    name: str = Field(min_length=1, description="as named by the maker, e.g. ATA/100 or SATA 3 Gb/s")
    mb_per_s: Figure = Field(description="data rate, 10**6 bytes per second")


class Cache(Frozen):
    """Cache of a drive. The model uses it for disks; for flash its effect is part of the latencies."""

    kib: Whole = Field(description="total size, KiB")
    segments: Whole = Field(description="number of streams it can hold at once")
    read_ahead_kib: Whole = Field(description="size of read-ahead, KiB")
    write_back: Flag = Field(description="whether a write completes in the cache, as the drive is shipped")

    def problems(self, request_kib: int) -> Iterator[str]:
        """Yield contradictions between the figures, or with the largest request."""
        if not 1 <= self.segments.value <= MAX_CACHE_SEGMENTS:
            yield f"segments must be 1 to {MAX_CACHE_SEGMENTS}"
            return
        segment = self.kib.value // self.segments.value
        if segment < self.read_ahead_kib.value:
            yield f"a segment ({segment} KiB) must hold read_ahead_kib ({self.read_ahead_kib.value})"
        if self.write_back.value and self.kib.value - segment < 2 * request_kib:
            yield "all segments but one must hold two requests of max_request_kib: the write cache has those"


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

    def problems(self) -> Iterator[str]:
        """Yield contradictions between the figures.

        The seek curve of Lee and Katz rises all the way only if the full stroke lies between (15 average - 4 minimum)
        / 11 and 3 average - 2 minimum: below it the curve falls towards its end, above it it falls at its start.
        """
        least, average, most = self.track_to_track_ms.value, self.average_ms.value, self.full_stroke_ms.value
        for name in ("rpm", "heads"):
            if not getattr(self, name).value:
                yield f"{name} must be at least 1"
        if not self.inner_mb_s.value:
            yield "inner_mb_s must be more than 0"
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


class Flash(Frozen):
    """Chips behind channels: an access takes the channel's latency and then the transfer time, wherever it is."""

    kind: Literal["flash"] = Field(description="kind of medium")
    read_us: Figure = Field(description="channel's latency of a random read, microseconds")
    write_us: Figure = Field(description="channel's latency of a random write, microseconds")
    channels: Whole = Field(description="accesses processed at the same time")
    read_mb_s: Figure = Field(description="sequential read, 10**6 bytes per second, all channels together")
    write_mb_s: Figure = Field(description="sequential write, 10**6 bytes per second, all channels together")

    def problems(self) -> Iterator[str]:
        """Yield contradictions between the figures."""
        if not 1 <= self.channels.value <= MAX_CHANNELS:
            yield f"channels must be 1 to {MAX_CHANNELS}"
        for name in ("read_mb_s", "write_mb_s"):
            if not getattr(self, name).value:
                yield f"{name} must be more than 0"


def _kind_of_medium(raw: object) -> str | None:
    """Return the tag of a medium; its ~ keeps it out of the places that errors name."""
    kind = raw.get("kind") if isinstance(raw, dict) else getattr(raw, "kind", None)
    return f"~{kind}" if kind in ("disk", "flash") else None


Medium = Annotated[
    Annotated[RotatingDisk, Tag("~disk")] | Annotated[Flash, Tag("~flash")],
    Discriminator(
        _kind_of_medium, custom_error_type="kind", custom_error_message='kind must be "disk" or "flash"'
    ),
]


class Drive(Frozen):
    """A file of scenarios/drives/."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="the file's name")
    summary: str = Field(description="the drive in one line")
    sources: dict[str, str] = Field(description="documents named by published figures: title and number")
    sectors: Whole = Field(description="addressable sectors of 512 bytes")
    overhead_us: Figure = Field(description="time of the electronics for a command, microseconds")
    queue_depth: Whole = Field(description="commands accepted at once: 1 without NCQ")
    max_request_kib: Whole = Field(description="largest request from the kernel, KiB")
    interface: Interface = Field(description="interface to the host")
    cache: Cache = Field(description="cache of the drive")
    medium: Medium = Field(description="platters and an arm, or chips")

    @model_validator(mode="after")
    def _figures_hold_together(self) -> Self:
        problems = [f"medium: {problem}" for problem in self.medium.problems()]
        if isinstance(self.medium, RotatingDisk):
            requests = self.max_request_kib.value
            problems += [f"cache: {problem}" for problem in self.cache.problems(requests)]
        if self.max_request_kib.value < MIN_REQUEST_KIB:
            problems.append(f"max_request_kib must be at least {MIN_REQUEST_KIB}")
        for name in ("sectors", "queue_depth"):
            problems += [] if getattr(self, name).value else [f"{name} must be at least 1"]
        problems += [] if self.interface.mb_per_s.value else ["interface: mb_per_s must be more than 0"]
        for place, figure in self.figures():
            if figure.source and figure.source not in self.sources:
                problems.append(f"{place}: no source {figure.source!r} in sources")
            if figure.origin == "published" and not figure.source:
                problems.append(f"{place}: is published, and names no source")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def figures(self) -> list[tuple[str, Sourced]]:
        """Return every figure with its place in the file."""
        found: list[tuple[str, Sourced]] = []
        for prefix, part in (
            ("", self),
            ("interface.", self.interface),
            ("cache.", self.cache),
            ("medium.", self.medium),
        ):
            found += [(prefix + name, value) for name, value in part if isinstance(value, Sourced)]
        return found
