"""Taking memory away until the scenario's is left."""

from pathlib import Path

import pytest

from harness import counters, machine
from harness.plan import Memory

WANTED = 32 << 20


class Guest:
    """MemAvailable of a guest whose ballast counts against it, and which frees something at its n-th look.

    What the ballast gives back lies on a list of the processor's, uncounted, until that is refreshed;
    beyond ``free``, ``uncounted`` bytes go to that list as soon as there is a ballast. ``listed`` bytes lie on such a
    list from the beginning, of a kind that the ballast is not made of.
    """

    def __init__(self, ballast: Path, free: int, freed: int = 0, at: int = 0, uncounted: int = 0) -> None:
        self.ballast, self.free, self.freed, self.at, self.uncounted = ballast, free, freed, at, uncounted
        self.looks = self.most = self.listed = 0

    def meminfo(self, name: str) -> int:
        self.looks += 1
        self.most = max(self.most, self.taken())
        held = (self.most - self.taken() + self.uncounted) if self.most else 0
        return self.free - self.taken() - held - self.listed + (self.freed if self.looks > self.at else 0)

    def taken(self) -> int:
        return 512 * self.ballast.stat().st_blocks

    def write_text(self, _: str) -> None:
        """Stands for the file by which the lists are counted."""
        self.most, self.listed = self.taken(), 0


def take(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the memory available in the end, read once."""
    monkeypatch.setattr(counters, "meminfo", guest.meminfo)
    monkeypatch.setattr(machine, "STAT_REFRESH", guest)
    monkeypatch.setattr("time.sleep", lambda _: None)
    machine.take_memory(Memory(WANTED, {}), guest.ballast)
    return guest.free + guest.freed - guest.taken()


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_what_is_freed_a_moment_later_is_taken_too(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = Guest(tmp_path / "ballast", WANTED + (8 << 20), freed=1509 << 10, at=at)
    assert abs(take(guest, monkeypatch) - WANTED) <= machine.CLOSE_ENOUGH


def test_what_is_given_back_is_counted_before_more_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A processor's list keeps some pages to itself; more given back would go there, too, and be free later."""
    guest = Guest(tmp_path / "ballast", WANTED + (8 << 20), uncounted=100 << 10)
    assert 0 <= take(guest, monkeypatch) - WANTED <= (100 << 10) + machine.CLOSE_ENOUGH


def test_what_lies_uncounted_before_there_is_a_ballast_is_taken_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that mounting freed is on a processor's list, and would be available when the first step starts."""
    guest = Guest(tmp_path / "ballast", WANTED + (8 << 20))
    guest.listed = 792 << 10
    assert abs(take(guest, monkeypatch) - WANTED) <= machine.CLOSE_ENOUGH


def test_too_little_memory_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="1048576 bytes of memory less"):
        take(Guest(tmp_path / "ballast", WANTED - (1 << 20)), monkeypatch)
