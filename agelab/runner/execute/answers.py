"""Whether a cell runs here: an ended cell of the same key may stand for it, or other hosts run it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agelab.base import readers
from agelab.base.errors import AgelabError, InputError, Notify
from agelab.machine.vm import host
from agelab.results.result import CellOrigin, End, Sample
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from agelab.runner.reuse import cache
from agelab.runner.reuse.ended_cells import CellKey, EndedCell, EndedCells
from agelab.scenario.seeds import CellName


@dataclass(frozen=True)
class CellReuse:
    """What the cells of a run, in the virtual clock, have of cells that ended before."""

    ended: EndedCells
    looks_up: bool
    """False where every cell runs."""
    checked: float
    """Share of the found cells that run again, to be compared."""

    def find(self, key: CellKey, directory: Path) -> EndedCell | None:
        """Return an ended cell of this key, its maps put into ``directory``; None where the cell must run."""
        return self.ended.restore(key, directory) if self.looks_up else None

    def is_checked(self, run: RunDirectory, key: CellKey) -> bool:
        """Return whether a found cell runs again: by a hash of the run's name and the key."""
        drawn = hashlib.sha256(f"{run.name} {key.inputs_key}".encode()).digest()[:8]
        return int.from_bytes(drawn, "big") < self.checked * 2**64

    def share(self, run: RunDirectory, number: int, end: End, samples: Sequence[Sample]) -> None:
        """Put a cell that has ended into the cache, where everybody may read the run, and nothing disputes it."""
        key = CellKey.of(end)
        if not key or end.disputes or not self.ended.shares:
            return
        if readers.of_made(run.path) != readers.EVERYBODY:
            self.ended.withhold()
            return
        here = CellOrigin(run=run.name, host=end.host or host.description(), ended=end.ended or "")
        cell = EndedCell(
            inputs=run.recorded_inputs(number),
            end=end.model_copy(update={"disk": None, "reused": None, "pictures": {}}),
            samples=tuple(samples),
            origin=end.reused or here,
        )
        self.ended.share(key, cell, run.cell_directory(number))


def cell_reuse(options: RunOptions, runs: Path, say: Notify) -> CellReuse | None:
    """Return what a run has of ended cells; None in the wall clock, where the same thing run twice differs.

    Cells that do more than measure run: those that keep their disk, and whose host's time is taken. Raises InputError
    for a cache that there cannot be, and where nothing would be found that is to be checked.
    """
    if options.guest_clock != "virtual":
        return None
    everywhere = cache.every_cell_runs()
    if everywhere and options.verify is not None:
        raise InputError(f"--verify {options.verify:g}: {cache.FRESH} has every cell run: unset it")
    looks_up = not (everywhere or options.fresh or options.keep_disk or options.timing)
    return CellReuse(EndedCells(runs, say), looks_up, options.verify or 0.0)


class CellLost(AgelabError):
    """No other host has run the cell to its end."""


class Elsewhere(Protocol):
    """Other hosts."""

    def slots(self, memory: int) -> int:
        """Return how many cells they run now at a time, each of so many bytes of a host's memory: one at least."""

    def run(self, cell: CellName, key: CellKey, directory: Path, memory: int) -> EndedCell:
        """Have a cell run, put its maps into ``directory``, and return it, verified; its origin is where it ran.

        ``memory`` are the bytes that it takes of the host's. Raises CellLost, with the reason in one line.
        """

    def stop(self) -> None:
        """End the guests of all of them: an error or an interrupt ends the run."""
