"""Traces of real drives, in the format of DiskSim's validation set, as frozen types.

Of a drive ``<name>`` a directory has ``<name>.trace`` (requests with measured response times), ``<name>.model``
(surfaces, zones, skews, rotation), ``<name>.diskspecs`` (cache and overheads as they were extracted from it), and
perhaps ``<name>.seek`` (the measured seek curve). Every error of a file is told at once, with its place.

A line of a trace ends with a time to an arrival: in some files that of the next line's request, in others that of its
own, since the request before had completed. The platters tell which: moments at which neighbouring sectors of one track
have passed lie whole revolutions apart, so only under the right reading do the angles of such pairs agree.
"""

import cmath
import dataclasses
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import isfinite, sqrt, tau
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AliasPath,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass

from agelab.base import fileio
from agelab.base.errors import InputError
from validation import disksim_text

_SHOWN = 100
"""Errors of one file that are shown; of more their number is."""
_FULL_WRITE_CACHING = 2
"""As a `Fast write level`."""
_KEYS = ConfigDict(populate_by_name=True)
_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Any = TypeVar("_Any")


@dataclasses.dataclass(frozen=True)
class Request:
    """One line of a trace. Times are in microseconds."""

    write: bool
    first: int
    sectors: int
    response: float
    gap: float
    """From its completion to the next request's arrival, or from the last one's to its own (``stands_before``)."""


@dataclass(frozen=True, config=_KEYS)
class Zone:
    """Cylinders with as many sectors on each track; skews in sectors."""

    first: int = Field(alias="First cylinder number", ge=0)
    last: int = Field(alias="Last cylinder number", ge=0)
    per_track: int = Field(alias="Blocks per track", ge=1)
    track_skew: _Number = Field(alias="Skew for track switch")
    cylinder_skew: _Number = Field(alias="Skew for cylinder switch")

    @model_validator(mode="after")
    def _begins_first(self) -> "Zone":
        if self.last < self.first:
            raise ValueError("the zone ends before it begins")
        return self

    def tracks(self, surfaces: int) -> int:
        """Return the number of its tracks."""
        return (self.last - self.first + 1) * surfaces


def _mechanical(key: str) -> AliasPath:
    return AliasPath("Mechanical Model", key)


@dataclass(frozen=True, config=_KEYS)
class Mechanics:
    """A drive's ``.model`` and ``.seek``. Times are in milliseconds."""

    surfaces: int = Field(validation_alias="Number of data surfaces", ge=1)
    cylinders: int = Field(validation_alias="Number of cylinders", ge=3)
    sectors: int = Field(validation_alias="Block count", ge=1)
    zones: tuple[Zone, ...] = Field(validation_alias=AliasPath("Layout Model", "Zones"), min_length=1)
    rpm: float = Field(validation_alias=_mechanical("Rotation speed (in rpms)"), ge=1, allow_inf_nan=False)
    head_switch: _Number = Field(validation_alias=_mechanical("Head switch time"))
    write_settling: float = Field(
        validation_alias=_mechanical("Add. write settling delay"), ge=-10, allow_inf_nan=False
    )
    seek: tuple[tuple[int, float], ...] = Field()
    """Distances in cylinders, rising, and times as they were measured."""

    @field_validator("zones")
    @classmethod
    def _lie_apart(cls, zones: tuple[Zone, ...]) -> tuple[Zone, ...]:
        for before, after in pairwise(zones):
            if after.first <= before.last:
                raise ValueError(f"the zone at cylinder {after.first} overlaps the one before")
        return zones


