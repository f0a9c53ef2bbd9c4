"""Flash: latency and channels bound small requests, bandwidth large ones, and neither waits without cause."""

from heapq import heappop, heappush

import pytest

from tests.model.native import Library, Native
from tests.model.streams import FLASHES, number, settings


def rate(drive: Native, kind: str, sectors: int, depth: int, count: int) -> float:
    """Bytes a second with so many requests always in the drive."""
    ends: list[int] = []
    now = at = 0
    for _ in range(count):
        if len(ends) == depth:
            now = heappop(ends)
        done = drive.read(at, sectors, now) if kind == "read" else drive.write(at, sectors, now)
        heappush(ends, done)
        at += sectors
    return count * sectors * 512 / max(ends) * 1e9


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("name", FLASHES)
def test_one_at_a_time_pays_the_latency(library: Library, name: str, kind: str) -> None:
    text = settings(name)
    each = number(text, "overhead_ns") + number(text, f"{kind}_ns") + 4096 * 1e9 / number(text, f"{kind}_rate")
    assert rate(library.drive(text), kind, 8, 1, 1000) == pytest.approx(4096 / each * 1e9, rel=0.001)


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("name", FLASHES)
def test_channels_or_bandwidth_bound_small_requests(library: Library, name: str, kind: str) -> None:
    text = settings(name, depth=64)
    by_channels = number(text, "channels") * 4096 * 1e9 / number(text, f"{kind}_ns")
    expected = min(by_channels, number(text, f"{kind}_rate"))
    assert rate(library.drive(text), kind, 8, 64, 20_000) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("name", FLASHES)
def test_bandwidth_bounds_large_requests(library: Library, name: str, kind: str) -> None:
    text = settings(name)
    assert rate(library.drive(text), kind, 1024, 8, 4000) == pytest.approx(number(text, f"{kind}_rate"), rel=0.01)


@pytest.mark.parametrize("name", FLASHES)
def test_a_quick_write_does_not_wait_for_a_slow_read(library: Library, name: str) -> None:
    text = settings(name)
    alone = library.drive(text).write(5000, 8, 1000)
    drive = library.drive(text)
    read = drive.read(0, 8, 0)
    assert drive.write(5000, 8, 1000) <= alone + 10_000 < read


@pytest.mark.parametrize("name", FLASHES)
def test_flush_has_nothing_to_wait_for(library: Library, name: str) -> None:
    text = settings(name)
    drive = library.drive(text)
    now = drive.write(0, 8, 0)
    assert drive.flush(now) == now + number(text, "overhead_ns")
    assert drive.next() == 0
