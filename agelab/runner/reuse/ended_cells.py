"""Ended cells found again by their keys: in the store's own runs first, then in the cache that machines share.

A cell moves as a parcel (agelab.store.parcel): its record is the manifest; its maps, and what its steps have printed,
are the files. A run that was made elsewhere and copied into the store is none of its own (agelab.results.own).
"""

import hashlib
import io
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from pydantic import Field

from agelab.base import fileio
from agelab.base.errors import InputError, Notify
from agelab.base.hashing import key_of
from agelab.base.types import Frozen
from agelab.results import checksummed, run_lookup
from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.result import MOMENT, CellOrigin, End, RunPlan, Sample
from agelab.results.run_directory import RunDirectory, map_file, picture_file
from agelab.runner.reuse import cache
from agelab.runner.reuse.cache import SharedCache
from agelab.store import parcel
from agelab.store.parcel import MAX_BLOB, Lost, OneFile, PackedFile, Parcel, Place, Refused, Source

SCHEMA = 2
"""Of a cell's parcel: another one lies under other names."""
OUTPUTS = "outputs/"
"""Before the names of files that steps have printed."""
MAX_FILES = 1000
"""Files of a cell at most."""
MOST_BYTES = 4 * MAX_BLOB
"""Bytes of all of them at most, packed."""
MOST_SENT = 2 * MAX_BLOB
"""Bytes of a cell in one file at most."""
RUNS_KEPT = 4
"""Runs whose samples stay in memory: cells that go together lie in few runs."""
_OUTPUT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.output", re.ASCII)


class CellKey(NamedTuple):
    """What two cells have in common of which one can stand for the other."""

    inputs_key: str
    """Hash of all that shapes what the guest does."""
    evaluated_by: str
    """Hash of what makes samples of that."""

    @classmethod
    def of(cls, end: End) -> "CellKey | None":
        """Return the key of an ended cell; None where it stands for no other (no digest, an older agelab)."""
        return cls(end.inputs_key, end.evaluated_by) if end.inputs_key and end.digest and end.evaluated_by else None


class OtherKey(Refused):
    """An intact cell, perhaps, but not the one that was asked for."""


class EndedCell(Frozen):
    """A cell of the virtual clock that ended by itself, without the files of its maps."""

    inputs: dict[str, Any] = Field(description="what its key is the hash of")
    end: End
    samples: tuple[Sample, ...]
    origin: CellOrigin

    def require_intact(self, key: CellKey) -> None:
        """Raise Refused unless it is of this key, and its digest is that of what it holds."""
        if self.end.digest is None:
            raise Refused("it has no digest")
        if CellKey.of(self.end) != key or inputs_key(self.inputs) != key.inputs_key:
            raise OtherKey("it is of another key")
        if digest(self.end.status, self.samples, self.end.maps) != self.end.digest:
            raise Refused("its samples are not those of its digest")
        for name in self.end.maps:
            _place(Path(), name)

    def require_maps(self, directory: Path) -> None:
        """Raise Refused unless the maps in a cell's directory are those of its digest, and small enough in all."""
        left = fileio.MAP
        for name, expected in self.end.maps.items():
            sha256 = hashlib.sha256()
            try:
                for piece in fileio.unpacked_pieces(_place(directory, name), left):
                    sha256.update(piece)
                    left -= len(piece)
            except OSError as error:
                raise Refused(f"its map {name} cannot be unpacked: {error.strerror}") from error
            if sha256.hexdigest() != expected:
                raise Refused(f"its map {name} is not that of its digest")

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
        raise Refused(str(error)) from error


def is_output(name: str) -> bool:
    """Return whether a file of that name may be what a step has printed, and lies in the cell's directory itself."""
    return _OUTPUT.fullmatch(name) is not None


def outputs(directory: Path) -> list[Path]:
    """Return what the steps of a cell have printed, as it is: files beside its record, which no digest knows of."""
    return sorted(path for path in directory.glob("*") if is_output(path.name) and path.is_file())


def entry_name(key: CellKey) -> str:
    """Return the key under which the parcel of a cell lies in a cache."""
    return key_of({"agelab": "cell", "schema": SCHEMA, **key._asdict()})


def packed(cell: EndedCell, directory: Path) -> tuple[Parcel[EndedCell], dict[str, bytes]]:
    """Return a cell whose maps lie in ``directory`` as a parcel, and its files. Raises Refused for too large a one."""
    contents: dict[str, bytes] = {}
    for name, path in cell.map_places(directory).items():
        contents[f"maps/{name}.gz"] = fileio.read_bytes(path, MAX_BLOB)
    for path in outputs(directory)[: MAX_FILES - len(contents)]:
        contents[OUTPUTS + path.name] = fileio.read_bytes(path, MAX_BLOB)
    files = {name: PackedFile.of(data) for name, data in contents.items()}
    made = Parcel[EndedCell](manifest=cell, files=files)
    made.require_size(MOST_BYTES, MAX_FILES)
    return made, contents


def unpacked(parcel: Parcel[EndedCell], source: Source, key: CellKey, directory: Path) -> EndedCell:
    """Return the cell of a parcel, its maps and outputs put into ``directory``.

    Raises Refused for anything else than an intact cell of this key, and leaves nothing there then.
    """
    parcel.require_size(MOST_BYTES, MAX_FILES)
    cell = parcel.manifest
    cell.require_intact(key)
    try:
        for name, path in cell.map_places(directory).items():
            data = parcel.read(f"maps/{name}.gz", source)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        cell.require_maps(directory)
        for name in parcel.files:
            output = name.removeprefix(OUTPUTS)
            if output != name and is_output(output):
                with suppress(Lost):  # no digest is made of it
                    (directory / output).write_bytes(parcel.read(name, source))
    except BaseException as error:
        shutil.rmtree(directory / "maps", ignore_errors=True)
        for path in outputs(directory):
            path.unlink()
        if isinstance(error, OSError):
            raise Refused(str(error)) from error
        raise
    return cell