@dataclass(frozen=True, config=_KEYS)
class Electronics:
    """A drive's ``.diskspecs``. Overheads are in milliseconds; those after a read and after a write are averaged."""

    segments: int = Field(alias="Number of buffer segments", ge=1)
    write_segments: int = Field(alias="Maximum number of write segments", ge=0)
    segment_sectors: int = Field(alias="Segment size (in blks)", ge=8)
    read_ahead_sectors: int = Field(alias="Maximum read-ahead (blks)", ge=0)
    reads_ahead: int = Field(alias="Buffer continuous read", ge=0)
    """How far: 0 not, 1 to the track's end, 2 to the cylinder's, 3 until the segment is full, 4 to the track's end, or
    the next one's if the segment began on an earlier track (disk_buffer_get_max_readahead of DiskSim)."""
    fast_write_level: int = Field(alias="Fast write level", ge=0)
    """Which writes are cached: 0 none, 1 those that append to the last request's, 2 also where other requests came
    between (DiskSim's FULL_FASTWRITE)."""
    immediate_read: int = Field(alias="Immediate buffer read", ge=0)
    high_mark: _Number = Field(alias="High (read) water mark")
    low_mark: _Number = Field(alias="Low (write) water mark")
    read_end: _Number = Field(alias="Read completion overhead")
    read_hit_after_read: _Number = Field(alias="Read hit over. after read")
    read_hit_after_write: _Number = Field(alias="Read hit over. after write")
    read_miss_after_read: _Number = Field(alias="Read miss over. after read")
    read_miss_after_write: _Number = Field(alias="Read miss over. after write")
    write_end: _Number = Field(alias="Write completion overhead")
    write_hit_after_read: _Number = Field(alias="Write hit over. after read")
    write_hit_after_write: _Number = Field(alias="Write hit over. after write")
    write_miss_after_read: _Number = Field(alias="Write miss over. after read")
    write_miss_after_write: _Number = Field(alias="Write miss over. after write")
    preparation: _Number = Field(alias="Data preparation overhead", default=0)
    reselect: _Number = Field(alias="First reselect overhead", default=0)
    disconnect: _Number = Field(alias="Read disconnect afterread", default=0)

    @property
    def write_back(self) -> bool:
        return self.fast_write_level > 0

    @property
    def reads_any_order(self) -> bool:
        return self.immediate_read > 0

    @property
    def bus_after(self) -> float:
        """Share of a read in the cache when the bus is taken."""
        return min(1.0, self.high_mark)

    @property
    def write_after(self) -> float:
        """Share of a write in the cache when the head begins to write."""
        return min(1.0, self.low_mark)

    @property
    def read_hit(self) -> float:
        return self.read_end + (self.read_hit_after_read + self.read_hit_after_write) / 2

    @property
    def read_miss(self) -> float:
        """A read that misses gives up the bus and has to take it again."""
        reconnect = self.preparation + self.reselect + self.disconnect
        return self.read_end + reconnect + (self.read_miss_after_read + self.read_miss_after_write) / 2

    @property
    def write(self) -> float:
        """To its completion, without what passes while the arm moves: a hit of a drive with full write caching."""
        if self.fast_write_level >= _FULL_WRITE_CACHING:
            return self.write_end + (self.write_hit_after_read + self.write_hit_after_write) / 2
        return self.write_end + (self.write_miss_after_read + self.write_miss_after_write) / 2


@dataclasses.dataclass(frozen=True)
class TracedDrive:
    """A drive and what was measured on it."""

    name: str
    mechanics: Mechanics
    electronics: Electronics
    requests: tuple[Request, ...]


def read_all(directory: Path) -> list[TracedDrive]:
    """Read all drives of a directory, by name. Raises InputError with the errors of all their files."""
    names = sorted(path.stem for path in directory.glob("*.trace"))
    if not names:
        raise InputError(f"{directory} has no file that ends in .trace")
    drives, wrong = [], []
    for name in names:
        parts = []
        for read in (_mechanics, _electronics, _requests):
            try:
                parts.append(read(directory, name))
            except InputError as error:
                wrong.append(str(error))
        if len(parts) == 3:
            drives.append(TracedDrive(name, *parts))  # type: ignore[arg-type]
    if wrong:
        raise InputError("\n".join(wrong))
    return drives


def _text(path: Path) -> str:
    try:
        return fileio.read_text(path, fileio.TEXT)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error


def _requests(directory: Path, name: str) -> tuple[Request, ...]:
    path = directory / f"{name}.trace"
    requests, wrong = [], []
    for number, line in enumerate(_text(path).rstrip().splitlines(), 1):
        try:
            requests.append(_request(line))
        except ValueError as error:
            wrong.append(f"line {number}: {error}")
    if not (requests or wrong):
        wrong.append("has no request")
    _tell(path, wrong)
    return tuple(requests)


def _request(line: str) -> Request:
    words = line.split()
    if len(words) != 6 or words[0] not in ("R", "W"):
        raise ValueError(f"is no request: {line[:60]!r}")
    try:
        first, sectors, response, gap = int(words[2]), int(words[3]), float(words[4]), float(words[5])
    except ValueError:
        raise ValueError(f"has something that is no number: {line[:60]!r}") from None
    if first < 0 or sectors < 1:
        raise ValueError(f"has no sectors: {line[:60]!r}")
    if not (isfinite(response) and isfinite(gap) and response > 0 and gap >= 0):
        raise ValueError(f"has no times: {line[:60]!r}")
    return Request(words[0] == "W", first, sectors, response, gap)


def _tell(path: Path, wrong: Sequence[str]) -> None:
    """Raise InputError with all that is wrong with a file, if anything is."""
    shown = [f"{path}: {problem}" for problem in wrong[:_SHOWN]]
    if more := wrong[_SHOWN:]:
        shown.append(f"{path}: and {len(more)} more")
    if shown:
        raise InputError("\n".join(shown))


def _described(path: Path) -> dict[str, Any]:
    """Return what the one description of a file says."""
    try:
        return disksim_text.description(_text(path))
    except disksim_text.Malformed as error:
        raise InputError(f"{path}: {error}") from error


