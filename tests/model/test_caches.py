"""The drive's caches: what a read finds there, when the head goes on, when writes reach the platters."""

import pytest

from tests.model.native import Library, Native
from tests.model.reference import EXTENTS
from tests.model.streams import DISKS, SMALL, number, settings, zones

MS = 1_000_000
TEXT = settings("seagate-st380021a")
OVERHEAD, REVOLUTION = number(TEXT, "overhead_ns"), number(TEXT, "revolution_ns")
AHEAD = number(TEXT, "read_ahead_bytes") // 512


def moved(sectors: int) -> int:
    """Nanoseconds at the interface."""
    return sectors * 512 * 10**9 // number(TEXT, "interface")


def busy(drive: Native) -> int:
    """Nanoseconds that the statistics account for."""
    return sum(drive.get(f"busy_{part}_ns") for part in ("overhead", "seek", "rotation", "transfer"))


def test_again_from_the_segment(library: Library) -> None:
    drive = library.drive(TEXT)
    now = drive.read(1000, 8, 0)
    assert drive.read(1000, 8, now) == now + OVERHEAD + moved(8)
    elsewhere = drive.read(50_000_000, 8, now + MS)
    assert drive.read(1000, 8, elsewhere) == elsewhere + OVERHEAD + moved(8)
    assert drive.get("cache_hits") == 2


def test_oldest_segment_goes(library: Library) -> None:
    drive, now = library.drive(TEXT), 0
    segments = number(TEXT, "segments")
    for at in range(segments + 1):
        now = drive.read(at * 10_000_000, 8, now)
    for at in range(segments, 0, -1):
        now = drive.read(at * 10_000_000, 8, now)
    assert drive.get("cache_hits") == segments
    drive.read(0, 8, now)
    assert drive.get("cache_hits") == segments


def test_head_reads_on_after_a_read(library: Library) -> None:
    drive = library.drive(TEXT)
    now = drive.read(1000, 8, 0) + 10 * MS
    assert drive.read(1008, AHEAD, now) == now + OVERHEAD + moved(AHEAD)
    assert len(drive.take_passes()) == 1


def test_full_segment_waits_for_its_sector_to_come_round(library: Library) -> None:
    drive = library.drive(TEXT)
    now = drive.read(1000, 256, 0) + 57 * MS
    before, rotation = busy(drive), drive.get("busy_rotation_ns")
    done = drive.read(1256, AHEAD + 64, now)
    full = 1256 + AHEAD
    wait = drive.rotation(full, now + OVERHEAD)
    assert 0 < wait < REVOLUTION
    last = moved(AHEAD + 64) // (AHEAD + 64)
    assert done == now + OVERHEAD + wait + drive.turn(full + 64) - drive.turn(full) + last
    assert drive.get("busy_rotation_ns") - rotation == wait
    assert busy(drive) - before == done - now, "the statistics account for each nanosecond once"


def test_a_write_is_in_the_cache_until_it_is_on_the_platters(library: Library) -> None:
    drive = library.drive(TEXT)
    now = drive.write(50_000_000, 256, 0) + REVOLUTION
    drive.advance(now + 100)
    assert drive.take_passes()
    assert drive.get("dirty_sectors") == 256, "the arm is at it"
    drive.read(50_000_000, 8, now + 200)
    assert drive.get("cache_hits") == 1


def test_writing_back_begins_after_a_revolution_of_rest(library: Library) -> None:
    drive = library.drive(TEXT)
    done = drive.write(50_000_000, 8, 0)
    assert drive.next() == done + REVOLUTION
    drive.advance(done + REVOLUTION - 1)
    assert not drive.take_passes()
    drive.advance(done + REVOLUTION)
    (movement,) = drive.take_passes()
    assert movement.start == done + REVOLUTION
    assert drive.next() == movement.done
    drive.advance(movement.done - 1)
    assert not drive.take_written()
    drive.advance(movement.done)
    assert drive.take_written() == [(50_000_000, 50_000_008)]
    assert drive.next() == 0


