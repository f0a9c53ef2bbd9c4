"""The parts of a cell side by side: what goes when, and that its results have one order."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agelab.evaluate.cell_status import CellStatus
from agelab.results.result import Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.cell_parts import CellParts, GuestSlots, Part
from agelab.runner.execute.phases import CellProgress, PhaseAborted
from tests.build.cell_builder import spec

SECONDS = 20.0


class Guests:
    """Guests that run until they are let go, and say that they run."""

    def __init__(self) -> None:
        self.running: dict[str, threading.Event] = {}
        self.changed = threading.Condition()
        self.ended_by_host = False

    def run(self, name: str) -> None:
        with self.changed:
            event = self.running[name] = threading.Event()
            self.changed.notify_all()
        assert event.wait(SECONDS)
        if self.ended_by_host:
            raise KeyboardInterrupt
        with self.changed:
            del self.running[name]
            self.changed.notify_all()

    def abandon(self) -> None:
        with self.changed:
            self.ended_by_host = True
            for event in self.running.values():
                event.set()

    def are(self, *names: str) -> bool:
        """Whether these run, a moment later at most, and no others."""
        with self.changed:
            return self.changed.wait_for(lambda: set(self.running) == set(names), SECONDS)

    def end(self, name: str) -> None:
        """End a guest, which runs or is about to."""
        with self.changed:
            assert self.changed.wait_for(lambda: name in self.running, SECONDS)
            self.running[name].set()


def sample(step: str) -> Sample:
    return Sample(step=step, repetition=1, metric="elapsed", value=1, unit="s")


def part(guests: Guests, name: str, *, needs: str = "", makes: str = "", fails: str = "") -> Part:
    """A part that records a sample, runs a guest, takes its fork, runs another guest, and judges."""

    def run(progress: CellProgress) -> None:
        progress.record(sample(f"{name}-first"))
        guests.run(name)
        if makes:
            progress.forked(makes)
            guests.run(f"{name}-2")
        progress.record(sample(f"{name}-last"))
        if fails:
            progress.judge(CellStatus(Status.FAILED, fails))
            raise PhaseAborted

    return Part(run, frozenset(needs.split()), frozenset(makes.split()))


@contextmanager
def going_on(tmp_path: Path, guests: Guests, slots: GuestSlots, *parts: Part) -> Iterator[CellProgress]:
    """A cell whose parts go on in a thread until the body is done, and have ended then."""
    cell = CellProgress(RunDirectory(tmp_path), 0, spec())
    together = CellParts(cell, parts, slots, guests.abandon)
    thread = threading.Thread(target=together.run, daemon=True)
    thread.start()
    yield cell
    thread.join(SECONDS)
    assert not thread.is_alive()


def steps(cell: CellProgress) -> list[str]:
    written = [one.step for one in RunDirectory(cell.run.path).samples().get(0, [])]
    assert written == [one.step for one in cell.samples]
    return written


def aging(guests: Guests) -> tuple[Part, Part, Part]:
    return (
        part(guests, "aged", needs="aged"),
        part(guests, "control", needs="aged", makes="control"),
        part(guests, "map", needs="aged control"),
    )


def test_with_one_guest_at_a_time_parts_go_one_after_the_other(tmp_path: Path) -> None:
    guests = Guests()
    with going_on(tmp_path, guests, GuestSlots(1, 1), *aging(guests)) as cell:
        for name in ("aged", "control", "control-2", "map"):
            assert guests.are(name)
            guests.end(name)
    order = ["aged-first", "aged-last", "control-first", "control-last", "map-first", "map-last"]
    assert steps(cell) == order


def test_side_by_side_a_part_begins_with_what_it_needs_and_results_keep_their_order(tmp_path: Path) -> None:
    guests = Guests()
    with going_on(tmp_path, guests, GuestSlots(2, 1), *aging(guests)) as cell:
        assert guests.are("aged", "control")
        guests.end("control")
        assert guests.are("aged", "control-2")
        assert steps(cell) == ["aged-first"]  # as it comes; the control's wait
        guests.end("aged")
        assert guests.are("map", "control-2")  # a slot is free, and the control's disk there
        guests.end("map")
        assert guests.are("control-2")
        assert steps(cell) == ["aged-first", "aged-last", "control-first"]
        guests.end("control-2")
    order = ["aged-first", "aged-last", "control-first", "control-last", "map-first", "map-last"]
    assert steps(cell) == order


def test_a_guest_beside_takes_the_place_of_a_cell_that_has_ended(tmp_path: Path) -> None:
    guests, slots = Guests(), GuestSlots(2, 2)
    with going_on(tmp_path, guests, slots, *aging(guests)):
        assert guests.are("aged")
        slots.give()
        assert guests.are("aged", "control")
        for name in ("aged", "control", "control-2", "map"):
            guests.end(name)
    with slots.changed:
        assert slots.take() and not slots.take()


def test_the_first_trouble_in_the_order_of_results_is_the_cells_and_others_go_on(tmp_path: Path) -> None:
    guests = Guests()
    parts = (part(guests, "one", fails="first"), part(guests, "two", fails="second"), part(guests, "three"))
    with going_on(tmp_path, guests, GuestSlots(2, 1), *parts) as cell:
        assert guests.are("one", "two")
        guests.end("two")
        assert guests.are("one", "three")
        assert cell.status.ok
        guests.end("one")
        guests.end("three")
    assert (cell.status.status, cell.status.reason) == (Status.FAILED, "first")
    assert steps(cell)[-1] == "three-last"


def test_what_no_part_can_go_on_after_ends_the_guests_and_is_raised_once(tmp_path: Path) -> None:
    guests = Guests()

    def full(progress: CellProgress) -> None:
        assert guests.are("aged")
        raise OSError("no room")

    def never(progress: CellProgress) -> None:
        pytest.fail("it began")

    cell = CellProgress(RunDirectory(tmp_path), 0, spec())
    parts = [part(guests, "aged", needs="aged"), Part(full), Part(never, needs=frozenset({"x"})), Part(full)]
    parts[0].makes = frozenset({"x"})
    with pytest.raises(OSError, match="no room"):
        CellParts(cell, parts, GuestSlots(2, 1), guests.abandon).run()
    assert guests.ended_by_host


def test_a_run_whose_guests_cannot_be_ended_waits_for_none(tmp_path: Path) -> None:
    def full(progress: CellProgress) -> None:
        raise OSError("no room")

    def abandon() -> None:
        raise RuntimeError("no daemon")

    cell = CellProgress(RunDirectory(tmp_path), 0, spec())
    with pytest.raises(OSError, match="no room"):
        CellParts(cell, [Part(full)], GuestSlots(1, 1), abandon).run()
