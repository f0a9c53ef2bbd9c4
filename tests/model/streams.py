"""Drives to test with, and seeded streams of requests for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from agelab.machine.drive import geometry
from agelab.scenario import selection
from agelab.scenario.drive import Flash, RotatingDisk
from tests.model.native import Native
from tests.model.reference import Reference
from tests.model.reference_ftl import ReferenceSsd

_DRIVES = {drive.name: drive for drive in selection.drives()}
DISKS = [name for name, drive in _DRIVES.items() if isinstance(drive.medium, RotatingDisk)]
FLASHES = [name for name, drive in _DRIVES.items() if isinstance(drive.medium, Flash)]


OPTIONAL = {
    *("hit_overhead_ns", "write_overhead_ns", "track_skew_ns", "cylinder_skew_ns", "any_order", "seek"),
    *(
        "write_segments",
        "read_ahead_tracks",
        "bus_after_percent",
        "write_after_percent",
    ),
}
"""Words that only some drives have."""


def settings(name: str, **changed: int | str) -> str:
    """The module's words for a drive of scenarios/drives/, some of them changed."""
    text = geometry.module_parameters(_DRIVES[name], name="drive0", run_seed=1, index=0)
    words = dict(word.split("=", 1) for word in text.split())
    assert words.keys() | OPTIONAL >= changed.keys()
    return " ".join(f"{key}={value}" for key, value in (words | changed).items())


def number(text: str, name: str) -> int:
    """One of those words."""
    return int(dict(word.split("=", 1) for word in text.split())[name])


def zones(text: str) -> list[tuple[int, int]]:
    """First sector and sectors per track of each zone."""
    words = dict(word.split("=", 1) for word in text.split())
    pairs = (zone.split(":") for zone in words["zones"].split(","))
    return [(int(first), int(per_track)) for first, per_track in pairs]


SMALL = settings(
    # 16 tracks, 8 cylinders: pieces, segments and requests meet borders all the time.
    "seagate-st340016a",
    sectors=5003,
    heads=2,
    cylinders=8,
    zones="0:400,2000:300,4100:200",
    cache_bytes=4 * 128 << 10,
    segments=4,
    read_ahead_bytes=64 << 10,
    max_request=64 << 10,
)
HUGE = settings(
    # 20 TB.
    "wd-hus726t6tale6l4",
    sectors=39_063_650_304,
    zones="0:4000,20000000000:3000",
    cylinders=1_150_000,
    heads=10,
)


NINETIES = settings(
    # SCSI: a slow bus, skews, a measured curve, segments smaller than the largest request.
    "maxtor-96147u8",
    sectors=205_000,
    heads=5,
    cylinders=285,
    zones="0:186,74400:163,139600:119",
    interface=5_000_000,
    overhead_ns=600_000,
    hit_overhead_ns=340_000,
    write_overhead_ns=930_000,
    track_skew_ns=1_650_000,
    cylinder_skew_ns=2_300_000,
    head_switch_ns=1_600_000,
    seek="1:1940000,2:1956000,10:2400000,100:5100000,284:9000000",
    cache_bytes=3 * 281 * 512,
    segments=3,
    write_segments=1,
    read_ahead_bytes=281 * 512,
    max_request=192 << 10,
)

SSD = (
    "name=drive0 kind=ssd sectors=40000 depth=32 max_request=1048576 interface=550000000 overhead_ns=5000 "
    "hit_overhead_ns=5000 write_overhead_ns=6000 cache_bytes=0 segments=1 read_ahead_bytes=0 write_back=1 "
    "base=2048 units=4000 channels=2 dies=4 planes=2 page_units=4 cell_bits=3 program_units=24 "
    "channel_rate=400000000 read_ns=60000 program_ns=1900000 erase_ns=4000000 suspend_ns=100000 discard_ns=20000 "
    "lines=52 line_units=96 reserve=3 buffer_units=120 begin=0 seed=7"
)
"""Small: all its lines are erased again and again."""


def ssd(**changed: int) -> str:
    """That drive with other words."""
    words = dict(word.split("=", 1) for word in SSD.split())
    return " ".join(f"{key}={value}" for key, value in (words | changed).items())


