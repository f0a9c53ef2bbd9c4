"""The kernel module's drive and its second implementation agree, to the nanosecond."""

import pytest

from tests.model.native import Library
from tests.model.reference import Reference
from tests.model.streams import (
    DISKS,
    HUGE,
    NINETIES,
    SMALL,
    number,
    old_scsi,
    requests,
    run,
    settings,
)

TEXTS = {name: settings(name) for name in DISKS} | {
    "small": SMALL,
    "huge": HUGE,
    "write-through": settings("samsung-hd160hj", write_back=0),
    "no-overhead": SMALL.replace("overhead_ns=300000", "overhead_ns=0"),
    "no-read-ahead": SMALL.replace("read_ahead_bytes=65536", "read_ahead_bytes=0"),
    "slow-interface": settings("seagate-st380021a", interface=16_600_000),
    "nineties": NINETIES,
    "any-order": old_scsi(any_order=1, write_back=0, read_ahead_tracks=1, write_after_percent=0),
    "next-track": old_scsi(read_ahead_tracks=2, write_segments=2),
    "late-bus": old_scsi(write_back=0, bus_after_percent=75, write_after_percent=100, write_settle_ns=650_000),
    "one-segment": SMALL.replace("segments=4", "segments=1"),
    "skewed": SMALL + " track_skew_ns=1200000 cylinder_skew_ns=2000000 any_order=1",
}


@pytest.mark.parametrize("name", TEXTS)
def test_same_times_and_statistics(library: Library, name: str) -> None:
    text = TEXTS[name]
    assert number(text, "overhead_ns") == 0 or name != "no-overhead"
    for seed in range(3):
        native, reference = library.drive(text), Reference(text)
        now = 10**9 * seed
        for at, request in enumerate(requests(seed, text, 900)):
            now += request.gap
            done = run(native, request, now)
            assert done == run(reference, request, now), f"seed {seed}, request {at}: {request}"
            assert native.get("head") == reference.head, f"seed {seed}, request {at}: {request}"
            now = done
        assert native.take_passes() == reference.passes
        assert native.take_written() == reference.written
        assert native.statistics() == reference.statistics()
        assert native.get("dirty_sectors") == reference.waiting
        native.settle()
        reference.written.clear()
        reference.settle()
        assert native.take_written() == reference.written
