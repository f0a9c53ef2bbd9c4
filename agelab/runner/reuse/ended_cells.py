"""Ended cells by their keys, from wherever they are: the store's own runs first, then the cache."""

from pathlib import Path

from agelab.base.errors import Notify
from agelab.runner.reuse import cache
from agelab.runner.reuse.ended_cell import CellKey, EndedCell
from agelab.runner.reuse.store_runs import StoreRuns


class EndedCells:
    """Finds ended cells, and shares them through the cache. Raises InputError for a cache that there cannot be."""

    def __init__(self, runs: Path, say: Notify) -> None:
        self._runs = StoreRuns(runs, say)
        self._cache = cache.of_environment(say)
        self._say = say
        self._withheld = False

    def restore(self, key: CellKey, directory: Path) -> EndedCell | None:
        """Put the maps of an ended cell with this key into ``directory``, and return the cell, if there is one.

        A key for which two digests are known has none.
        """
        if self._runs.is_disputed(key):
            return None
        found = self._runs.restore(key, directory)
        return found or (self._cache.restore(key, directory) if self._cache else None)

    def share(self, key: CellKey, cell: EndedCell, directory: Path) -> None:
        """Add a cell, whose maps lie in ``directory``, to the cache, unless the key is disputed."""
        if self._cache and not self._runs.is_disputed(key):
            self._cache.add(key, cell, directory)

    def withhold(self) -> None:
        """Tell, once, that cells are not shared since not everybody may read what they are made of."""
        if not self._withheld:
            self._withheld = True
            self._say("nothing is put into the cache: not everybody may read what this run is made of")

    @property
    def shares(self) -> bool:
        """True if there is a cache to share cells through."""
        return self._cache is not None