SSDS = {
    "fresh": SSD,
    "used": ssd(begin=2),
    "trimmed": ssd(begin=1),
    "fast": ssd(fast_lines=4, fast_program_ns=250_000, lines=56),
    "fast-used": ssd(fast_lines=5, fast_program_ns=250_000, lines=57, begin=2),
    "map": ssd(map_pages=2, begin=2),
    "fast-map": ssd(map_pages=1, fast_lines=4, fast_program_ns=250_000, lines=56),
    "protected": ssd(write_back=0, begin=2, link_ns=2500),
    "slow-channel": ssd(channel_rate=20_000_000, suspend_ns=10**9),
    "tight": ssd(lines=48, reserve=2, begin=2),
    "one-bit": ssd(cell_bits=1, program_units=8, line_units=64, lines=70, base=8, units=3960),
}


def old_scsi(**changed: int) -> str:
    """That drive with other policies."""
    words = dict(word.split("=", 1) for word in NINETIES.split())
    assert words.keys() | OPTIONAL >= changed.keys()
    return " ".join(f"{key}={value}" for key, value in (words | changed).items())


@dataclass(frozen=True)
class Request:
    """One command, and how long after the end of the last it comes."""

    kind: str
    first: int = 0
    sectors: int = 0
    gap: int = 0


def requests(seed: int, text: str, count: int) -> Iterator[Request]:
    """A stream in phases: each of its own mixture, place, size and pace."""
    random = Random(seed)
    sectors, most = number(text, "sectors"), number(text, "max_request") // 512
    revolution, borders = number(text, "revolution_ns"), [first for first, _ in zones(text)]
    cursors = [random.randrange(sectors - most) for _ in range(3)]
    left = 0
    for _ in range(count):
        if not left:
            left = random.randint(5, 120)
            reads, through = random.choice((0, 0.1, 0.5, 0.9, 1)), random.choice((0, 0, 0.1, 0.8))
            flushes, jumps = random.choice((0, 0, 0.02, 0.3)), random.choice((0, 0, 0.05, 0.5, 1))
            streams, size = random.randint(1, 3), random.choice((1, 8, 8, 64, most, most))
            near = random.choice((None, None, 0, sectors, random.choice(borders)))
            again = random.choice((0, 0, 0.2))
            pause, idle = random.choice((0, 0, 1000, 10**6, revolution)), random.choice((0, 0.05, 0.3))
        left -= 1
        gap = random.randint(0, pause) if random.random() > idle else random.randint(0, 6 * revolution)
        if random.random() < flushes:
            yield Request("flush", gap=gap)
            continue
        cursor = random.randrange(streams)
        if random.random() < jumps:
            around = random.randrange(sectors) if near is None else near + random.randint(-2 * most, 2 * most)
            cursors[cursor] = around if random.random() < 0.7 else cursors[random.randrange(3)]
        length = random.choice((size, size, random.randint(1, size)))
        first = min(max(0, cursors[cursor]), sectors - length)
        cursors[cursor] = first + length - (random.randint(1, 2 * length) if random.random() < again else 0)
        kind = "read" if random.random() < reads else "through" if random.random() < through else "write"
        yield Request(kind, first, length, gap)


def ssd_requests(seed: int, text: str, count: int) -> Iterator[Request]:
    """The same for a solid-state drive, discards among them."""
    random = Random(seed)
    base, end = number(text, "base"), number(text, "base") + number(text, "units") * 8
    left = at = 0
    for _ in range(count):
        if not left:
            left = random.randint(5, 150)
            kinds = random.choices(
                ("read", "write", "through", "flush", "discard"),
                (
                    random.choice((0, 1, 5)),
                    5,
                    random.choice((0, 0, 1)),
                    random.choice((0, 0.3)),
                    random.choice((0, 1)),
                ),
                k=8,
            )
            size, whole = random.choice((8, 8, 64, 256, 1024)), random.random() < 0.7
            jumps, spread = random.choice((0, 0.1, 1)), random.choice((0.05, 1))
            pause = random.choice((0, 0, 100_000, 40_000_000))
        left -= 1
        if random.random() < jumps:
            at = base + int(random.random() * spread * (end - base))
        sectors = min(random.choice((size, size, random.randint(1, size))), end - base)
        at = min(max(at, base), end - sectors)
        if whole:
            at, sectors = base + (at - base) // 8 * 8, max(8, sectors // 8 * 8)
        yield Request(random.choice(kinds), at, sectors, random.randint(0, pause))
        at += sectors


def run(drive: Native | Reference | ReferenceSsd, request: Request, now: int) -> int:
    """When it completes."""
    if request.kind == "flush":
        return drive.flush(now)
    if request.kind == "read":
        return drive.read(request.first, request.sectors, now)
    if request.kind == "discard":
        assert not isinstance(drive, Reference)
        return drive.discard(request.first, request.sectors, now)
    return drive.write(request.first, request.sectors, now, through=request.kind == "through")
