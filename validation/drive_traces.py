"""Traces of real drives, in the format of DiskSim's validation set, as frozen types.

Of a drive ``<name>`` a directory has ``<name>.trace`` (requests with measured response times), ``<name>.model``
(surfaces, zones, skews, rotation), ``<name>.diskspecs`` (cache and overheads as they were extracted from it), and
perhaps ``<name>.seek`` (the measured seek curve). Every error of a file is told at once, with its place.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite, sqrt
from pathlib import Path

from agelab.base import fileio
from agelab.base.errors import InputError
from validation.disksim_text import Block, Malformed, Scalar, blocks

_SHOWN = 100
"""Errors of one file that are shown; of more their number is."""


@dataclass(frozen=True)
class Request:
    """One line of a trace. Times are in microseconds."""

    write: bool
    first: int
    sectors: int
    response: float
    gap: float
    """From its completion to the next request's arrival, or from the last one's to its own (validation/gap_line.py)."""


@dataclass(frozen=True)
class Zone:
    """Cylinders with as many sectors on each track; skews in sectors."""

    first: int
    last: int
    per_track: int
    track_skew: float
    cylinder_skew: float

    def tracks(self, surfaces: int) -> int:
        """Return the number of its tracks."""
        return (self.last - self.first + 1) * surfaces


@dataclass(frozen=True)
class Mechanics:
    """A drive's ``.model`` and ``.seek``. Times are in milliseconds."""

    surfaces: int
    cylinders: int
    sectors: int
    zones: tuple[Zone, ...]
    rpm: float
    head_switch: float
    write_settling: float
    seek: tuple[tuple[int, float], ...]
    """Distances in cylinders, rising, and times as they were measured."""


@dataclass(frozen=True)
class Electronics:
    """A drive's ``.diskspecs``. Overheads are in milliseconds, each the mean after a read and after a write."""

    segments: int
    write_segments: int
    segment_sectors: int
    read_ahead_sectors: int
    reads_ahead: int
    """How far: 0 not, 1 to the track's end, 2 to the cylinder's, 3 until the segment is full, 4 once it pays."""
    write_back: bool
    reads_any_order: bool
    bus_after: float
    """Share of a read in the cache when the bus is taken."""
    write_after: float
    """Share of a write in the cache when the head begins to write."""
    read_hit: float
    read_miss: float
    write: float
    """To its completion, without what passes while the arm moves."""


@dataclass(frozen=True)
class TracedDrive:
    """A drive and what was measured on it."""

    name: str
    mechanics: Mechanics
    electronics: Electronics
    requests: tuple[Request, ...]


@dataclass
class _Errors:
    """Errors of one file."""

    path: Path
    found: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    """Errors of other files that it needs, with their places."""

    def tell(self) -> None:
        """Raise InputError with all of them, if there are any."""
        if not (self.found or self.elsewhere):
            return
        more = len(self.found) - _SHOWN
        shown = [f"{self.path}: {problem}" for problem in self.found[:_SHOWN]]
        shown += [f"{self.path}: and {more} more"] if more > 0 else []
        raise InputError("\n".join(shown + self.elsewhere))


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
    errors, found = _Errors(path), []
    for number, line in enumerate(_text(path).rstrip().splitlines(), 1):
        try:
            found.append(_request(line))
        except ValueError as error:
            errors.found.append(f"line {number}: {error}")
    if not (found or errors.found):
        errors.found.append("has no request")
    errors.tell()
    return tuple(found)


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


@dataclass
class _Fields:
    """Numbers of a block, with what is missing or none collected."""

    block: Block
    errors: _Errors

    def number(self, key: str, *, least: float = 0, default: float | None = None) -> float:
        value = self.block.entries.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, Scalar):
            self.errors.found.append(f"line {self.block.line}: {self.block.kind} has no {key!r}")
            return least
        try:
            number = float(value.text)
        except ValueError:
            number = float("nan")
        if not isfinite(number) or number < least:
            self.errors.found.append(
                f"line {value.line}: {key} = {value.text}, and not a number from {least:g} on"
            )
            return least
        return number

    def whole(self, key: str, *, least: int = 0, default: int | None = None) -> int:
        return round(self.number(key, least=least, default=default))

    def mean(self, *keys: str) -> float:
        return sum(self.number(key) for key in keys) / len(keys)

    def block_of(self, key: str) -> "_Fields":
        value = self.block.entries.get(key)
        if isinstance(value, Block):
            return _Fields(value, self.errors)
        self.errors.found.append(f"line {self.block.line}: {self.block.kind} has no {key!r}")
        return _Fields(Block(key, {}, self.block.line), self.errors)

    def word(self, key: str) -> str:
        value = self.block.entries.get(key)
        return value.text if isinstance(value, Scalar) else ""


def _only_block(path: Path, errors: _Errors) -> _Fields:
    try:
        [found] = blocks(_text(path))
    except Malformed as error:
        raise InputError(f"{path}: {error}") from error
    except ValueError as error:
        raise InputError(f"{path}: does not describe one thing") from error
    return _Fields(found, errors)


