"""Laws that hold for every stream of requests to a drive; the streams are seeded."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.model.native import Library, Native
from tests.model.reference import EXTENTS, PIECE
from tests.model.streams import DISKS, HUGE, NINETIES, SMALL, Request, number, requests, run, settings

TEXTS = {name: settings(name) for name in DISKS} | {"small": SMALL, "huge": HUGE, "nineties": NINETIES}
SEEDS = range(10, 14)


def served(drive: Native, text: str, seed: int, count: int = 700) -> Iterator[tuple[Request, int, int]]:
    """Each request of a stream, when it was sent and when it completed."""
    now = 0
    for request in requests(seed, text, count):
        now += request.gap
        done = run(drive, request, now)
        yield request, now, done
        now = done


def least_overhead(text: str) -> int:
    """The shortest time of the electronics for any command."""
    words = dict(word.split("=", 1) for word in text.split())
    names = ("overhead_ns", "hit_overhead_ns", "write_overhead_ns")
    return min(int(words[name]) for name in names if name in words)


@pytest.mark.parametrize("name", TEXTS)
def test_time_and_the_arm(library: Library, name: str) -> None:
    """No answer before the electronics' time; the arm does one thing after the other, and knows of it before."""
    text = TEXTS[name]
    revolution, least = number(text, "revolution_ns"), least_overhead(text)
    for seed in SEEDS:
        drive, last, arm = library.drive(text), 0, 0
        streamed = earliest = 0
        for request, now, done in served(drive, text, seed):
            assert done >= now + least
            assert drive.get("arm_free") >= arm
            passes = drive.take_passes()
            for movement in passes:
                assert movement.start >= arm, "the arm does not do two things at once"
                assert movement.start >= streamed, "the head was reading on for the host until then"
                assert movement.start >= earliest, "what was to begin before the last request has begun"
                assert movement.done > movement.start
                most = drive.seek(drive.get("cylinders")) + number(text, "write_settle_ns") + revolution
                transfer = drive.turn(movement.end) - drive.turn(movement.first)
                if movement.write:  # what is larger than the cache comes over the bus meanwhile
                    most += (movement.end - movement.first) * 512 * 10**9 // number(text, "interface")
                assert movement.done - movement.start - transfer < most + number(text, "head_switch_ns")
                assert not movement.write or movement.end - movement.first <= max(
                    PIECE, number(text, "max_request") // 512
                )
                arm = movement.done
            own = any(not p.write and p.first == request.first and p.start >= now for p in passes)
            moved = request.sectors * 512 * 10**9 // number(text, "interface")
            if request.kind == "read" and not own and done > now + number(text, "overhead_ns") + moved:
                streamed = done - moved
            earliest, last = now, done
        assert drive.get("busy_seek_ns") + drive.get("busy_rotation_ns") <= max(arm, last)


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written(library: Library, name: str) -> None:
    """A flush leaves nothing behind, and nothing reaches the platters that was not written before."""
    text = TEXTS[name]
    for seed in SEEDS:
        drive = library.drive(text)
        waiting: set[int] = set()
        for request, now, done in served(drive, text, seed):
            reached = _units(drive.take_written())
            units = -(-(request.first + request.sectors) // 8) - request.first // 8
            written = request.kind == "write" and units * 8 <= drive.cache_size()
            new = _units([(request.first, request.first + request.sectors)] if written else [])
            assert reached <= waiting, "only what was written before this request"
            # What the arm was at when it was written again is still waiting.
            waiting = (waiting - reached) | new | {unit for unit in reached if _holds(drive, unit)}
            assert drive.get("dirty_sectors") <= drive.cache_size()
            assert drive.extents() < EXTENTS
            if request.kind == "flush":
                assert not waiting
                assert drive.get("dirty_sectors") == drive.extents() == 0
                assert drive.next() == 0
            elif drive.get("dirty_sectors"):
                assert drive.next() > now
            assert done >= now
        drive.settle()
        assert _units(drive.take_written()) == waiting
        assert drive.get("dirty_sectors") == drive.extents() == drive.next() == 0


def _units(extents: list[tuple[int, int]]) -> set[int]:
    """The cache's units of 8 sectors that these touch."""
    return {unit for first, end in extents for unit in range(first // 8, -(-end // 8))}


def _holds(drive: Native, unit: int) -> bool:
    """Return True if the write cache has the unit."""
    return drive.cached(unit * 8)


@pytest.mark.parametrize("name", ["samsung-hd160hj", "seagate-st380021a", "small", "nineties"])
def test_left_alone_it_writes_everything_back(library: Library, name: str) -> None:
    text = TEXTS[name]
    for seed in SEEDS:
        drive, moments = library.drive(text), []
        assert len(list(served(drive, text, seed, 200))) == 200
        while (then := drive.next()) != 0:
            moments.append(then)
            drive.advance(then)
        assert all(before <= after for before, after in pairwise(moments))
        assert drive.get("dirty_sectors") == 0


@pytest.mark.parametrize("name", ["samsung-hd160hj", "small", "nineties"])
def test_looking_changes_nothing(library: Library, name: str) -> None:
    """Advancing the drive between two requests, or asking how far it is, changes nothing."""
    text = TEXTS[name]
    for seed in SEEDS:
        watched, left, now = library.drive(text), library.drive(text), 0
        for request in requests(seed, text, 500):
            for part in range(4):
                watched.advance(now + request.gap * part // 4)
                watched.reach(request.first, now + request.gap * part // 4)
                watched.next()
            now += request.gap
            done = run(watched, request, now)
            assert done == run(left, request, now)
            now = done
        assert watched.take_passes() == left.take_passes()
        assert watched.take_written() == left.take_written()
        assert watched.statistics() == left.statistics()