def pack(cell: EndedCell, directory: Path) -> bytes:
    """Return a cell whose maps lie in ``directory`` as one file. Raises Refused for too large a one."""
    sent = io.BytesIO()
    parcel.write(sent, *packed(cell, directory))
    return sent.getvalue()


def unpack(sent: bytes, key: CellKey, directory: Path) -> EndedCell:
    """Return the cell in one file, as ``unpacked`` does."""
    return unpacked(*_opened(sent), key, directory)


def sent_cell(sent: bytes) -> EndedCell:
    """Return the record of the cell in one file, whatever its key. Raises Refused."""
    return _opened(sent)[0].manifest


def _opened(sent: bytes) -> tuple[Parcel[EndedCell], OneFile]:
    if len(sent) > MOST_SENT:
        raise Refused(f"it sent more than {MOST_SENT >> 20} MiB")
    file = OneFile(io.BytesIO(sent))
    return file.parcel(Parcel[EndedCell]), file


@dataclass(frozen=True)
class _Ended:
    """An ended cell of a run."""

    run: RunDirectory
    number: int
    digest: str


@dataclass
class _Index:
    cells: dict[CellKey, list[_Ended]] = field(default_factory=dict)
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

    def _restored(self, place: _Ended, key: CellKey, directory: Path) -> EndedCell:
        plan, samples = self._read(place.run.path)
        end = place.run.end(place.number)
        if end is None or plan.clock != "virtual":
            raise InputError("it is no ended cell of the virtual clock")
        cell = EndedCell(
            inputs=place.run.recorded_inputs(place.number),
            end=end,
            samples=tuple(samples.get(place.number, ())),
            origin=end.reused or _origin(plan, place, end),
        )
        cell.require_intact(key)
        measured = place.run.path / "cells" / str(place.number)
        here = cell.map_places(measured)
        for name, path in cell.map_places(directory).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here[name], path)
        cell.require_maps(directory)
        for path in outputs(measured):
            shutil.copyfile(path, directory / path.name)
        for name in end.pictures:
            with suppress(OSError, ValueError):  # then it is drawn anew
                shutil.copyfile(measured / picture_file(name), directory / picture_file(name))
        return cell

    @cached_property
    def _index(self) -> _Index:
        index = _Index()
        for run in run_lookup.all_runs(self._runs)[::-1]:
            if not run.is_running():
                for place, key, disputed in _ended_of(run):
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


def _ended_of(run: RunDirectory) -> Iterator[tuple[_Ended, CellKey, bool]]:
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
        if all(isinstance(word, str) and word for word in (*key, digest)):
            yield _Ended(run, number, digest), key, bool(record.get("disputes"))


def _read(path: Path) -> tuple[RunPlan, dict[int, Sequence[Sample]]]:
    run = RunDirectory(path)
    return run.plan(), {number: tuple(rows) for number, rows in run.samples().items()}


def _origin(plan: RunPlan, place: _Ended, end: End) -> CellOrigin:
    """Return where a cell was measured; when, an older one says by the time of its end record alone."""
    written = (place.run.cell_directory(place.number) / "end.json").stat().st_mtime
    return CellOrigin(
        run=place.run.name,
        host=end.host or str(plan.provenance.get("host", "a host that it does not name")),
        ended=end.ended or datetime.fromtimestamp(written, UTC).strftime(MOMENT),
    )


class EndedCells:
    """Finds ended cells, and shares them through the cache. Raises InputError for a cache that there cannot be."""

    def __init__(self, runs: Path, say: Notify, place: Place | None = None) -> None:
        """``place`` is the cache, by default that of the environment."""
        self._runs = StoreRuns(runs, say)
        place = place or cache.of_environment()
        self._cache = SharedCache(place, say, "the run goes on without it") if place else None
        self._say = say
        self._withheld = False

    def restore(self, key: CellKey, directory: Path) -> EndedCell | None:
        """Put the maps of an ended cell with this key into ``directory``, and return the cell, if there is one.

        A key for which two digests are known has none. A parcel that is damaged, or another's, is told and not used.
        """
        if self._runs.is_disputed(key):
            return None
        cell = self._runs.restore(key, directory)
        if cell or self._cache is None or self._cache.given_up:
            return cell
        name, place = entry_name(key), self._cache.place
        with self._cache.reading(name):
            line = place.get("ac", name)
            if line is not None:
                return unpacked(parcel.parse(line, Parcel[EndedCell]), place, key, directory)
        return None

    def share(self, key: CellKey, cell: EndedCell, directory: Path) -> None:
        """Add a cell, whose maps lie in ``directory``, to the cache, unless it has this key or the key is disputed."""
        if self._cache is None or self._cache.given_up or self._runs.is_disputed(key):
            return
        try:
            with self._cache.asking():
                if not self._cache.has(entry_name(key)):
                    parcel.put(self._cache.place, entry_name(key), *packed(cell, directory))
        except (Refused, OSError) as error:
            self._say(f"{cell.origin.run}: a cell is not put into the cache: {error}")

    def withhold(self) -> None:
        """Tell, once, that cells are not shared since not everybody may read what they are made of."""
        if not self._withheld:
            self._withheld = True
            self._say("nothing is put into the cache: not everybody may read what this run is made of")

    @property
    def shares(self) -> bool:
        """True if there is a cache to share cells through."""
        return self._cache is not None