def _checked(path: Path, kind: type[_Any], data: Mapping[str, Any]) -> _Any:
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        problems = error.errors()
    _tell(path, [f"{': '.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems])
    raise AssertionError("a problem has been told")


def _mechanics(directory: Path, name: str) -> Mechanics:
    path = directory / f"{name}.model"
    model, wrong = _described(path), []
    seek: Sequence[tuple[int, float]] = ()
    try:
        seek = _seek(directory / f"{name}.seek", model)
    except InputError as error:
        wrong.append(str(error))
    try:
        mechanics = _checked(path, Mechanics, {**model, "seek": seek})
    except InputError as error:
        wrong.append(str(error))
    if wrong:
        raise InputError("\n".join(wrong))
    return mechanics


def _electronics(directory: Path, name: str) -> Electronics:
    path = directory / f"{name}.diskspecs"
    return _checked(path, Electronics, _described(path))


def _seek(path: Path, model: Mapping[str, Any]) -> Sequence[tuple[int, float]]:
    mechanics = model.get("Mechanical Model")
    mechanics = mechanics if isinstance(mechanics, dict) else {}
    kind = mechanics.get("Seek type")
    if kind in ("hpl", "hplplus10"):
        return _hpl(path.with_suffix(".model"), mechanics, kind, model.get("Number of cylinders"))
    if kind != "extracted":
        raise InputError(f"{path.with_suffix('.model')}: Seek type {kind!r} is not extracted, hpl or hplplus10")
    points: list[tuple[int, float]] = []
    wrong = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if (number == 1 and line.startswith("Seek distances")) or not line.strip():
            continue
        try:
            distance, time = line.split(",")
            points.append((int(distance), float(time)))
            if not (isfinite(points[-1][1]) and points[-1][1] > 0 and points[-1][0] > 0):
                raise ValueError
        except ValueError:
            wrong.append(f"line {number}: is no distance and time: {line[:60]!r}")
    if not wrong and (not points or any(nearer >= farther for (nearer, _), (farther, _) in pairwise(points))):
        wrong.append("the distances do not rise")
    _tell(path, wrong)
    return points


def _hpl(path: Path, mechanics: Mapping[str, Any], kind: str, last: Any) -> Sequence[tuple[int, float]]:
    """Return points of Ruemmler and Wilkes' curve: a root up to a distance, a line beyond it; measured first ten."""
    try:
        cylinders = int(last)
        border, base, root, start, slope, *_ = map(float, mechanics["HPL seek equation values"])
        first = list(map(float, mechanics["First ten seek times"])) if kind == "hplplus10" else []
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: its seek curve is not described: {error}") from error
    distances = sorted({*range(1, 11), *(round(1.12**n) for n in range(21, 120)), cylinders - 1, round(border)})

    def time(distance: int) -> float:
        if distance <= len(first):
            return first[distance - 1]
        return base + root * sqrt(distance) if distance < border else start + slope * distance

    return [(distance, time(distance)) for distance in distances if distance < cylinders]


# ---- on which line a time stands ----

_NEAR = 0.3
"""Share of a track within which two requests are neighbours."""
_SPEEDS = [1 + step / 10_000 for step in range(-50, 51)]
"""Of the nominal one: a drive's speed is known to a few per mille, and the times between are several revolutions."""
_MOVED = 1500.0
"""Microseconds of a read's response from which on it did not come from the cache."""


def stands_before(mechanics: Mechanics, requests: Sequence[Request], *, writes_tell: bool) -> bool:
    """Return True if a line's time is the one before its own request, False if it is the one behind it.

    Writes tell it of a drive that does not cache them, else reads.
    """
    firsts = [0, *accumulate(zone.tracks(mechanics.surfaces) * zone.per_track for zone in mechanics.zones)]
    behind, before = [], []
    for previous, request in pairwise(requests):
        zone = mechanics.zones[min(bisect_right(firsts, request.first), len(mechanics.zones)) - 1]
        apart = (request.first + request.sectors - previous.first - previous.sectors) / zone.per_track
        if previous.write == request.write == writes_tell and abs(apart) < _NEAR:
            if not writes_tell and min(previous.response, request.response) < _MOVED:
                continue
            behind.append((request.response + previous.gap, apart))
            before.append((request.response + request.gap, apart))
    revolution = 60e6 / mechanics.rpm
    return _agreement(before, revolution) > _agreement(behind, revolution)


def _agreement(pairs: Sequence[tuple[float, float]], revolution: float) -> float:
    """Return how well the angles agree at the speed that suits them best, from 0 to the number of pairs."""
    return max(
        abs(sum(cmath.rect(1, tau * (time * speed / revolution - apart)) for time, apart in pairs)) for speed in _SPEEDS
    )
