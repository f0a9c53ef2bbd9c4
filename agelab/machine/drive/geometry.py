"""Convert a drive's figures to the kernel module's parameters: integers only, as the module cannot use floats.

docs/design.md, "Drives and machines", says what the module computes from each.
"""

import hashlib
from dataclasses import dataclass
from math import sqrt

from agelab.base.types import Figure, Flag, Whole
from agelab.machine.drive import translation
from agelab.machine.drive.translation import Mapped
from agelab.scenario.drive import SECTOR, Drive, Flash, RotatingDisk, SolidState, ZoneTable

ZONES = 16
"""Zones of a rotating disk. Real drives have 10 to 30; with 16 the rates of two neighbours differ by about 3 %."""
WRITE_CACHE_MOST = 16 << 20
"""Bytes of a write cache at most (WRITE_CACHE_MOST in harness/drive/drive.h)."""
NS_PER_MINUTE = 60_000_000_000


@dataclass(frozen=True)
class SeekCurve:
    """``minimum + root * sqrt(x) + linear * x`` nanoseconds over d of C cylinders, ``x = (d-1) / (C-2)``.

    ``linear`` may be negative; the curve still rises everywhere (model/drive.py checks it).
    """

    minimum: int
    root: int
    linear: int

    def time(self, distance: int, cylinders: int) -> float:
        """Return the time of a read's seek over so many cylinders, in nanoseconds."""
        if distance == 0:
            return 0
        x = (distance - 1) / (cylinders - 2)
        return self.minimum + self.root * sqrt(x) + self.linear * x


def revolution_ns(disk: RotatingDisk) -> int:
    """Return the time of one revolution in nanoseconds."""
    return round(NS_PER_MINUTE / disk.rpm.value)


def seek_curve(disk: RotatingDisk) -> SeekCurve:
    """Fit the curve through the seek times to the next, to a random and to the furthest cylinder.

    Over uniformly random pairs of cylinders sqrt(x) has the mean 8/15 and x the mean 1/3; with full stroke =
    minimum + root + linear that gives root = (15 average - 10 minimum - 5 full) / 3 and
    linear = (7 minimum - 15 average + 8 full) / 3: Lee and Katz, "An Analytic Performance Model of Disk
    Arrays", SIGMETRICS 1993.
    """
    minimum, average, full = (
        round(figure.value * 1e6) for figure in (disk.track_to_track_ms, disk.average_ms, disk.full_stroke_ms)
    )
    root = round((15 * average - 10 * minimum - 5 * full) / 3)
    return SeekCurve(minimum, root, full - minimum - root)


def zones(drive: Drive, disk: RotatingDisk) -> list[tuple[int, int]]:
    """Return first sector and sectors per track of each zone, from the outer edge inwards.

    Constant bit density makes the rate fall linearly with the track; all zones have the same number of tracks
    to within one, so the zones' rates are equally spaced from the outer figure to the inner one. A track holds
    what the sustained rate moves in one revolution and the skew to the next track: ``rate * time / 512`` sectors.
    Every zone is a whole number of tracks; the last ends where the drive does, within a track.
    """
    if disk.zones:
        return _measured_zones(drive, disk, disk.zones)
    track = (revolution_ns(disk) + mean_skew_ns(disk)) / 1e9
    outer, inner = (figure.value * 1e6 * track / SECTOR for figure in (disk.outer_mb_s, disk.inner_mb_s))
    per_track = [max(1, round(outer + (inner - outer) * zone / (ZONES - 1))) for zone in range(ZONES)]
    tracks, left = divmod(drive.sectors.value, sum(per_track))
    table, first = [], 0
    for spt in per_track:
        table.append((first, spt))
        extra = 1 if left >= spt else 0
        left -= extra * spt
        first += (tracks + extra) * spt
    return table


def mean_skew_ns(disk: RotatingDisk) -> float:
    """Return the mean skew from one track to the next; 0 where the file has none, and the rates contain it."""
    if not disk.track_skew_ms or not disk.cylinder_skew_ms:
        return 0
    heads = max(1, disk.heads.value)
    return ((heads - 1) * disk.track_skew_ms.value + disk.cylinder_skew_ms.value) / heads * 1e6


def _data_share(drive: Drive, disk: RotatingDisk, measured: ZoneTable) -> float:
    """Return the share of the sectors that hold data: the others are spares, or hold the drive's own programs.

    Where they lie differs by maker. The module knows only cylinders of data: there are so many fewer of them, and
    the distances of a measured seek curve shrink with them.
    """
    return drive.sectors.value / measured.capacity(disk.heads.value)


def _measured_zones(drive: Drive, disk: RotatingDisk, measured: ZoneTable) -> list[tuple[int, int]]:
    """Return first sector and sectors per track of each measured zone, without its spares."""
    table, first, share = [], 0, _data_share(drive, disk, measured)
    for begins, ends, per_track in measured.table:
        table.append((first, per_track))
        first += max(1, round((ends - begins + 1) * disk.heads.value * share)) * per_track
    return table


def seek_points(drive: Drive, disk: RotatingDisk) -> list[tuple[int, int]]:
    """Return the measured seek curve as cylinders and nanoseconds; none where the file has no curve."""
    if not disk.seek:
        return []
    share = _data_share(drive, disk, disk.zones) if disk.zones else 1
    curve: dict[int, int] = {}
    for cylinders, ms in disk.seek.points:
        curve.setdefault(max(1, round(cylinders * share)), round(ms * 1e6))
    return list(curve.items())


