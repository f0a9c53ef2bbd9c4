"""What a power cut takes back, beside a drive that has its write cache in RAM of its own, and loses that."""

from collections.abc import Iterator

import pytest

from agelab.scenario.drive import SECTOR
from tests.model.native import Library
from tests.model.streams import NINETIES, SMALL, SSDS, Request, number, requests, run, ssd_requests

TEXTS = {"small": SMALL, "nineties": NINETIES, "ssd": SSDS["used"], "ssd-fast": SSDS["fast"]}


def content(request: Request, turn: int) -> Iterator[tuple[int, bytes]]:
    """Each sector of a write, and what no other write puts there."""
    for sector in range(request.first, request.first + request.sectors):
        yield sector, f"{turn} {sector}".encode().ljust(SECTOR, b"*")


@pytest.mark.parametrize("count", [1, 2, 3, 10, 40, 100, 300, 700])
@pytest.mark.parametrize("name", TEXTS)
def test_a_cut_leaves_what_a_cache_of_its_own_would_have_left(
    library: Library, name: str, count: int
) -> None:
    text, zeros = TEXTS[name], bytes(SECTOR)
    for seed in range(5):
        drive, now = library.drive(text), 0
        undo = library.undo(drive.cache_size())
        memory: dict[int, bytes] = {}
        platters: dict[int, bytes] = {}
        cache: dict[int, bytes] = {}
        stream = ssd_requests if name.startswith("ssd") else requests
        for turn, request in enumerate(stream(seed, text, count)):
            through = request.kind == "through"
            now = run(drive, request, now + request.gap)
            for first, end in drive.take_written():
                undo.forget(first, end)
                for sector in range(first, end):
                    if sector in cache:
                        platters[sector] = cache.pop(sector)
            if request.kind not in ("write", "through"):
                continue
            back = drive.takes(request.first, request.sectors, through=through)
            if back:
                whole = range(request.first, request.first + request.sectors)
                was = b"".join(memory.get(sector, zeros) for sector in whole)
                assert undo.keep(request.first, was)
            else:
                undo.spare(request.first, request.sectors)
            for sector, data in content(request, turn):
                memory[sector] = data
                if back:
                    cache[sector] = data
                else:
                    platters[sector] = data
                    cache.pop(sector, None)
        assert memory == platters | cache, "what is read is the newest"
        taken = undo.all()
        assert taken.keys() == cache.keys()
        left = {sector: data for sector, data in (memory | taken).items() if data != zeros}
        assert left == platters
        assert undo.all() == {}


def test_what_is_in_the_buffer_again_is_taken_back(library: Library) -> None:
    """The programmed copy is forgotten: a cut leaves what was there before both."""
    text = SSDS["fresh"]
    drive, at_once, unit = library.drive(text), number(text, "program_units"), number(text, "base")
    others = range(unit + 8, unit + 8 * (at_once - 1), 8)
    for written in (unit, unit, *others, unit):
        drive.write(written, 8, 0)
    drive.advance(10**9)
    assert drive.take_written() == [(first, first + 8) for first in others]
    drive.flush(2 * 10**9)
    assert drive.take_written() == [(unit, unit + 8)]


def test_a_full_cache_has_room_for_no_more(library: Library) -> None:
    undo = library.undo(16)
    assert undo.keep(0, bytes(8 * SECTOR)) and undo.keep(800, bytes(SECTOR))
    assert not undo.keep(1600, bytes(SECTOR))
    undo.forget(800, 801)
    assert undo.keep(1600, b"x" * SECTOR)
    assert undo.all() == {**dict.fromkeys(range(8), bytes(SECTOR)), 1600: b"x" * SECTOR}


def test_a_drive_without_a_write_cache_has_nothing_to_take_back(library: Library) -> None:
    text = SMALL.replace("write_back=1", "write_back=0")
    undo = library.undo(library.drive(text).cache_size())
    undo.spare(0, 8)
    undo.forget(0, 8)
    assert undo.all() == {} and number(text, "write_back") == 0
