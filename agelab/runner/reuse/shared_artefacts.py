"""Artefacts that machines share through the cache (AGELAB_CACHE): kernels, roots, images, modules, tools, corpora.

Under the key lies a list of files (agelab.store.action_result): ``artefact.json``, which says what the artefact holds,
and its files, one behind the other in the order of their names, packed and cut into pieces.
"""

import gzip
import hashlib
import io
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import Field

from agelab.base.errors import InputError, Notify
from agelab.base.hashing import key_of
from agelab.base.types import Frozen
from agelab.results import checksummed
from agelab.runner.reuse import artefact_kinds, cache
from agelab.store import action_result
from agelab.store.action_result import CachedFile
from agelab.store.artefacts import MANIFEST, Artefact, Manifest, artefact_key, file_hash
from agelab.store.blobs import Blobs, CacheUnreachable, WrongEntry

SCHEMA = 1
RECORD, PIECE = "artefact.json", "files-{:04d}"
PIECE_BYTES = 8 << 20
"""Bytes of a piece: a slow link, too, brings it in the time of one request."""
MOST_BYTES = 4 << 30
"""Bytes of an artefact's files at most."""
PACKING = 1
"""Level of packing: a higher one takes longer than most links save by it."""
MAX_NAME = 200
"""Characters of a file's path at most."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~@:-]*(/[A-Za-z0-9_][A-Za-z0-9._+~@:-]*)*", re.ASCII)
_CHUNK = 1 << 20


class ArtefactRecord(Frozen):
    """artefact.json."""

    of_schema: Literal[1] = Field(alias="schema")
    manifest: Manifest
    sizes: dict[str, int] = Field(description="bytes of each file of the manifest")
    programs: tuple[str, ...] = Field(default=(), description="files that may be executed")

    def require_whole(self, kind: str, key: str) -> None:
        """Raise WrongEntry unless it is of that kind and key, and names plain files within an artefact."""
        made = self.manifest
        if made.kind != kind or artefact_key(kind, made.inputs) != key:
            raise WrongEntry("it is of another key")
        if set(self.sizes) != set(made.files) or not set(self.programs) <= set(made.files):
            raise WrongEntry("its list of files is not that of its manifest")
        if min(self.sizes.values(), default=0) < 0 or sum(self.sizes.values()) > MOST_BYTES:
            raise WrongEntry(f"it has more than {MOST_BYTES >> 30} GiB")
        above = {str(parent) for name in self.sizes for parent in PurePosixPath(name).parents}
        for name in self.sizes:
            if not _NAME.fullmatch(name) or name == MANIFEST or name in above or len(name) > MAX_NAME:
                raise WrongEntry(f"it names the file {name[:40]!r}")


class CachedArtefacts:
    """Finds artefacts in the cache, and adds to it.

    A cache that cannot be reached is told once, and not asked again. What an entry holds must have the hashes that it
    says, and say the inputs of its key; one that does not is told, and the artefact is made here.
    """

    def __init__(self, say: Notify, blobs: Blobs | None = None) -> None:
        """``blobs`` is the cache, by default that of the environment when it is first needed."""
        self._say = say
        self._blobs = blobs
        self._given_up = False
        self._known: set[str] = set()
        self._refused: set[str] = set()
        """Entries that could not be used: what they have lost is put there again."""

    def manifest(self, kind: str, key: str) -> Manifest | None:
        record = self._asked(kind, key)
        return record[0].manifest if record else None

    def fill(self, kind: str, key: str, directory: Path) -> bool:
        found = self._asked(kind, key)
        if found is None:
            return False
        record, pieces = found
        wrong = ""
        try:
            _unpack(record, _Pieces(self._contents(pieces)), directory)
            artefact_kinds.require_whole(Artefact(key, directory, record.manifest))
        except CacheUnreachable as error:
            self._give_up(error)
            wrong = str(error)
        except (WrongEntry, EOFError, zlib.error, gzip.BadGzipFile) as error:
            wrong = str(error)
            self._refuse(kind, key, error)
        if wrong:
            for path in directory.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            return False
        size = sum(piece.size for piece in pieces)
        self._say(f"{kind} {key[:12]} is taken from the cache, {size / 1e6:.1f} MB")
        return True

    def offer(self, artefact: Artefact) -> None:
        kind, key = artefact.manifest.kind, artefact.key
        name = _entry_name(kind, key)
        if name in self._known or (blobs := self._cache()) is None:
            return
        self._known.add(name)
        try:
            if name in self._refused or not blobs.has("ac", name):
                self._add(blobs, name, artefact)
        except CacheUnreachable as error:
            self._give_up(error)
        except WrongEntry as error:
            self._say(f"{kind} {key[:12]} is not put into the cache: {error}")

    def _add(self, blobs: Blobs, name: str, artefact: Artefact) -> None:
        files = artefact.manifest.files
        sizes = {file: (artefact / file).stat().st_size for file in files}
        plain = not any((artefact / file).is_symlink() for file in files)
        if not plain or sum(sizes.values()) > MOST_BYTES:
            return
        record = ArtefactRecord(
            schema=SCHEMA,
            manifest=artefact.manifest,
            sizes=sizes,
            programs=tuple(sorted(file for file in files if os.access(artefact / file, os.X_OK))),
        )
        self._say(f"{artefact.manifest.kind} {artefact.key[:12]} is put into the cache")
        contents = [record.model_dump_json(by_alias=True).encode()]
        listed = [CachedFile(RECORD, hashlib.sha256(contents[0]).hexdigest(), len(contents[0]))]
        blobs.put("cas", listed[0].sha256, contents[0])
        for number, piece in enumerate(_pack(artefact)):
            file = CachedFile(PIECE.format(number), hashlib.sha256(piece).hexdigest(), len(piece))
            blobs.put("cas", file.sha256, piece)
            listed.append(file)
        if len(listed) <= cache.MAX_FILES:
            blobs.put("ac", name, action_result.encode(listed))

    def _asked(self, kind: str, key: str) -> tuple[ArtefactRecord, Sequence[CachedFile]] | None:
        """Return what the cache says of an artefact, and its pieces; None where it has none that can be used."""
        blobs = self._cache()
        if blobs is None:
            return None
        name = _entry_name(kind, key)
        try:
            entry = blobs.get("ac", name)
            if entry is None:
                return None
            files = cache.files_of_entry(entry)
            if RECORD not in files:
                raise WrongEntry(f"it names no {RECORD}")
            with checksummed.readable(Path(RECORD)):
                record = ArtefactRecord.model_validate_json(self._content(files[RECORD]))
            record.require_whole(kind, key)
        except CacheUnreachable as error:
            self._give_up(error)
            return None
        except (WrongEntry, InputError) as error:
            self._refuse(kind, key, error)
            return None
        self._known.add(name)
        return record, [file for path, file in sorted(files.items()) if path != RECORD]

    def _content(self, file: CachedFile) -> bytes:
        """Return the content of a file. Raises WrongEntry where it is lost, or another."""
        blobs = self._cache()
        data = blobs.get("cas", file.sha256) if blobs else None
        if data is None:
            raise WrongEntry(f"{file.path} is not there")
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise WrongEntry(f"{file.path} has another hash than its name says")
        return data

    def _contents(self, pieces: Sequence[CachedFile]) -> Iterator[bytes]:
        yield from map(self._content, pieces)

    def _cache(self) -> Blobs | None:
        """Return the cache; None without one, and where it could not be reached."""
        if self._blobs is None and not self._given_up:
            self._blobs = cache.blobs_of_environment()
            self._given_up = self._blobs is None
        return None if self._given_up else self._blobs

    def _refuse(self, kind: str, key: str, error: Exception) -> None:
        cache_name, entry = self._blobs.name if self._blobs else "", _entry_name(kind, key)
        self._known.discard(entry)
        self._refused.add(entry)
        self._say(f"cache {cache_name}: ac/{entry}, of a {kind}, is not used: {error}")

    def _give_up(self, error: CacheUnreachable) -> None:
        if not self._given_up:
            self._given_up = True
            name = self._blobs.name if self._blobs else ""
            self._say(f"cache {name}: {error}; kernels and images are made here")


def _entry_name(kind: str, key: str) -> str:
    """Return the name below ``ac/`` under which an artefact lies."""
    return key_of({"agelab": "artefact", "schema": SCHEMA, "kind": kind, "key": key})


def _pack(artefact: Artefact) -> Iterator[bytes]:
    """Yield the packed files of an artefact in pieces. Raises WrongEntry for a file that has changed."""
    packer = zlib.compressobj(PACKING, wbits=zlib.MAX_WBITS | 16)
    waiting = bytearray()
    for name, wanted in sorted(artefact.manifest.files.items()):
        digest = hashlib.sha256()
        with (artefact / name).open("rb") as file:
            while data := file.read(_CHUNK):
                digest.update(data)
                waiting += packer.compress(data)
                while len(waiting) >= PIECE_BYTES:
                    yield bytes(waiting[:PIECE_BYTES])
                    del waiting[:PIECE_BYTES]
        if digest.hexdigest() != wanted:
            raise WrongEntry(f"its file {name} has changed")
    yield bytes(waiting + packer.flush())


class _Pieces(io.RawIOBase):
    """Pieces as one file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _unpack(record: ArtefactRecord, packed: io.RawIOBase, directory: Path) -> None:
    """Write the files of an artefact. Raises WrongEntry unless they are those that its manifest names."""
    with gzip.GzipFile(fileobj=io.BufferedReader(packed), mode="rb") as content:
        for name in sorted(record.sizes):
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            left = record.sizes[name]
            with path.open("xb") as file:
                while left:
                    data = content.read(min(left, _CHUNK))
                    if not data:
                        raise WrongEntry(f"it ends within {name}")
                    file.write(data)
                    left -= len(data)
            if name in record.programs:
                path.chmod(0o755)
            if file_hash(path) != record.manifest.files[name]:
                raise WrongEntry(f"its file {name} has another hash than its manifest says")
