"""Plan the steps of validation/validate.py's guest for each drive, and the sectors that they access.

The places are drawn here, from the drive's name: the guest draws nothing, and does the same each time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agelab.base.errors import AgelabError
from agelab.machine.drive import geometry
from agelab.scenario.drive import SECTOR, Drive, RotatingDisk

SMALL = 4096
SMALL_SECTORS = SMALL // SECTOR
STREAM = 64 << 20
"""Bytes of a timed sequential transfer."""
WARM = 1 << 20
"""Bytes that are read before it."""
PLACE = 2 << 20
"""Bytes for the rate at one of many places."""
PLACES = 40
RANDOM_READS = 4000
STROKES = 320
DISTANCES = 60
SEEKS = 12
"""Reads for each distance of the seek curve."""
DEEP_READS = 8000
WINDOW = 80 << 20
"""Bytes of memory behind a flash drive, enough for a sequential transfer: writes need it."""
STEADY_NS = 100_000
"""A command of the drive that shows what the guest adds takes exactly so long."""
STEADY_SECTORS = 1 << 21

Step = dict[str, Any]
"""One thing that the guest does with a drive: ``name``, ``do`` and its arguments."""


def step(name: str, do: str, **arguments: object) -> Step:
    """One of them."""
    return {"name": name, "do": do, "arguments": arguments}


@dataclass(frozen=True)
class Tracks:
    """The positions of a disk's tracks."""

    zones: tuple[tuple[int, int], ...]
    sectors: int
    heads: int

    @classmethod
    def of(cls, drive: Drive, disk: RotatingDisk) -> "Tracks":
        return cls(tuple(geometry.zones(drive, disk)), drive.sectors.value, disk.heads.value)

    @property
    def cylinders(self) -> int:
        """Those that are whole."""
        return self.count // self.heads

    @property
    def count(self) -> int:
        """The whole tracks."""
        return sum(number for _, _, number in self._zones())

    def _zones(self) -> Iterator[tuple[int, int, int]]:
        """First sector, sectors a track and whole tracks of each zone."""
        ends = [first for first, _ in self.zones[1:]] + [self.sectors]
        for (first, per_track), end in zip(self.zones, ends, strict=True):
            yield first, per_track, (end - first) // per_track

    def track(self, number: int) -> tuple[int, int]:
        """First sector of that track, and how many it has."""
        for first, per_track, count in self._zones():
            if number < count:
                return first + number * per_track, per_track
            number -= count
        raise IndexError(number)

    def draw(self, random: Random, track: int) -> int:
        """Draw a sector on a track for a small read."""
        first, per_track = self.track(track)
        return first + random.randrange(per_track - SMALL_SECTORS)


class Fresh:
    """Draws places that the drive's cache cannot hold."""

    def __init__(self, drive: Drive, disk: RotatingDisk) -> None:
        self.kept = drive.cache.segments.value + 1
        # What passes under the head while the next command is on its way.
        way = drive.overhead_us.value * 1e-6 + 100e-6
        self.ahead = SMALL_SECTORS + int(way * disk.outer_mb_s.value * 1e6 / SECTOR)
        self.used: list[int] = []

    def draw(self, tracks: Tracks, random: Random, track: int) -> int:
        """Draw as Tracks.draw, avoiding sectors that the drive has recently read or read ahead."""
        for _ in range(1000):
            place = tracks.draw(random, track)
            if not any(other - SMALL_SECTORS < place < other + self.ahead for other in self.used):
                self.used = [*self.used, place][-self.kept :]
                return place
        raise AgelabError(f"track {track} has no room for reads that the drive's cache does not hold")


