"""The modelled disk has the figures of its file."""

from random import Random
from statistics import fmean

import pytest

from agelab.machine.drive import geometry
from agelab.scenario import selection
from agelab.scenario.drive import RotatingDisk
from tests.model.native import Library, Native
from tests.model.reference import BATCH, PIECE
from tests.model.reference_geometry import Geometry
from tests.model.streams import DISKS, HUGE, SMALL, number, settings, zones

MEDIA = {drive.name: drive.medium for drive in selection.drives()}


def medium(name: str) -> RotatingDisk:
    """The figures of a disk's file."""
    found = MEDIA[name]
    assert isinstance(found, RotatingDisk)
    return found


@pytest.mark.parametrize("name", DISKS)
def test_seek_times(library: Library, name: str) -> None:
    drive, disk = library.drive(settings(name)), medium(name)
    cylinders, curve = drive.get("cylinders"), geometry.seek_curve(disk)
    least, most = disk.track_to_track_ms.value * 1e6, disk.full_stroke_ms.value * 1e6
    assert drive.seek(0) == 0
    assert drive.seek(1) == round(least)
    assert drive.seek(cylinders - 1) == pytest.approx(most, abs=1)
    random = Random(1)
    distances = [random.randrange(1, cylinders) for _ in range(2000)] + [2, 3, cylinders - 2]
    for distance in distances:
        assert drive.seek(distance) == pytest.approx(curve.time(distance, cylinders), abs=1000)
    pairs = ((random.randrange(cylinders), random.randrange(cylinders)) for _ in range(40_000))
    mean = fmean(drive.seek(abs(one - other)) for one, other in pairs)
    assert mean == pytest.approx(disk.average_ms.value * 1e6, rel=0.01)


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("edge", ["outer", "inner"])
@pytest.mark.parametrize("name", DISKS)
def test_sequential_rates(library: Library, name: str, edge: str, kind: str) -> None:
    text = settings(name)
    drive, most = library.drive(text), number(text, "max_request") // 512
    skipped, measured = 40_000_000 // 512 // most * most, 60_000_000 // 512 // most * most
    first = 0 if edge == "outer" else number(text, "sectors") - skipped - measured
    now = begun = 0
    for at in range(first, first + skipped + measured, most):
        if at == first + skipped:
            begun = now
        now = drive.read(at, most, now) if kind == "read" else drive.write(at, most, now)
    figure = getattr(medium(name), f"{edge}_mb_s").value * 1e6
    assert measured * 512e9 / (now - begun) == pytest.approx(figure, rel=0.005)


@pytest.mark.parametrize("name", DISKS)
def test_random_read(library: Library, name: str) -> None:
    """Overhead, seek, half a revolution and the transfer."""
    text, disk, random = settings(name), medium(name), Random(2)
    drive, curve, sectors = library.drive(text), geometry.seek_curve(disk), number(text, "sectors")
    heads, cylinders, now, took, seeks = drive.get("heads"), drive.get("cylinders"), 0, [], []
    for _ in range(12_000):
        first, other = (random.randrange(sectors - 8) for _ in range(2))
        done = drive.read(first, 8, now)
        took.append(done - now)
        now = done
        distance = abs(drive.track(first) // heads - drive.track(other) // heads)
        seeks.append(curve.time(distance, cylinders))
    revolution = number(text, "revolution_ns")
    transfer = 8 * revolution / fmean(per_track for _, per_track in zones(text))
    expected = number(text, "overhead_ns") + fmean(seeks) + revolution / 2 + transfer
    assert fmean(took) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", DISKS)
def test_write_through_pays_a_revolution_each(library: Library, name: str) -> None:
    text = settings(name, write_back=0)
    drive = library.drive(text)
    now = drive.write(1000, 8, 0)
    for first in range(1008, 3000, 8):
        done = drive.write(first, 8, now)
        assert done - now == drive.turn(first + 8) - drive.turn(first) + number(text, "revolution_ns")
        now = done


def test_shortest_access_first(library: Library) -> None:
    """31 random reads at once are faster than one at a time: the drive picks their order."""
    text = settings("samsung-hd160hj")
    sectors = number(text, "sectors")

    def mean(depth: int) -> float:
        drive, random, now, queue = library.drive(text), Random(3), 0, list[int]()
        for _ in range(3000):
            while len(queue) < depth:
                queue.append(random.randrange(sectors - 8))
            best = min(queue, key=lambda first: drive.reach(first, now))
            queue.remove(best)
            now = drive.read(best, 8, now)
        return now / 3000

    assert mean(31) < 0.65 * mean(1)


def test_reach_is_what_a_read_takes(library: Library) -> None:
    text, random = settings("samsung-hd160hj", overhead_ns=0), Random(4)
    for _ in range(200):
        drive = library.drive(text)
        now = drive.read(random.randrange(number(text, "sectors") - 8), 8, 1000)
        first = random.randrange(number(text, "sectors") - 8)
        reach, transfer = drive.reach(first, now), drive.turn(first + 8) - drive.turn(first)
        one = 512 * 10**9 // number(text, "interface")
        assert drive.read(first, 8, now) == now + reach + transfer + one


def test_a_pair_of_streams_finds_what_was_read_ahead(library: Library) -> None:
    text, now = settings("seagate-st380021a"), 0
    drive = library.drive(text)
    for at in range(20):
        for stream in (0, 80_000_000):
            now = drive.read(stream + 256 * at, 256, now) + 20_000_000
    assert len(drive.take_passes()) == 40 - drive.get("cache_hits") <= 20


def test_reads_wait_for_a_batch_at_most(library: Library) -> None:
    """A full write cache holds a read up for the piece that the arm is at and a batch, and not for ever."""
    text, random, now = settings("seagate-st380021a"), Random(5), 0
    drive = library.drive(text)
    for _ in range(400):
        now = drive.write(random.randrange(100_000_000), 8, now)
    for _ in range(20):
        drive.take_passes()
        begun = now
        now = drive.read(random.randrange(100_000_000), 8, now)
        begins = [movement for movement in drive.take_passes() if movement.done > begun]
        assert [movement.write for movement in begins].count(True) <= BATCH + 1
        assert not begins[-1].write
        assert all(movement.end - movement.first <= PIECE for movement in begins)


@pytest.mark.parametrize("text", [SMALL, HUGE, settings("maxtor-96147u8")], ids=["small", "huge", "maxtor"])
def test_geometry_to_the_last_sector(library: Library, text: str) -> None:
    drive, python, random = library.drive(text), Geometry(dict(w.split("=") for w in text.split())), Random(6)
    sectors = number(text, "sectors")
    near = [first + off for first, _ in zones(text) for off in range(-3, 4)]
    some = [random.randrange(sectors) for _ in range(2000)] + near + list(range(sectors - 50, sectors + 1))
    for sector in some:
        if 0 <= sector <= sectors:
            assert drive.turn(sector) == python.turn(sector)
            assert drive.sector(drive.turn(sector)) == sector
            assert drive.sector(drive.turn(sector) + 1) == python.at(python.turn(sector) + 1)
    last = drive.read(sectors - 1, 1, 0)
    _ends_there(drive, drive.write(sectors - 1, 1, drive.read(sectors - 8, 8, last)), sectors)


def _ends_there(drive: Native, now: int, sectors: int) -> None:
    drive.flush(now)
    assert drive.get("head") == sectors
    assert drive.take_written()[-1][1] == sectors
