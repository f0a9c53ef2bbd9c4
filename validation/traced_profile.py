"""The profile of a drive that was traced, of more and more of what is known of it.

One rule for each kind of profile, the same for all drives; none is fitted to the response times.

**Sheet**, as the files of `scenarios/drives` are made: a maker's sheet states capacity, surfaces, revolutions, the seek
to the next cylinder and the mean one, the best rate, the cache and the interface. The rest are the estimates of those
files, with their sources: a command takes the electronics 300 us, whatever it is (Western Digital's sheet of the
WD400BB); the inner rate is 0.55 of the outer one, the full stroke 1.9 mean seeks, a write's mean seek 1 ms longer, a
switch of the head takes 1 ms, half a segment is read ahead. The sheet's two seek times are taken from the measured
curve and its rate from the outermost zone, since makers state true ones. **Sheet + overhead** and **sheet + bus** have
the extracted electronics' times, or the bus as the trace shows it, besides, and **sheet + both** has both.

**Extracted**: besides, the full stroke of the measured curve (where no curve of Lee and Katz rises through the three,
the nearest through which one does); what a write's mean seek is longer than a read's; the innermost zone's rate; how
far the drive reads ahead, if it does. What follows from it: a switch of the head takes what a seek to the next cylinder
takes, for after both the head has to settle on a new track; skews are what these take, as makers choose them.

**Manual**, as SCSI drives have one with the defaults of their mode pages: besides, whether it reads ahead to the end of
a track at most, how full its buffer is when it takes the bus or begins to write, how many segments writes may have.

**Measured**: besides, the whole seek curve, all zones, the skews, and whether a read within a track begins with
whichever sector comes first. Curves fall here and there by what a measurement scatters: neighbours that fall are
replaced by their mean. A switch of the head takes what the skew allows for it, and no more than a seek does.

Two rules are DiskSim's, by its source. `Buffer continuous read` 4 always reads ahead, to the end of the track, or of
the next one if the segment began on an earlier track (`disk_buffer_get_max_readahead`): the model has the first half,
and stops at the end of the track in both cases. A write of a drive with full write caching (`Fast write level` 2)
takes the overhead of a write *hit* (`disk_write_arrive`). DiskSim gives it to level 1, too, where only a write that
appends to the last request's is cached; here that level keeps the overhead of a miss.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from heapq import heappop, heappush
from itertools import combinations
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from agelab.base.errors import InputError
from agelab.base.types import Figure, Flag, Whole
from agelab.scenario.drive import (
    MAX_SEEK_POINTS,
    SECTOR,
    Cache,
    Drive,
    Interface,
    RotatingDisk,
    SeekTable,
    ZoneTable,
)
from agelab.scenario.toml_files import error_lines
from validation.drive_traces import Electronics, Mechanics, Request, TracedDrive


class Figures(Enum):
    """What a profile is made of."""

    SHEET = "sheet"
    SHEET_OVERHEAD = "sheet+overhead"
    SHEET_BUS = "sheet+bus"
    SHEET_BOTH = "sheet+both"
    EXTRACTED = "extracted"
    MANUAL = "manual"
    MEASURED = "measured"


_SHEETS = (Figures.SHEET, Figures.SHEET_OVERHEAD, Figures.SHEET_BUS, Figures.SHEET_BOTH)
_POLICIES = (Figures.MANUAL, Figures.MEASURED)
_KIB = 1024 // SECTOR
_SHEET_OVERHEAD_US = 300
"""Western Digital's sheet of the WD400BB, as in most files of scenarios/drives."""
_SHEET_BUS_MB_S = 20
"""Wide Fast SCSI-2's, the middle of the 10 (Fast) to 40 (Wide Ultra) of such drives' sheets."""
_READ_AHEAD_TRACKS = {1: 1, 4: 2}
"""`Buffer continuous read` of drives whose read-ahead a track's end ends: with 4 it may be the next one's."""
_OFTEN = 30
"""Requests of a size from which on the quickest of them was served by the cache."""


def _figure(value: float) -> Figure:
    return Figure(value=value, origin="inferred")


def _whole(value: float) -> Whole:
    return Whole(value=round(value), origin="inferred")


def _flag(value: bool) -> Flag:
    return Flag(value=value, origin="inferred")


