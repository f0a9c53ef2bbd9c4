"""What a power cut leaves by the record, beside a drive that has its write cache in RAM of its own, and loses that."""

import pytest

from agelab.machine.drive.record import Entry, RequestKind, written_back
from tests.model.native import Library
from tests.model.streams import NINETIES, SMALL, SSDS, number, requests, run, ssd_requests

TEXTS = {"small": SMALL, "nineties": NINETIES, "ssd": SSDS["used"], "ssd-fast": SSDS["fast"]}
KINDS = {"write": RequestKind.WRITE, "through": RequestKind.FUA}


def entry(kind: RequestKind, first: int, end: int, done: int) -> Entry:
    return Entry(kind, first, end - first, 0, done, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 40, 100, 300, 700])
@pytest.mark.parametrize("name", TEXTS)
def test_a_cut_leaves_what_a_cache_of_its_own_would_have_left(library: Library, name: str, count: int) -> None:
    text = TEXTS[name]
    for seed in range(5):
        drive, now = library.drive(text), 0
        record: list[Entry] = []
        platters: dict[int, int] = {}
        cache: dict[int, int] = {}
        stream = ssd_requests if name.startswith("ssd") else requests
        for request in stream(seed, text, count):
            now = run(drive, request, now + request.gap)
            for first, end, when in drive.take_kept():
                record.append(entry(RequestKind.KEPT, first, end, when))
                for sector in range(first, end):
                    if sector in cache:
                        platters[sector] = cache.pop(sector)
            if request.kind not in KINDS:
                continue
            first, end = request.first, request.first + request.sectors
            number, sectors = len(record), range(first, end)
            record.append(entry(KINDS[request.kind], first, end, now))
            if drive.takes(first, request.sectors, through=request.kind == "through"):
                cache |= dict.fromkeys(sectors, number)
            else:
                record.append(entry(RequestKind.KEPT, first, end, now))
                platters |= dict.fromkeys(sectors, number)
                for sector in sectors:
                    cache.pop(sector, None)
        left = {
            sector: piece.number
            for pieces in written_back(record)
            for piece in pieces
            for sector in range(piece.first, piece.end)
        }
        assert left == platters


@pytest.mark.parametrize("name", ["small", "nineties"])
def test_what_is_written_back_is_there_once_the_arm_has_passed(library: Library, name: str) -> None:
    text = TEXTS[name]
    drive, now, seen = library.drive(text), 0, 0
    passes: set[tuple[int, int, int]] = set()
    for request in requests(1, text, 300):
        now = run(drive, request, now + request.gap)
        passes |= {(one.first, one.end, one.done) for one in drive.take_passes() if one.write}
        kept = drive.take_kept()
        assert passes.issuperset(kept)
        seen += len(kept)
    assert seen > 10


def test_what_is_in_the_buffer_again_is_lost(library: Library) -> None:
    """The programmed copy is forgotten: a cut leaves what was there before both."""
    text = SSDS["fresh"]
    drive, at_once, unit = library.drive(text), number(text, "program_units"), number(text, "base")
    others = range(unit + 8, unit + 8 * (at_once - 1), 8)
    for written in (unit, unit, *others, unit):
        drive.write(written, 8, 0)
    drive.advance(10**9)
    kept = drive.take_kept()
    assert [(first, end) for first, end, _ in kept] == [(first, first + 8) for first in others]
    assert all(when < 10**8 for _, _, when in kept), "as it is programmed, not when it is looked at"
    drive.flush(2 * 10**9)
    assert drive.take_written() == [(unit, unit + 8)]
