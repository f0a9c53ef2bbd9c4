"""A drive: what its maker says of it, and what had to be guessed, as the modelled drive takes it."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from agelab.model.base import Frozen
from agelab.model.figure import Figure, Flag, Sourced, Whole

SECTOR = 512
"""Bytes of a sector as the host addresses it."""
MAX_CACHE_SEGMENTS = 32
"""Cache segments that the kernel module (harness/drive) has room for."""
MAX_CHANNELS = 64
"""Channels of a flash drive that it has room for."""
MIN_REQUEST_KIB = 4
"""The smallest limit of a request that it takes: a page."""


class Interface(Frozen):
    """What moves the data between drive and host."""

    name: str = Field(min_length=1, description="as the maker writes it, e.g. ATA/100 or SATA 3 Gb/s")
    mb_per_s: Figure = Field(description="bytes of data it can move, 10**6 each second")


class Cache(Frozen):
    """The drive's own memory. The model uses a disk's; what flash gains from its own is in its latencies."""

    kib: Whole = Field(description="all of it, KiB")
    segments: Whole = Field(description="how many streams it can hold at once")
    read_ahead_kib: Whole = Field(description="what is read on after a read, KiB")
    write_back: Flag = Field(description="a write is done when it is in the cache, as the drive is shipped")

    def problems(self, request_kib: int) -> Iterator[str]:
        """What does not fit together, or does not fit a request of the largest size."""
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

    kind: Literal["disk"] = Field(description="which of the two it is")
    rpm: Whole = Field(description="revolutions a minute")
    heads: Whole = Field(description="surfaces that hold data")
    outer_mb_s: Figure = Field(description="sustained rate at the outer edge, 10**6 bytes a second")
    inner_mb_s: Figure = Field(description="sustained rate at the inner edge, 10**6 bytes a second")
    track_to_track_ms: Figure = Field(description="seek to the next cylinder")
    average_ms: Figure = Field(description="mean over random pairs of cylinders")
    full_stroke_ms: Figure = Field(description="seek from the first cylinder to the last")
    write_average_ms: Figure = Field(description="as average_ms, for a write: the arm settles longer")
    head_switch_ms: Figure = Field(description="to another surface of the same cylinder")

    def problems(self) -> Iterator[str]:
        """What does not fit together.

        The seek curve of Lee and Katz rises all the way only if the full stroke lies between
        (15 average - 4 minimum) / 11 and 3 average - 2 minimum: below it the curve falls towards its end,
        above it it falls at its start.
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
    """Chips behind channels: an access takes a channel's time and then that of its bytes, wherever it is."""

    kind: Literal["flash"] = Field(description="which of the two it is")
    read_us: Figure = Field(description="a channel's time for a random read, microseconds")
    write_us: Figure = Field(description="a channel's time for a random write, microseconds")
    channels: Whole = Field(description="accesses that it works on at the same time")
    read_mb_s: Figure = Field(description="sequential read, 10**6 bytes a second, all channels together")
    write_mb_s: Figure = Field(description="sequential write, 10**6 bytes a second, all channels together")

    def problems(self) -> Iterator[str]:
        """What does not fit together."""
        if not 1 <= self.channels.value <= MAX_CHANNELS:
            yield f"channels must be 1 to {MAX_CHANNELS}"
        for name in ("read_mb_s", "write_mb_s"):
            if not getattr(self, name).value:
                yield f"{name} must be more than 0"


def _kind_of_medium(raw: object) -> str | None:
    """Which of the two it is; the mark keeps the answer out of the places that errors name."""
    kind = raw.get("kind") if isinstance(raw, dict) else getattr(raw, "kind", None)
    return f"~{kind}" if kind in ("disk", "flash") else None


Medium = Annotated[
    Annotated[RotatingDisk, Tag("~disk")] | Annotated[Flash, Tag("~flash")],
    Discriminator(
        _kind_of_medium, custom_error_type="kind", custom_error_message='kind must be "disk" or "flash"'
    ),
]


class Drive(Frozen):
    """One file of scenarios/drives/."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="the file's name")
    summary: str = Field(description="what drive it is, in a line")
    sources: dict[str, str] = Field(description="what published figures name: title and number of a document")
    sectors: Whole = Field(description="addressable sectors of 512 bytes")
    overhead_us: Figure = Field(description="the electronics' time for a command, microseconds")
    queue_depth: Whole = Field(description="commands it takes at once: 1 without NCQ")
    max_request_kib: Whole = Field(description="the largest request that the kernel sends it, KiB")
    interface: Interface = Field(description="between drive and host")
    cache: Cache = Field(description="its own memory")
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
        """Every figure with its place in the file."""
        found: list[tuple[str, Sourced]] = []
        for prefix, part in (
            ("", self),
            ("interface.", self.interface),
            ("cache.", self.cache),
            ("medium.", self.medium),
        ):
            found += [(prefix + name, value) for name, value in part if isinstance(value, Sourced)]
        return found