def _mechanics(directory: Path, name: str) -> Mechanics:
    path = directory / f"{name}.model"
    errors = _Errors(path)
    top = _only_block(path, errors)
    layout, mechanics = top.block_of("Layout Model"), top.block_of("Mechanical Model")
    cylinders = top.whole("Number of cylinders", least=3)
    zones = tuple(_zones(layout, errors))
    try:
        seek = _seek(directory / f"{name}.seek", mechanics, cylinders)
    except InputError as error:
        seek = ()
        errors.elsewhere.append(str(error))
    found = Mechanics(
        surfaces=top.whole("Number of data surfaces", least=1),
        cylinders=cylinders,
        sectors=top.whole("Block count", least=1),
        zones=zones,
        rpm=mechanics.number("Rotation speed (in rpms)", least=1),
        head_switch=mechanics.number("Head switch time"),
        write_settling=mechanics.number("Add. write settling delay", least=-10),
        seek=seek,
    )
    errors.tell()
    return found


def _zones(layout: _Fields, errors: _Errors) -> Iterator[Zone]:
    listed = layout.block.entries.get("Zones")
    found = []
    for block in listed if isinstance(listed, list) else []:
        if not isinstance(block, Block):
            errors.found.append("Zones: holds something that is no zone")
            continue
        zone = _Fields(block, errors)
        found.append(
            Zone(
                first=zone.whole("First cylinder number"),
                last=zone.whole("Last cylinder number"),
                per_track=zone.whole("Blocks per track", least=1),
                track_skew=zone.number("Skew for track switch"),
                cylinder_skew=zone.number("Skew for cylinder switch"),
            )
        )
        if found[-1].last < found[-1].first:
            errors.found.append(f"line {block.line}: the zone ends before it begins")
    if not found:
        errors.found.append(f"line {layout.block.line}: {layout.block.kind} has no zones")
    for before, after in pairwise(found):
        if after.first <= before.last:
            errors.found.append(f"the zone at cylinder {after.first} overlaps the one before")
    yield from found


def _seek(path: Path, mechanics: _Fields, cylinders: int) -> tuple[tuple[int, float], ...]:
    kind = mechanics.word("Seek type")
    if kind in ("hpl", "hplplus10"):
        return _hpl(mechanics, kind, cylinders)
    if kind != "extracted":
        raise InputError(
            f"{path.with_suffix('.model')}: Seek type {kind!r} is not extracted, hpl or hplplus10"
        )
    errors = _Errors(path)
    found: list[tuple[int, float]] = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if (number == 1 and line.startswith("Seek distances")) or not line.strip():
            continue
        try:
            distance, time = line.split(",")
            found.append((int(distance), float(time)))
            if not (isfinite(found[-1][1]) and found[-1][1] > 0 and found[-1][0] > 0):
                raise ValueError
        except ValueError:
            errors.found.append(f"line {number}: is no distance and time: {line[:60]!r}")
    if not errors.found and (not found or any(one >= other for (one, _), (other, _) in pairwise(found))):
        errors.found.append("the distances do not rise")
    errors.tell()
    return tuple(found)


def _hpl(mechanics: _Fields, kind: str, cylinders: int) -> tuple[tuple[int, float], ...]:
    """Return points of Ruemmler and Wilkes' curve: a root up to a distance, a line beyond it; measured first ten."""
    values = _numbers(mechanics, "HPL seek equation values")
    first = _numbers(mechanics, "First ten seek times") if kind == "hplplus10" else []
    if len(values) < 5:
        mechanics.errors.found.append("HPL seek equation values: are not five numbers")
        return ()
    border, base, root, start, slope = values[:5]
    distances = sorted(
        {*range(1, 11), *(round(1.12**n) for n in range(21, 120)), cylinders - 1, round(border)}
    )

    def time(distance: int) -> float:
        if distance <= len(first):
            return first[distance - 1]
        return base + root * sqrt(distance) if distance < border else start + slope * distance

    return tuple((distance, time(distance)) for distance in distances if distance < cylinders)


def _numbers(mechanics: _Fields, key: str) -> list[float]:
    listed = mechanics.block.entries.get(key)
    try:
        return (
            [float(one.text) for one in listed if isinstance(one, Scalar)] if isinstance(listed, list) else []
        )
    except ValueError:
        mechanics.errors.found.append(f"{key}: holds something that is no number")
        return []


def _electronics(directory: Path, name: str) -> Electronics:
    path = directory / f"{name}.diskspecs"
    errors = _Errors(path)
    top = _only_block(path, errors)
    read_end = top.number("Read completion overhead")
    # A read that misses gives up the bus and has to take it again.
    reconnect = sum(
        top.number(key, default=0)
        for key in ("Data preparation overhead", "First reselect overhead", "Read disconnect afterread")
    )
    found = Electronics(
        segments=top.whole("Number of buffer segments", least=1),
        write_segments=top.whole("Maximum number of write segments", least=1),
        segment_sectors=top.whole("Segment size (in blks)", least=8),
        read_ahead_sectors=top.whole("Maximum read-ahead (blks)"),
        reads_ahead=top.whole("Buffer continuous read"),
        write_back=top.whole("Fast write level") > 0,
        reads_any_order=top.whole("Immediate buffer read") > 0,
        bus_after=min(1.0, top.number("High (read) water mark")),
        write_after=min(1.0, top.number("Low (write) water mark")),
        read_hit=read_end + top.mean("Read hit over. after read", "Read hit over. after write"),
        read_miss=read_end
        + reconnect
        + top.mean("Read miss over. after read", "Read miss over. after write"),
        write=top.number("Write completion overhead")
        + top.mean("Write miss over. after read", "Write miss over. after write"),
    )
    errors.tell()
    return found