def back_and_forth(tracks: Tracks, random: Random, first_track: int, second_track: int) -> list[int]:
    """Places on two tracks in turns, none of which the drive's cache holds: it reads on from there, and each is before
    those on its track. They are in the tracks' first halves: the head that reads on does not come from one to the
    other."""
    most = SEEKS // 2 + 1
    ends = []
    for track in (first_track, second_track):
        first, per_track = tracks.track(track)
        slots = random.sample(range(per_track // 2 // SMALL_SECTORS), most)
        ends.append([first + slot * SMALL_SECTORS for slot in sorted(slots, reverse=True)])
    return [ends[n % 2][n // 2] for n in range(SEEKS + 1)]


def distances(cylinders: int) -> list[int]:
    """Seek distances, closer to one another where the curve is steep."""
    longest = cylinders - 1
    return sorted({1 + round((longest - 1) * (n / (DISTANCES - 1)) ** 2) for n in range(DISTANCES)})


def rows(drive: Drive, size: int) -> tuple[int, int]:
    """Return how many of the largest requests make up so many bytes, and how many precede the timed ones."""
    request = drive.max_request_kib.value << 10
    return -(-size // request), -(-WARM // request)


def places(drive: Drive) -> list[int]:
    """Return the positions where the rate is measured, from one edge to the other."""
    length = sum(rows(drive, PLACE)) * (drive.max_request_kib.value << 10) // SECTOR
    return [(drive.sectors.value - length) * n // (PLACES - 1) for n in range(PLACES)]


def disk_steps(drive: Drive, disk: RotatingDisk) -> list[Step]:
    """Plan the guest's steps for a rotating disk."""
    random = Random(drive.name)
    tracks, fresh = Tracks.of(drive, disk), Fresh(drive, disk)
    request = drive.max_request_kib.value << 10
    many, warm = rows(drive, STREAM)
    inner = drive.sectors.value - (many + warm) * request // SECTOR
    # One in each of as many parts of equal width, in random order: the mean over all pairs, with less chance in it.
    parts = [int((n + random.random()) * tracks.count / RANDOM_READS) for n in range(RANDOM_READS)]
    random.shuffle(parts)
    scattered = [tracks.draw(random, track) for track in parts]
    edges = (tracks.cylinders - 1) * disk.heads.value, 0
    strokes = [
        fresh.draw(tracks, random, edges[n % 2] + random.randrange(disk.heads.value)) for n in range(2 * STROKES)
    ]
    groups = []
    for distance in distances(tracks.cylinders):
        first = random.randrange(tracks.cylinders - distance)
        ends = [cylinder * disk.heads.value for cylinder in (first, first + distance)]
        groups.append(back_and_forth(tracks, random, *ends))
    few, warm = rows(drive, PLACE)
    # The random reads leave nothing of either edge in the drive's cache.
    return [
        step("outer", "stream", first=0, request=request, warm=warm, requests=many),
        step("inner", "stream", first=inner, request=request, warm=warm, requests=many),
        step("random", "scattered", sectors=scattered),
        step("stroke", "least", sectors=strokes),
        step("seeks", "seeks", groups=groups),
        step("rates", "streams", firsts=places(drive), request=request, warm=warm, requests=few),
    ]


def flash_steps(drive: Drive) -> list[Step]:
    """Plan the guest's steps for flash.

    One behind the other, requests would wait for the chips each time: a sequential transfer has several on the way.
    """
    random = Random(drive.name)
    request = drive.max_request_kib.value << 10
    row = [number * request // SECTOR for number in range(rows(drive, STREAM)[0])]
    behind = WINDOW // SECTOR
    return [
        step("read", "queued", sectors=[behind + at for at in row], size=request, write=False),
        step("write", "queued", sectors=row, size=request, write=True),
        *_small_reads(random, drive.sectors.value, behind),
    ]


def _small_reads(random: Random, sectors: int, first: int = 0) -> list[Step]:
    """Plan small reads one after the other, and all at once."""
    where = range(first, sectors - SMALL_SECTORS, SMALL_SECTORS)
    return [
        step("random", "scattered", sectors=random.choices(where, k=RANDOM_READS)),
        step("deep", "queued", sectors=random.choices(where, k=DEEP_READS), size=SMALL, write=False),
    ]


def job(drives: Sequence[Drive]) -> list[dict[str, Any]]:
    """Return the guest's job: the steps for each drive, first a drive that measures the guest's own time."""
    fast = 10**13
    steady = (
        f"name=steady kind=flash sectors={STEADY_SECTORS} overhead_ns=0 read_ns={STEADY_NS} write_ns=0 channels=64 "
        f"read_rate={fast} write_rate={fast} interface={fast} depth=128 max_request=524288"
    )
    jobs: list[dict[str, Any]] = [
        {
            "name": "steady",
            "settings": steady,
            "window": 0,
            "steps": _small_reads(Random("steady"), STEADY_SECTORS),
        }
    ]
    for number, drive in enumerate(drives):
        medium, name = drive.medium, f"drive{number}"
        disk = isinstance(medium, RotatingDisk)
        jobs.append(
            {
                "name": name,
                "settings": geometry.module_parameters(drive, name=name, run_seed=1, index=number),
                "window": 0 if disk else WINDOW // SECTOR,
                "steps": disk_steps(drive, medium) if isinstance(medium, RotatingDisk) else flash_steps(drive),
            }
        )
    return jobs
