"""A cache of ended cells that machines share: a directory, or a server (AGELAB_CACHE).

What lies under the key is the list of the cell's files (agelab.store.action_result): ``cell.json``, the record, its
maps, and what its steps have printed. Each lies under its own hash.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agelab.base import fileio
from agelab.base.errors import InputError, Notify
from agelab.base.hashing import canonical_json, key_of
from agelab.results import checksummed
from agelab.runner.reuse import raw_outputs
from agelab.runner.reuse.ended_cell import CellKey, EndedCell
from agelab.store import action_result, environment
from agelab.store.action_result import CachedFile
from agelab.store.blobs import MAX_BLOB, Blobs, CacheUnreachable, DirectoryBlobs, WrongEntry
from agelab.store.http_blobs import HttpBlobs

SCHEMA = 1
"""Of the record: another one lies under other names."""
RECORD = "cell.json"
OUTPUTS = "outputs/"
"""Before the names of files that steps have printed."""
MAX_FILES = 1000
"""Files of a cell at most."""
MOST_OF_LIST = 1 << 20
"""Bytes of the list of its files at most."""
MOST_BYTES = 4 * MAX_BLOB
"""Bytes of all of them at most, packed."""


def entry_name(key: CellKey) -> str:
    """Return the name below ``ac/`` under which the cell of a key lies."""
    return key_of({"agelab": "cell", "schema": SCHEMA, **key._asdict()})


class CellCache:
    """Finds ended cells in a cache, and adds to it.

    One that cannot be reached is told once, and not asked again.
    """

    def __init__(self, blobs: Blobs, say: Notify) -> None:
        self._blobs = blobs
        self._say = say
        self._given_up = False

    def restore(self, key: CellKey, directory: Path) -> EndedCell | None:
        """Put the maps of the cell with this key into ``directory``, and return the cell; None where there is none.

        An entry that is damaged, or another's, is told and not used.
        """
        if self._given_up:
            return None
        name = entry_name(key)
        try:
            entry = self._blobs.get("ac", name)
            return None if entry is None else self._restored(key, entry, directory)
        except CacheUnreachable as error:
            self._give_up(error)
        except (WrongEntry, InputError, OSError) as error:
            self._say(f"cache {self._blobs.name}: ac/{name} is not used: {error}")
        shutil.rmtree(directory / "maps", ignore_errors=True)
        for path in raw_outputs.outputs(directory):
            path.unlink()
        return None

    def add(self, key: CellKey, cell: EndedCell, directory: Path) -> None:
        """Add a cell whose maps lie in ``directory``, unless there is one of this key."""
        if self._given_up:
            return
        try:
            if not self._blobs.has("ac", entry_name(key)):
                self._add(key, cell, directory)
        except CacheUnreachable as error:
            self._give_up(error)
        except OSError as error:
            self._say(f"{cell.origin.run}: a cell is not put into the cache: {error}")

    def _add(self, key: CellKey, cell: EndedCell, directory: Path) -> None:
        record = canonical_json({"schema": SCHEMA, **cell.model_dump(mode="json")})
        contents = {RECORD: record}
        for name, path in cell.map_places(directory).items():
            contents[f"maps/{name}.gz"] = fileio.read_bytes(path, MAX_BLOB)
        for path in raw_outputs.outputs(directory)[: MAX_FILES - len(contents)]:
            contents[OUTPUTS + path.name] = fileio.read_bytes(path, MAX_BLOB)
        files = [
            CachedFile(name, hashlib.sha256(data).hexdigest(), len(data)) for name, data in contents.items()
        ]
        if len(record) > MAX_BLOB:
            raise OSError(f"its record has more than {MAX_BLOB >> 20} MiB")
        if sum(map(len, contents.values())) > MOST_BYTES:
            raise OSError(f"its files have more than {MOST_BYTES >> 20} MiB")
        for file in files:  # before the list of them: a list is never there without its files
            self._blobs.put("cas", file.sha256, contents[file.path])
        self._blobs.put("ac", entry_name(key), action_result.encode(files))

    def _restored(self, key: CellKey, entry: bytes, directory: Path) -> EndedCell | None:
        files = files_of_entry(entry)
        if sum(file.size for file in files.values()) > MOST_BYTES:
            raise WrongEntry(f"its files have more than {MOST_BYTES >> 20} MiB")
        record = self._content(files, RECORD)
        if record is None:
            return None
        cell = cell_of_record(record)
        cell.require_intact(key)
        for name, path in cell.map_places(directory).items():
            data = self._content(files, f"maps/{name}.gz")
            if data is None:
                shutil.rmtree(directory / "maps", ignore_errors=True)
                return None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        cell.require_maps(directory)
        self._restore_outputs(files, directory)
        return cell

    def _restore_outputs(self, files: Mapping[str, CachedFile], directory: Path) -> None:
        """Write what the steps printed, as far as the cache still has it: no digest is made of it."""
        for name in files:
            kind, _, output = name.partition("/")
            if f"{kind}/" == OUTPUTS and raw_outputs.is_output(output):
                data = self._content(files, name)
                if data is not None:
                    (directory / output).write_bytes(data)

    def _content(self, files: Mapping[str, CachedFile], name: str) -> bytes | None:
        """Return the content of a file; None where the cache has lost it. Raises WrongEntry for other content."""
        if name not in files:
            raise WrongEntry(f"it names no {name}")
        file = files[name]
        data = self._blobs.get("cas", file.sha256)
        if data is None:
            return None
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise WrongEntry(f"{name} has another hash than its name says")
        if len(data) != file.size:
            raise WrongEntry(f"{name} has another size than is said")
        return data

    def _give_up(self, error: CacheUnreachable) -> None:
        if not self._given_up:
            self._given_up = True
            self._say(f"cache {self._blobs.name}: {error}; the run goes on without it")


def files_of_entry(entry: bytes) -> dict[str, CachedFile]:
    """Return the files of an entry by their paths. Raises WrongEntry for what is no list of them."""
    if len(entry) > MOST_OF_LIST:
        raise WrongEntry(f"its list of files has more than {MOST_OF_LIST >> 20} MiB")
    try:
        found = action_result.decode(entry)
    except ValueError as error:
        raise WrongEntry(f"it is no list of files: {error}") from error
    if len(found) > MAX_FILES:
        raise WrongEntry(f"it names more than {MAX_FILES} files")
    for file in found:
        if len(file.sha256) != 64 or set(file.sha256) - set("0123456789abcdef"):
            raise WrongEntry("a file has no sha256")
    return {file.path: file for file in found}


def cell_of_record(record: bytes) -> EndedCell:
    """Read the record of a cell. Raises InputError for what is none."""
    with checksummed.readable(Path(RECORD)):
        found = json.loads(record)
        if found.pop("schema") != SCHEMA:
            raise ValueError("it is of another schema")
        return checksummed.validated(found, EndedCell)


def of_environment(say: Notify) -> CellCache | None:
    """Return the cells of the cache that AGELAB_CACHE names; None without one. Raises as ``blobs_of_environment``."""
    blobs = blobs_of_environment()
    return CellCache(blobs, say) if blobs else None


def blobs_of_environment() -> Blobs | None:
    """Return the cache that AGELAB_CACHE names; None without one.

    Raises InputError for what is no directory and no http(s)://, and as HttpBlobs does.
    """
    value = os.environ.get(environment.CACHE)
    if not value:
        return None
    scheme = urlsplit(value).scheme if "://" in value else ""
    if scheme in ("http", "https"):
        return HttpBlobs(value)
    if scheme:
        raise InputError(
            f"{environment.CACHE}: {scheme}:// is not spoken here",
            hint="name a directory, or a server by http(s)://",
        )
    return DirectoryBlobs(Path(value))
