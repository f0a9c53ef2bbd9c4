"""Taking memory away until the scenario's is left."""

from pathlib import Path

import pytest

from harness import counters, machine
from harness.plan import Memory

WANTED = 32 << 20
PAGE = counters.PAGE


class Guest:
    """The memory of a guest: what the kernel counts as available, and what lies free on a processor's list.

    Pages that the ballast takes come from the list, which is filled up by ``batch`` pages; those that it gives back go
    to it. A refresh has the kernel count what lies there beyond ``kept`` pages. At the n-th look something is freed.
    """

    def __init__(self, ballast: Path, free: int, freed: int = 0, at: int = 0, kept: int = 0, batch: int = 1) -> None:
        self.ballast, self.counted, self.freed, self.at = ballast, free, freed, at
        self.kept, self.batch = kept * PAGE, batch * PAGE
        self.looks = self.taken = self.listed = 0

    def meminfo(self, _: str) -> int:
        """Stand for harness.counters.meminfo."""
        self.follow()
        self.looks += 1
        if self.looks == self.at:
            self.counted += self.freed
        return self.counted

    def on_lists(self) -> int:
        """Stand for harness.counters.on_lists."""
        self.follow()
        return self.listed

    def write_text(self, _: str) -> None:
        """Stand for the file by which the lists are counted."""
        self.follow()
        self.counted += max(0, self.listed - self.kept)
        self.listed = min(self.listed, self.kept)

    def follow(self) -> None:
        """Take from the list, or give to it, what the ballast has since taken or given."""
        taken = 512 * self.ballast.stat().st_blocks
        self.listed -= taken - self.taken
        self.taken = taken
        batches = -(min(self.listed, 0) // self.batch)
        self.listed += batches * self.batch
        self.counted -= batches * self.batch

    @property
    def free(self) -> int:
        """Bytes that a step can have."""
        self.follow()
        return self.counted + self.listed


def take(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the memory that is free in the end."""
    monkeypatch.setattr(counters, "meminfo", guest.meminfo)
    monkeypatch.setattr(counters, "on_lists", guest.on_lists)
    monkeypatch.setattr(machine, "STAT_REFRESH", guest)
    monkeypatch.setattr("time.sleep", lambda _: None)
    machine.take_memory(Memory(WANTED, {}), guest.ballast)
    return guest.free


def test_before_the_first_step_writers_are_held_back_as_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, str] = {}
    monkeypatch.setattr(machine, "sysctl", written.update)
    limits = {"vm/dirty_ratio": "20", "vm/dirty_background_ratio": "10"}
    machine.limit_dirty(Memory(100 << 20, limits))
    assert written == {"vm/dirty_bytes": str(20 << 20), "vm/dirty_background_bytes": str(10 << 20)}
    written.clear()
    machine.limit_dirty(Memory(None, limits))
    assert not written


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_what_is_freed_a_moment_later_is_taken_too(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest(tmp_path / "ballast", WANTED + (8 << 20), freed=1509 << 10, at=at)
    assert abs(take(guest, monkeypatch) - WANTED) <= machine.CLOSE_ENOUGH


@pytest.mark.parametrize("batch", [1, 31, 63, 105, 150])
@pytest.mark.parametrize("kept", [25, 112, 194, 300])
def test_what_a_processor_keeps_on_its_list_is_memory_that_a_step_has(
    kept: int, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 7.2 MemAvailable stood still while the ballast shrank, and then jumped: a cell had 762 KB too many."""
    guest = Guest(tmp_path / "ballast", WANTED + (8 << 20) + 4 * PAGE, kept=kept, batch=batch)
    assert abs(take(guest, monkeypatch) - WANTED) <= machine.CLOSE_ENOUGH
    assert guest.looks <= machine.SETTLED + 2


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


def test_pages_on_lists_are_those_of_every_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Linux 7.2 writes it; ``count`` is of a list, ``high`` and the others are its limits."""
    zoneinfo = tmp_path / "zoneinfo"
    zone = """Node 0, zone    {name}
  pages free     15
        boost    0
        protection: (0, 180, 180, 180)
      nr_free_pages 15
  pagesets
    cpu: 0
              count:    {count}
              high:     251
              batch:    63
              high_min: 194
  vm stats threshold: 4
  start_pfn:           1
"""
    zoneinfo.write_text(zone.format(name="DMA", count=7) + zone.format(name="DMA32", count=186))
    monkeypatch.setattr(counters, "ZONEINFO", zoneinfo)
    assert counters.on_lists() == 193 * PAGE