def rising(points: tuple[tuple[int, float], ...]) -> list[tuple[int, float]]:
    """Return the curve that never falls and is nearest to these points (pool adjacent violators)."""
    pools: list[list[float]] = []
    for _, time in points:
        pools.append([time])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    times = [_mean(pool) for pool in pools for _ in pool]
    return [(distance, time) for (distance, _), time in zip(points, times, strict=True)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def time_at(curve: Sequence[tuple[int, float]], distance: int) -> float:
    """Return a curve's time over a distance: between two points it rises evenly, beyond its ends it is level."""
    at = bisect_left(curve, distance, key=lambda point: point[0])
    if at == len(curve):
        return curve[-1][1]
    far, most = curve[at]
    if at == 0 or far == distance:
        return most
    near, least = curve[at - 1]
    return least + (most - least) * (distance - near) / (far - near)


def mean_seek(curve: list[tuple[int, float]], cylinders: int) -> float:
    """Return the mean over all pairs of different cylinders."""
    weights = [(cylinders - distance, distance) for distance in range(1, cylinders)]
    total = sum(weight for weight, _ in weights)
    return sum(weight * time_at(curve, distance) for weight, distance in weights) / total


def bus_rate(requests: tuple[Request, ...]) -> float:
    """Return the rate of the host's bus, bytes a microsecond, from the trace.

    The quickest reads of each size come from the drive's cache: what a larger one takes longer is the bus. It is the
    median over pairs of sizes, so that sizes without a hit do not matter.
    """
    sizes = Counter(request.sectors for request in requests if not request.write)
    quickest: dict[int, float] = {}
    for request in requests:
        if not request.write and sizes[request.sectors] >= _OFTEN:
            quickest[request.sectors] = min(quickest.get(request.sectors, request.response), request.response)
    slopes = [
        (quickest[more] - quickest[less]) / (more - less)
        for less, more in combinations(sorted(quickest), 2)
        if more - less >= 4
    ]
    slope = median(slopes) if slopes else 0
    return SECTOR / slope if slope > 0 else 1000


def profile(drive: TracedDrive, figures: Figures) -> Drive:
    """Return the drive's profile. Raises InputError where its files make none."""
    try:
        return _profile(drive, figures)
    except ValidationError as error:
        raise InputError("\n".join(error_lines(Path(drive.name), error))) from error


def _profile(drive: TracedDrive, figures: Figures) -> Drive:
    electronics, mechanics = drive.electronics, drive.mechanics
    bus = _SHEET_BUS_MB_S if figures in (Figures.SHEET, Figures.SHEET_OVERHEAD) else bus_rate(drive.requests)
    return Drive(
        name=drive.name.lower().replace("_", "-"),
        summary=drive.name,
        sources={},
        sectors=_whole(max([mechanics.sectors, *(request.first + request.sectors for request in drive.requests)])),
        **_overheads(electronics, figures),
        queue_depth=_whole(1),
        max_request_kib=_whole(max(4, *(-(-request.sectors // _KIB) for request in drive.requests))),
        interface=Interface(name="SCSI", mb_per_s=_figure(bus)),
        cache=_cache(electronics, figures),
        medium=_disk(drive, figures),
    )


def _overheads(electronics: Electronics, figures: Figures) -> dict[str, Figure]:
    if figures in (Figures.SHEET, Figures.SHEET_BUS):
        return {"overhead_us": _figure(_SHEET_OVERHEAD_US)}
    times = {
        "overhead_us": electronics.read_miss,
        "hit_overhead_us": electronics.read_hit,
        "write_overhead_us": electronics.write,
    }
    return {name: _figure(max(1, ms * 1000)) for name, ms in times.items()}


def _cache(electronics: Electronics, figures: Figures) -> Cache:
    segment = electronics.segment_sectors // 8 * 8
    ahead = min(electronics.read_ahead_sectors, segment) if electronics.reads_ahead else 0
    if figures in _SHEETS:
        ahead = segment // 2
    return Cache(
        kib=_whole(electronics.segments * segment // _KIB),
        segments=_whole(electronics.segments),
        read_ahead_kib=_whole(ahead // _KIB),
        write_back=_flag(electronics.write_back),
    ).model_copy(update=_policies(electronics) if figures in _POLICIES else {})


def _disk(drive: TracedDrive, figures: Figures) -> RotatingDisk:
    disk = _three_seeks(drive.mechanics)
    if figures in _SHEETS:
        return _sheet_disk(disk)
    return _measured_disk(drive, disk) if figures is Figures.MEASURED else disk


def _policies(electronics: Electronics) -> dict[str, Whole | None]:
    """Return what a manual states of how the cache works."""
    tracks = _READ_AHEAD_TRACKS.get(electronics.reads_ahead)
    return {
        "read_ahead_tracks": _whole(tracks) if tracks else None,
        "write_segments": _whole(min(electronics.write_segments, electronics.segments)),
        "bus_after_percent": _whole(electronics.bus_after * 100),
        "write_after_percent": _whole(electronics.write_after * 100),
    }


def _three_seeks(mechanics: Mechanics) -> RotatingDisk:
    curve = rising(mechanics.seek)
    least, average = curve[0][1], mean_seek(curve, mechanics.cylinders)
    low, high = (15 * average - 4 * least) / 11, 3 * average - 2 * least
    full = min(max(time_at(curve, mechanics.cylinders - 1), low + 0.001), high - 0.001)
    outer, inner = mechanics.zones[0].per_track, mechanics.zones[-1].per_track
    revolution = 60 / mechanics.rpm
    mb_s = SECTOR / 1e6 / (revolution + least / 1000)
    return RotatingDisk(
        kind="disk",
        rpm=_whole(mechanics.rpm),
        heads=_whole(mechanics.surfaces),
        outer_mb_s=_figure(outer * mb_s),
        inner_mb_s=_figure(inner * mb_s),
        track_to_track_ms=_figure(least),
        average_ms=_figure(average),
        full_stroke_ms=_figure(full),
        write_average_ms=_figure(average + max(0, mechanics.write_settling)),
        head_switch_ms=_figure(least),
        track_skew_ms=_figure(least),
        cylinder_skew_ms=_figure(least),
    )


def _sheet_disk(disk: RotatingDisk) -> RotatingDisk:
    """Return what a sheet states of it, and for the rest the estimates of scenarios/drives."""
    average = disk.average_ms.value
    return disk.model_copy(
        update={
            "inner_mb_s": _figure(0.55 * disk.outer_mb_s.value),
            "full_stroke_ms": _figure(1.9 * average),
            "write_average_ms": _figure(average + 1),
            "head_switch_ms": _figure(1),
            "track_skew_ms": None,
            "cylinder_skew_ms": None,
        }
    )


def _measured_disk(drive: TracedDrive, disk: RotatingDisk) -> RotatingDisk:
    mechanics = drive.mechanics
    revolution = 60_000 / mechanics.rpm
    zones = mechanics.zones
    ends = [zone.first - 1 for zone in zones[1:]] + [mechanics.cylinders - 1]
    skews = [(zone.track_skew / zone.per_track, zone.cylinder_skew / zone.per_track) for zone in zones]
    track, cylinder = (revolution * sum(column) / len(column) for column in zip(*skews, strict=True))
    return disk.model_copy(
        update={
            "head_switch_ms": _figure(min(track, disk.track_to_track_ms.value)),
            "track_skew_ms": _figure(track),
            "cylinder_skew_ms": _figure(cylinder),
            "reads_any_order": _flag(drive.electronics.reads_any_order),
            "seek": SeekTable(origin="inferred", points=tuple(_thinned(rising(mechanics.seek)))),
            "zones": ZoneTable(
                origin="inferred",
                table=tuple((zone.first, end, zone.per_track) for zone, end in zip(zones, ends, strict=True)),
            ),
        }
    )


def _thinned(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return at most as many points as the module takes: always the one next that lies furthest from those before."""
    kept = {0, len(curve) - 1}
    spans = [_furthest(curve, 0, len(curve) - 1)]
    while len(kept) < min(MAX_SEEK_POINTS, len(curve)):
        _, at, first, last = heappop(spans)
        if not first < at < last:
            break
        kept.add(at)
        heappush(spans, _furthest(curve, first, at))
        heappush(spans, _furthest(curve, at, last))
    return [curve[at] for at in sorted(kept)]


def _furthest(curve: list[tuple[int, float]], first: int, last: int) -> tuple[float, int, int, int]:
    """Return the point between two that lies furthest from their line: minus how far, which, and the two."""
    ends = (curve[first], curve[last])
    return min(
        (-abs(time_at(ends, curve[at][0]) - curve[at][1]), at, first, last)
        for at in (range(first + 1, last) or (first,))
    )
