"""Convert a drive's figures to the kernel module's parameters: integers only, as the module cannot use floats.

docs/design.md, "Drives and machines", says what the module computes from each.
"""

import hashlib
from dataclasses import dataclass
from math import sqrt

from agelab.model.drive import SECTOR, Drive, Flash, RotatingDisk

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
    what the sustained rate moves in one revolution: ``rate * revolution / 512`` sectors. Every zone is a
    whole number of tracks; the last ends where the drive does, within a track.
    """
    revolution = revolution_ns(disk) / 1e9
    outer, inner = (figure.value * 1e6 * revolution / SECTOR for figure in (disk.outer_mb_s, disk.inner_mb_s))
    per_track = [max(1, round(outer + (inner - outer) * zone / (ZONES - 1))) for zone in range(ZONES)]
    tracks, left = divmod(drive.sectors.value, sum(per_track))
    table, first = [], 0
    for spt in per_track:
        table.append((first, spt))
        extra = 1 if left >= spt else 0
        left -= extra * spt
        first += (tracks + extra) * spt
    return table


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
    """Return the bytes of a disk's write cache in the module: all segments but one, 16 MiB at most (drive.h)."""
    if not isinstance(drive.medium, RotatingDisk) or not drive.cache.write_back.value:
        return 0
    whole = drive.cache.kib.value << 10
    return min(whole - whole // drive.cache.segments.value, WRITE_CACHE_MOST)


def module_parameters(
    drive: Drive, *, name: str, run_seed: int, index: int, queue_depth: int | None = None
) -> str:
    """Return the module's parameters for this drive, except ``memory=``, which the guest appends.

    ``name`` is the name of the block device, ``index`` the drive's number in its machine, ``queue_depth`` the limit of
    the machine's controller (model/machine.py).
    """
    depth = drive.queue_depth.value
    medium = drive.medium
    words: dict[str, int | str] = {"name": name, "kind": medium.kind, "sectors": drive.sectors.value}
    if isinstance(medium, RotatingDisk):
        words |= _disk_parameters(drive, medium)
        words["phase_ns"] = phase(run_seed, index, revolution_ns(medium))
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


def _flash_parameters(flash: Flash) -> dict[str, int | str]:
    return {
        "read_ns": round(flash.read_us.value * 1000),
        "write_ns": round(flash.write_us.value * 1000),
        "channels": flash.channels.value,
        "read_rate": round(flash.read_mb_s.value * 1e6),
        "write_rate": round(flash.write_mb_s.value * 1e6),
    }
