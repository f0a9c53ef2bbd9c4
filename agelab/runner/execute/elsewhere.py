"""Cells that run on other hosts: what the one that writes the run asks of them."""

from pathlib import Path
from typing import Protocol

from agelab.errors import AgelabError
from agelab.model.seeds import CellName
from agelab.reuse.ended_cell import CellKey, EndedCell


class CellLost(AgelabError):
    """No other host has run the cell to its end."""


class Elsewhere(Protocol):
    """Other hosts."""

    @property
    def slots(self) -> int:
        """Cells that they run at a time."""

    def run(self, cell: CellName, key: CellKey, directory: Path) -> EndedCell:
        """Have a cell run, put its maps into ``directory``, and return it, verified; its origin is where it ran.

        Raises CellLost, with the reason in one line.
        """