def count_tracks(drive: Drive, table: list[tuple[int, int]]) -> int:
    """Count the tracks of all zones; the last one may be partial."""
    ends = [first for first, _ in table[1:]] + [drive.sectors.value]
    return sum(-(-(end - first) // spt) for (first, spt), end in zip(table, ends, strict=True))


def count_cylinders(drive: Drive, disk: RotatingDisk, table: list[tuple[int, int]]) -> int:
    """Count the arm's positions: the tracks divided by the heads."""
    return max(3, -(-count_tracks(drive, table) // disk.heads.value))


def phase(run_seed: int, index: int, revolution: int) -> int:
    """Draw the platters' angle at guest time 0 from the run seed, in nanoseconds of a revolution."""
    drawn = hashlib.sha256(f"agelab drive phase {run_seed} {index}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") % revolution


def write_cache_bytes(drive: Drive) -> int:
    """Return the bytes of a drive's write cache in the module: of a solid-state drive its buffer, of a disk all but one
    segment, or those that the file states, and 16 MiB at most (drive.h)."""
    if isinstance(drive.medium, Flash) or not drive.cache.write_back.value:
        return 0
    if isinstance(drive.medium, SolidState):
        return drive.cache.kib.value << 10
    whole, segments = drive.cache.kib.value << 10, drive.cache.segments.value
    segment = whole // segments
    if drive.cache.write_segments:
        return min(segment * drive.cache.write_segments.value, WRITE_CACHE_MOST)
    return min(whole - segment if segments > 1 else segment, WRITE_CACHE_MOST)


def module_parameters(
    drive: Drive,
    *,
    name: str,
    run_seed: int,
    index: int,
    queue_depth: int | None = None,
    mapped: Mapped | None = None,
) -> str:
    """Return the module's parameters for this drive, except ``memory=`` and ``table=``, which the guest appends.

    ``name`` is the name of the block device, ``index`` the drive's number in its machine, ``queue_depth`` the limit of
    the machine's controller (model/machine.py). ``mapped`` is what a solid-state drive's partitions take of it.
    """
    depth = drive.queue_depth.value
    medium = drive.medium
    words: dict[str, int | str] = {"name": name, "kind": medium.kind, "sectors": drive.sectors.value}
    if isinstance(medium, RotatingDisk):
        words |= _disk_parameters(drive, medium)
        words["phase_ns"] = phase(run_seed, index, revolution_ns(medium))
    elif isinstance(medium, SolidState):
        assert mapped is not None, "a solid-state drive maps what its partitions take"
        words |= translation.parameters(drive, medium, mapped)
    else:
        words |= _flash_parameters(medium)
    words |= {
        "overhead_ns": round(drive.overhead_us.value * 1000),
        "interface": round(drive.interface.mb_per_s.value * 1e6),
        "cache_bytes": drive.cache.kib.value << 10,
        "segments": drive.cache.segments.value,
        "read_ahead_bytes": drive.cache.read_ahead_kib.value << 10,
        "write_back": int(drive.cache.write_back.value),
        "depth": min(depth, queue_depth or depth),
        "max_request": drive.max_request_kib.value << 10,
        **_optional_parameters(drive),
    }
    return " ".join(f"{key}={value}" for key, value in words.items())


def _disk_parameters(drive: Drive, disk: RotatingDisk) -> dict[str, int | str]:
    table, seek = zones(drive, disk), seek_curve(disk)
    settle = disk.write_average_ms.value - disk.average_ms.value
    return {
        "revolution_ns": revolution_ns(disk),
        "heads": disk.heads.value,
        "zones": ",".join(f"{first}:{spt}" for first, spt in table),
        "cylinders": count_cylinders(drive, disk, table),
        "seek_min_ns": seek.minimum,
        "seek_sqrt_ns": seek.root,
        "seek_linear_ns": seek.linear,
        "write_settle_ns": round(settle * 1e6),
        "head_switch_ns": round(disk.head_switch_ms.value * 1e6),
    }


def _optional_parameters(drive: Drive) -> dict[str, int | str]:
    """Return the words for the figures that a file need not have: without a word the module has its default."""
    disk, cache = drive.medium, drive.cache
    figures: dict[str, tuple[Figure | Whole | Flag | None, float]] = {
        "hit_overhead_ns": (drive.hit_overhead_us, 1000),
        "write_overhead_ns": (drive.write_overhead_us, 1000),
    }
    words: dict[str, int | str] = {}
    if isinstance(disk, RotatingDisk):
        figures |= {
            "track_skew_ns": (disk.track_skew_ms, 1e6),
            "cylinder_skew_ns": (disk.cylinder_skew_ms, 1e6),
            "any_order": (disk.reads_any_order, 1),
            "write_segments": (cache.write_segments, 1),
            "read_ahead_tracks": (cache.read_ahead_tracks, 1),
            "bus_after_percent": (cache.bus_after_percent, 1),
            "write_after_percent": (cache.write_after_percent, 1),
        }
        if disk.seek:
            words["seek"] = ",".join(f"{cylinders}:{ns}" for cylinders, ns in seek_points(drive, disk))
    return words | {name: round(figure.value * factor) for name, (figure, factor) in figures.items() if figure}


def _flash_parameters(flash: Flash) -> dict[str, int | str]:
    return {
        "read_ns": round(flash.read_us.value * 1000),
        "write_ns": round(flash.write_us.value * 1000),
        "channels": flash.channels.value,
        "read_rate": round(flash.read_mb_s.value * 1e6),
        "write_rate": round(flash.write_mb_s.value * 1e6),
    }
