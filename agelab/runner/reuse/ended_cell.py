"""An ended cell that can stand for another of the same key, and what must hold of it before it may."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.base.types import Frozen
from agelab.results.digest import digest, inputs_key
from agelab.results.result import CellOrigin, End, Sample
from agelab.results.run_directory import map_file


class CellKey(NamedTuple):
    """What two cells have in common of which one can stand for the other."""

    inputs_key: str
    """Hash of all that shapes what the guest does."""
    evaluated_by: str
    """Hash of what makes samples of that."""

    @classmethod
    def of(cls, end: End) -> "CellKey | None":
        """Return the key of an ended cell; None where it stands for no other (no digest, an older agelab)."""
        return (
            cls(end.inputs_key, end.evaluated_by)
            if end.inputs_key and end.digest and end.evaluated_by
            else None
        )


class EndedCell(Frozen):
    """A cell of the virtual clock that ended by itself, without the files of its maps."""

    inputs: dict[str, Any] = Field(description="what its key is the hash of")
    end: End
    samples: tuple[Sample, ...]
    origin: CellOrigin

    def require_intact(self, key: CellKey) -> None:
        """Raise InputError unless it is of this key, and its digest is that of what it holds."""
        if self.end.digest is None:
            raise InputError("it has no digest")
        if CellKey.of(self.end) != key or inputs_key(self.inputs) != key.inputs_key:
            raise InputError("it is of another key")
        if digest(self.end.status, self.samples, self.end.maps) != self.end.digest:
            raise InputError("its samples are not those of its digest")
        for name in self.end.maps:
            _place(Path(), name)

    def require_maps(self, directory: Path) -> None:
        """Raise InputError unless the maps in a cell's directory are those of its digest, and small enough in all."""
        left = fileio.MAP
        for name, wanted in self.end.maps.items():
            found = hashlib.sha256()
            try:
                for piece in fileio.unpacked_pieces(_place(directory, name), left):
                    found.update(piece)
                    left -= len(piece)
            except OSError as error:
                raise InputError(f"its map {name} cannot be unpacked: {error.strerror}") from error
            if found.hexdigest() != wanted:
                raise InputError(f"its map {name} is not that of its digest")

    def map_places(self, directory: Path) -> dict[str, Path]:
        """Return the file of each map in a cell's directory."""
        return {name: _place(directory, name) for name in self.end.maps}

    def as_reused(self, disk: str | None) -> End:
        """Return the end record of a cell that it stands for; ``disk`` is the stored disk that the cell starts from."""
        return self.end.model_copy(update={"disk": disk, "reused": self.origin, "disputes": None})


def _place(directory: Path, name: str) -> Path:
    try:
        return directory / map_file(name)
    except ValueError as error:
        raise InputError(str(error)) from error