def test_arm_that_begins_at_a_request_s_moment_is_not_at_that_request(library: Library) -> None:
    """A request that comes at the very moment at which the next piece begins: one of them has the arm."""
    drive, now = library.drive(TEXT), 0
    for at in range(200):
        now = drive.write(10_000_000 + 10_000 * at, 8, now)
    now = drive.read(50_000_000, 256, now)
    assert drive.extents() > 128, "still filling: the arm goes on writing back as soon as it may"
    drive.take_passes()
    done = drive.read(50_000_256, 256, now)
    drive.advance(done + 1)
    passes = drive.take_passes()
    if not any(movement.first == 50_000_256 for movement in passes):
        assert all(movement.start >= done for movement in passes), "the head was reading on until then"


def test_flush_goes_on_where_the_arm_is(library: Library) -> None:
    """One piece after the other, the second without a gap, whenever the flush comes."""
    for late in range(0, 30 * MS, MS // 10):
        drive = library.drive(TEXT)
        now = drive.write(50_000_000, 256, 0)
        now = drive.write(50_000_256, 256, now)
        begins = drive.next()
        drive.flush(begins + late)
        first, second = drive.take_passes()
        assert second.start == first.done, f"flush {late} ns after the first began"


@pytest.mark.parametrize("name", DISKS)
def test_small_writes_of_a_track_take_one_revolution(library: Library, name: str) -> None:
    """The arm stays where it is, so it has nothing to settle from; what it came behind of takes one more revolution."""
    drive, now = library.drive(settings(name)), 0
    for at in range(40):
        now = drive.write(1000 + 64 * at, 8, now)
    now = drive.flush(now)
    passes = drive.take_passes()
    assert len(passes) == 40
    ends = [movement.end for movement in passes]
    spiral = drive.turn(max(ends)) - drive.turn(min(ends))
    late = number(settings(name), "revolution_ns") + 2 * drive.seek(1)
    assert passes[-1].done - passes[0].done <= spiral + late


def test_scattered_writes_fill_the_list_and_no_more(library: Library) -> None:
    drive, now, most = library.drive(TEXT), 0, 0
    for at in range(600):
        now = drive.write(at * 7_654_321 % 100_000_000 // 8 * 8, 8, now)
        most = max(most, drive.extents())
    assert most == EXTENTS - 1


@pytest.mark.parametrize("name", DISKS)
def test_sequential_writing_keeps_the_arm_going(library: Library, name: str) -> None:
    text = settings(name)
    drive = library.drive(text)
    first, per_track = zones(text)[3]
    most, now, begun = number(text, "max_request") // 512, 0, 0
    sectors = 100_000_000 // 512 // most * most
    for at in range(0, 2 * sectors, most):
        if at == sectors:
            begun = now
        now = drive.write(first + at, most, now)
    took = sectors * number(text, "revolution_ns") / per_track
    assert now - begun == pytest.approx(took, rel=0.005)


def test_a_sector_is_passed_when_the_next_begins(library: Library) -> None:
    drive = library.drive(SMALL)
    for sector in range(1, number(SMALL, "sectors")):
        assert drive.sector(drive.turn(sector)) == sector
        assert drive.sector(drive.turn(sector) - 1) == sector - 1


def test_drive_knows_what_it_has_at_hand(library: Library) -> None:
    """The shortest access of a queue: the stream that goes on, and what is in the cache, cost no movement."""
    drive = library.drive(TEXT)
    drive.read(1000, 256, 0)
    now = drive.get("arm_free")
    assert drive.reach(1256, now + 1000) == 0, "the head is reading it"
    ahead = drive.reach(1300, now + 1000)
    assert ahead == drive.turn(1300) - drive.turn(1256) - 1000
    assert drive.reach(1000, now + 1000) == 0, "in the segment"
    now = drive.read(50_000_000, 8, now)
    assert drive.reach(1000, now) == 0, "in another segment"
    now = drive.write(90_000_000, 8, now)
    assert drive.reach(90_000_000, now) == 0, "in the write cache"
    assert drive.reach(70_000_000, now) > 0


@pytest.mark.parametrize("name", DISKS)
def test_a_write_far_from_a_stream_that_never_ends_is_written_back_soon(library: Library, name: str) -> None:
    """Or a power cut would take what was written long before it."""
    text = settings(name)
    drive, now, at = library.drive(text), 0, number(text, "sectors") // 4
    far, waits = number(text, "sectors") - 8, list[int]()
    for _ in range(20):
        asked = now = drive.write(far, 8, now)
        while drive.cached(far):
            at += 512
            now = drive.write(at, 512, now)
            assert now - asked < 4 * 10**9
        waits.append(now - asked)
    assert max(waits) < 10**9
