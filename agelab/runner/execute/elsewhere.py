"""Cells that run on other hosts: what the one that writes the run asks of them."""

from pathlib import Path
from typing import Protocol

from agelab.base.errors import AgelabError
from agelab.runner.reuse.ended_cell import CellKey, EndedCell
from agelab.scenario.seeds import CellName


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
