"""Taking memory away until the scenario's is left."""

from pathlib import Path

import pytest

from harness import counters, machine
from harness.plan import Memory

WANTED = 32 << 20


class Guest:
    """MemAvailable of a guest whose ballast counts against it, and which frees something at its n-th look."""

    def __init__(self, ballast: Path, free: int, freed: int = 0, at: int = 0) -> None:
        self.ballast, self.free, self.freed, self.at = ballast, free, freed, at
        self.looks = 0

    def meminfo(self, name: str) -> int:
        self.looks += 1
        taken = 512 * self.ballast.stat().st_blocks
        return self.free - taken + (self.freed if self.looks > self.at else 0)


def take(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> int:
    """What is available in the end, without another look's help."""
    monkeypatch.setattr(counters, "meminfo", guest.meminfo)
    monkeypatch.setattr("time.sleep", lambda _: None)
    machine.take_memory(Memory(WANTED, {}), guest.ballast)
    return guest.free + guest.freed - 512 * guest.ballast.stat().st_blocks


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_what_is_freed_a_moment_later_is_taken_too(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = Guest(tmp_path / "ballast", WANTED + (8 << 20), freed=1509 << 10, at=at)
    assert abs(take(guest, monkeypatch) - WANTED) <= machine.CLOSE_ENOUGH


def test_too_little_memory_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="1048576 bytes of memory less"):
        take(Guest(tmp_path / "ballast", WANTED - (1 << 20)), monkeypatch)
