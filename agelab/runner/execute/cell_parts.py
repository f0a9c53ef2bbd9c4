"""What follows the making of a cell's disk, in parts that go side by side where there is room for more guests.

A guest in the virtual clock hears nothing of another one: it measures the same. What a part finds waits for those
before it, so a cell's results have one order.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from agelab.evaluate.cell_status import CellStatus
from agelab.results.result import Sample
from agelab.runner.execute.phases import CellProgress, PhaseAborted


class GuestSlots:
    """Room for guests beside the one that each cell has: so many at a time, less the cells that have not ended."""

    def __init__(self, guests: int = 0, cells: int = 0) -> None:
        self.changed = threading.Condition()
        self._free = guests - cells

    def take(self) -> bool:
        """Take a slot, if one is free. ``changed`` is held."""
        taken = self._free > 0
        self._free -= taken
        return taken

    def give(self) -> None:
        """Give back a slot, or that of a cell which has ended."""
        with self.changed:
            self._free += 1
            self.changed.notify_all()


@dataclass
class Part:
    """A part of a cell, and the forks by which it hangs together with others."""

    run: Callable[[CellProgress], None]
    needs: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    has_ended: bool = False
    found: list[Callable[[], None]] = field(default_factory=list)
    """What it has found and not yet told the cell."""


@dataclass
class CellParts:
    """Carries out the parts of a cell, each as soon as what it needs is there and a guest may run."""

    cell: CellProgress
    parts: Sequence[Part]
    slots: GuestSlots
    abandon: Callable[[], None]
    """Ends all guests: a part that cannot go on ends the run."""
    _taken: set[str] = field(default_factory=set)
    """The forks that have been taken."""
    _running: int = 0
    _errors: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Return when all have ended. Raises what the first of them raised that could not go on."""
        waiting = list(self.parts)
        with self.slots.changed:
            while (waiting and not self._errors) or self._running:
                for part in [] if self._errors else [part for part in waiting if self._is_ready(part)]:
                    if self._running and not self.slots.take():
                        break
                    waiting.remove(part)
                    self._running += 1
                    threading.Thread(target=self._carry_out, args=(part,), daemon=True).start()
                self.slots.changed.wait()
        if self._errors:
            raise self._errors[0]

    def _is_ready(self, part: Part) -> bool:
        to_come = {name for other in self.parts if not other.has_ended for name in other.makes}
        return not part.needs & to_come - self._taken

    def _carry_out(self, part: Part) -> None:
        try:
            with suppress(PhaseAborted):  # the others go on
                part.run(PartProgress.of(self, part))
            with self.slots.changed:
                part.has_ended = True
                self._tell_in_turn()
        except BaseException as error:
            self._errors.append(error)
            with suppress(Exception):  # the error before it is told
                self.abandon()
        with self.slots.changed:
            self._running -= 1
            if self._running:
                self.slots.give()
            self.slots.changed.notify_all()

    def take_in(self, part: Part, found: Callable[[], None]) -> None:
        """Have the cell told what a part has found, in its turn."""
        with self.slots.changed:
            part.found.append(found)
            self._tell_in_turn()

    def _tell_in_turn(self) -> None:
        for part in self.parts:
            while part.found:
                part.found.pop(0)()
            if not part.has_ended:
                return

    def take_fork(self, name: str) -> None:
        """Take note of a fork that others may need."""
        with self.slots.changed:
            self._taken.add(name)
            self.slots.changed.notify_all()


@dataclass(kw_only=True)
class PartProgress(CellProgress):
    """The progress of one part."""

    parts: CellParts
    part: Part

    @classmethod
    def of(cls, parts: CellParts, part: Part) -> "PartProgress":
        """Return that of a part which begins now."""
        cell = parts.cell
        return cls(
            cell.run,
            cell.number,
            cell.spec,
            samples=list(cell.samples),
            status=cell.status,
            mounts=cell.mounts,
            parts=parts,
            part=part,
        )

    def write(self, sample: Sample) -> None:
        self.parts.take_in(self.part, partial(self.parts.cell.record, sample))

    def judge(self, status: CellStatus) -> None:
        super().judge(status)
        self.parts.take_in(self.part, partial(self.parts.cell.judge, status))

    def forked(self, name: str) -> None:
        self.parts.take_fork(name)
