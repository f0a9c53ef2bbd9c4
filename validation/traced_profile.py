"""The profile of a drive that was traced: of what a brochure states, a product manual, or a measurement.

One rule for all drives, and for each kind of figures; none is fitted to the response times.

**Brochure**: seek times to the next cylinder and of the full stroke, the ends of the measured curve, and their mean
over random pairs of cylinders (where no curve of Lee and Katz rises through the three, the full stroke is the nearest
through which one does); what a write's mean seek is longer than a read's; capacity, surfaces, revolutions; rates at
the edges from the sectors per track of the outermost and innermost zone; size and number of the cache's segments,
read-ahead, whether writes are cached; the electronics' time for a read that misses, one that hits, and a write.

What it does not state follows from it: a switch of the head takes what a seek to the next cylinder takes, for after
both the head has to settle on a new track; skews are what these take, as makers choose them.

**Manual**, as SCSI drives have one with the defaults of their mode pages: besides, when the drive reads ahead and how
far, how full its buffer is when it takes the bus or begins to write, and how many segments writes may have.

**Measured**: besides, the whole seek curve, all zones, the skews, and whether a read within a track begins with
whichever sector comes first. Curves fall here and there by what a measurement scatters: neighbours that fall are
replaced by their mean. A switch of the head takes what the skew allows for it, and no more than a seek does.

The bus is not the drive's but the host's: its rate comes from the trace (`bus_rate`).
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

    BROCHURE = "brochure"
    MANUAL = "manual"
    MEASURED = "measured"


_KIB = 1024 // SECTOR
_TO_THE_TRACK_S_END, _ADAPTIVE = 1, 4
"""`Buffer continuous read` of drives that read ahead to the end of a track, and of those that do once it pays."""
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
    segment = electronics.segment_sectors // 8 * 8
    return Drive(
        name=drive.name.lower().replace("_", "-"),
        summary=drive.name,
        sources={},
        sectors=_whole(
            max([mechanics.sectors, *(request.first + request.sectors for request in drive.requests)])
        ),
        overhead_us=_figure(max(1, electronics.read_miss * 1000)),
        hit_overhead_us=_figure(max(1, electronics.read_hit * 1000)),
        write_overhead_us=_figure(max(1, electronics.write * 1000)),
        queue_depth=_whole(1),
        max_request_kib=_whole(max(4, *(-(-request.sectors // _KIB) for request in drive.requests))),
        interface=Interface(name="SCSI", mb_per_s=_figure(bus_rate(drive.requests))),
        cache=Cache(
            kib=_whole(electronics.segments * segment // _KIB),
            segments=_whole(electronics.segments),
            read_ahead_kib=_whole(
                min(electronics.read_ahead_sectors, segment) // _KIB if electronics.reads_ahead else 0
            ),
            write_back=_flag(electronics.write_back),
        ).model_copy(update={} if figures is Figures.BROCHURE else _policies(electronics)),
        medium=_measured_disk(mechanics, electronics.reads_any_order)
        if figures is Figures.MEASURED
        else _sheet_disk(mechanics),
    )


def _policies(electronics: Electronics) -> dict[str, Whole | Flag]:
    """Return what a manual states of how the cache works."""
    return {
        "read_ahead_after": _whole(2 if electronics.reads_ahead == _ADAPTIVE else 1),
        "read_ahead_in_track": _flag(electronics.reads_ahead == _TO_THE_TRACK_S_END),
        "write_segments": _whole(min(electronics.write_segments, electronics.segments)),
        "bus_after_percent": _whole(electronics.bus_after * 100),
        "write_after_percent": _whole(electronics.write_after * 100),
    }


def _sheet_disk(mechanics: Mechanics) -> RotatingDisk:
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


def _measured_disk(mechanics: Mechanics, reads_any_order: bool) -> RotatingDisk:
    revolution = 60_000 / mechanics.rpm
    zones = mechanics.zones
    ends = [zone.first - 1 for zone in zones[1:]] + [mechanics.cylinders - 1]
    skews = [(zone.track_skew / zone.per_track, zone.cylinder_skew / zone.per_track) for zone in zones]
    track, cylinder = (revolution * sum(column) / len(column) for column in zip(*skews, strict=True))
    sheet = _sheet_disk(mechanics)
    return sheet.model_copy(
        update={
            "head_switch_ms": _figure(min(track, sheet.track_to_track_ms.value)),
            "track_skew_ms": _figure(track),
            "cylinder_skew_ms": _figure(cylinder),
            "reads_any_order": _flag(reads_any_order),
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
