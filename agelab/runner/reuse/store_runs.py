"""The store's own runs as a source of ended cells: an index by key, made at the first question.

A run that was made elsewhere and copied into the store is none of its own (agelab.results.own).
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock

from agelab.base import fileio
from agelab.base.errors import InputError, Notify
from agelab.results import checksummed, run_lookup
from agelab.results.result import MOMENT, CellOrigin, End, RunPlan, Sample
from agelab.results.run_directory import RunDirectory, picture_file
from agelab.runner.reuse import raw_outputs
from agelab.runner.reuse.ended_cell import CellKey, EndedCell

RUNS_KEPT = 4
"""Runs whose samples stay in memory: cells that go together lie in few runs."""


@dataclass(frozen=True)
class _Place:
    """An ended cell of a run."""

    run: RunDirectory
    number: int
    digest: str


@dataclass
class _Index:
    cells: dict[CellKey, list[_Place]] = field(default_factory=dict)
    """By key, those of the newest run first."""
    disputed: set[CellKey] = field(default_factory=set)
    """Keys with more than one digest."""
    strange: dict[CellKey, str] = field(default_factory=dict)
    """By key, a cell that this store did not measure."""


class StoreRuns:
    """Finds ended cells among the runs of a store, the newest first."""

    def __init__(self, runs: Path, say: Notify) -> None:
        self._runs = runs
        self._say = say
        self._lock = Lock()
        self._read = lru_cache(RUNS_KEPT)(_read)

    def restore(self, key: CellKey, directory: Path) -> EndedCell | None:
        """Put maps and outputs of a cell with this key into ``directory``, and return it; None where there is none.

        A cell that is not what its end record says is passed over, and told.
        """
        with self._lock:
            for place in self._index.cells.get(key, ()):
                try:
                    return self._restored(place, key, directory)
                except (InputError, OSError) as error:
                    self._say(f"{place.run.name}, cell {place.number}, is not reused: {error}")
                    shutil.rmtree(directory / "maps", ignore_errors=True)
            if key in self._index.strange and key not in self._index.cells:
                self._say(f"{self._index.strange[key]}, is not reused: this store did not measure it")
        return None

    def is_disputed(self, key: CellKey) -> bool:
        """Return whether cells with this key have different digests: then none of them is served."""
        with self._lock:
            return key in self._index.disputed

    def _restored(self, place: _Place, key: CellKey, directory: Path) -> EndedCell:
        plan, samples = self._read(place.run.path)
        end = place.run.end(place.number)
        if end is None or plan.clock != "virtual":
            raise InputError("it is no ended cell of the virtual clock")
        found = EndedCell(
            inputs=place.run.recorded_inputs(place.number),
            end=end,
            samples=tuple(samples.get(place.number, ())),
            origin=end.reused or _origin(plan, place, end),
        )
        found.require_intact(key)
        measured = place.run.path / "cells" / str(place.number)
        here = found.map_places(measured)
        for name, path in found.map_places(directory).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here[name], path)
        found.require_maps(directory)
        raw_outputs.copy(place.run.path / "cells" / str(place.number), directory)
        for name in end.pictures:
            with suppress(OSError, ValueError):  # then it is drawn anew
                shutil.copyfile(measured / picture_file(name), directory / picture_file(name))
        return found

    @cached_property
    def _index(self) -> _Index:
        index = _Index()
        for run in run_lookup.all_runs(self._runs)[::-1]:
            if not run.is_running():
                for place, key, disputed in _ended(run):
                    if not run.is_own(place.number):
                        index.strange[key] = f"{run.name}, cell {place.number}"
                        continue
                    known = index.cells.setdefault(key, [])
                    if disputed or (known and known[0].digest != place.digest):
                        index.disputed.add(key)
                    known.append(place)
        for key in index.disputed:
            del index.cells[key]
        return index


def _ended(run: RunDirectory) -> Iterator[tuple[_Place, CellKey, bool]]:
    """Yield the cells of a run that have a digest, with their keys, and whether they dispute an earlier digest.

    Damaged records are left out: whether the rest of a cell is sound is looked at when it is wanted.
    """
    for path in sorted(run.path.glob("cells/*/end.json")):
        try:
            with checksummed.readable(path):
                record = checksummed.unseal(json.loads(fileio.read_bytes(path)))
                number, digest = int(path.parent.name), record["digest"]
                key = CellKey(record["inputs_key"], record.get("evaluated_by") or "")
        except InputError:
            continue
        if all(isinstance(one, str) and one for one in (*key, digest)):
            yield _Place(run, number, digest), key, bool(record.get("disputes"))


def _read(path: Path) -> tuple[RunPlan, dict[int, Sequence[Sample]]]:
    run = RunDirectory(path)
    return run.plan(), {number: tuple(rows) for number, rows in run.samples().items()}


def _origin(plan: RunPlan, place: _Place, end: End) -> CellOrigin:
    """Return where a cell was measured; when, an older one says by the time of its end record alone."""
    written = (place.run.cell_directory(place.number) / "end.json").stat().st_mtime
    return CellOrigin(
        run=place.run.name,
        host=end.host or str(plan.provenance.get("host", "a host that it does not name")),
        ended=end.ended or datetime.fromtimestamp(written, UTC).strftime(MOMENT),
    )
