"""Artefacts that machines share through the cache (AGELAB_CACHE): kernels, roots, images, modules, tools, corpora.

The manifest of such a parcel (agelab.store.parcel) says what the artefact holds; its files are those of the artefact,
one behind the other in the order of their names, packed and cut into pieces.

Right hashes say that the files are those that somebody has packed, not that they are a kernel or a corpus: so what an
artefact of each kind must hold is read before any of it gets into a store.
"""

import gzip
import hashlib
import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile

from pydantic import Field

from agelab.base.errors import AgelabError, Notify
from agelab.base.hashing import key_of
from agelab.base.types import Frozen
from agelab.data.corpus import artefact as corpora
from agelab.data.history import artefact as histories
from agelab.kernel import Modules, elf
from agelab.kernel.elf import canonical_name
from agelab.kernel.modules import BUILTIN, CONFIG, INDEX
from agelab.machine.image import root as roots
from agelab.machine.image import sealed_image
from agelab.results import checksummed
from agelab.runner.reuse import cache
from agelab.runner.reuse.cache import SharedCache
from agelab.store import parcel
from agelab.store.artefacts import MANIFEST, Artefact, Manifest, artefact_key, file_hash
from agelab.store.parcel import PackedFile, Parcel, Place, Refused

SCHEMA = 2
PIECE = "files-{:04d}"
PIECE_BYTES = 8 << 20
"""Bytes of a piece: a slow link, too, brings it in the time of one request."""
MAX_PIECES = 1000
MOST_BYTES = 4 << 30
"""Bytes of an artefact's files at most."""
PACKING = 1
"""Level of packing: a higher one takes longer than most links save by it."""
MAX_NAME = 200
"""Characters of a file's path at most."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~@:-]*(/[A-Za-z0-9_][A-Za-z0-9._+~@:-]*)*", re.ASCII)
_CHUNK = 1 << 20


class ArtefactRecord(Frozen):
    """The manifest of an artefact's parcel."""

    manifest: Manifest
    sizes: dict[str, int] = Field(description="bytes of each file of the manifest")
    programs: tuple[str, ...] = Field(default=(), description="files that may be executed")

    def require_whole(self, kind: str, key: str) -> None:
        """Raise Refused unless it is of that kind and key, and names plain files within an artefact."""
        made = self.manifest
        if made.kind != kind or artefact_key(kind, made.inputs) != key:
            raise Refused("it is of another key")
        if set(self.sizes) != set(made.files) or not set(self.programs) <= set(made.files):
            raise Refused("its list of files is not that of its manifest")
        if min(self.sizes.values(), default=0) < 0 or sum(self.sizes.values()) > MOST_BYTES:
            raise Refused(f"it has more than {MOST_BYTES >> 30} GiB")
        above = {str(parent) for name in self.sizes for parent in PurePosixPath(name).parents}
        for name in self.sizes:
            if not _NAME.fullmatch(name) or name == MANIFEST or name in above or len(name) > MAX_NAME:
                raise Refused(f"it names the file {name[:40]!r}")


class CachedArtefacts:
    """Finds artefacts in the cache, and adds to it.

    What a parcel holds must have the hashes that it says, and say the inputs of its key; one that does not is told, and
    the artefact is made here.
    """

    def __init__(self, say: Notify, place: Place | None = None) -> None:
        """``place`` is the cache, by default that of the environment when it is first needed."""
        self._say = say
        self._place = place
        self._known: set[str] = set()

    def manifest(self, kind: str, key: str) -> Manifest | None:
        parcel = self._parcel(kind, key)
        return parcel.manifest.manifest if parcel else None

    def fill(self, kind: str, key: str, directory: Path) -> bool:
        parcel, shared = self._parcel(kind, key), self._cache
        if parcel is None or shared is None:
            return False
        with shared.reading(_entry_name(kind, key), f", of a {kind},"):
            pieces = (parcel.read(name, shared.place) for name in sorted(parcel.files))
            try:
                _unpack(parcel.manifest, pieces, directory)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise Refused(str(error)) from error
            require_whole(Artefact(key, directory, parcel.manifest.manifest))
            size = sum(file.size for file in parcel.files.values())
            self._say(f"{kind} {key[:12]} is taken from the cache, {size / 1e6:.1f} MB")
            return True
        self._known.discard(_entry_name(kind, key))
        for path in directory.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return False

    def offer(self, artefact: Artefact) -> None:
        kind, key = artefact.manifest.kind, artefact.key
        name, shared = _entry_name(kind, key), self._cache
        if name in self._known or shared is None:
            return
        self._known.add(name)
        try:
            with shared.asking():
                if not shared.has(name):
                    self._add(shared.place, name, artefact)
        except (Refused, OSError) as error:
            self._say(f"{kind} {key[:12]} is not put into the cache: {error}")

    def _add(self, place: Place, name: str, artefact: Artefact) -> None:
        files = artefact.manifest.files
        sizes = {file: (artefact / file).stat().st_size for file in files}
        plain = not any((artefact / file).is_symlink() for file in files)
        if not plain or sum(sizes.values()) > MOST_BYTES:
            return
        record = ArtefactRecord(
            manifest=artefact.manifest,
            sizes=sizes,
            programs=tuple(sorted(file for file in files if os.access(artefact / file, os.X_OK))),
        )
        self._say(f"{artefact.manifest.kind} {artefact.key[:12]} is put into the cache")
        pieces: dict[str, PackedFile] = {}
        for number, piece in enumerate(_pack(artefact)):
            file = pieces[PIECE.format(number)] = PackedFile.of(piece)
            place.put("cas", file.sha256, piece)
        if len(pieces) <= MAX_PIECES:
            place.put("ac", name, Parcel[ArtefactRecord](manifest=record, files=pieces).listed())

    def _parcel(self, kind: str, key: str) -> Parcel[ArtefactRecord] | None:
        """Return the parcel of an artefact; None where there is none that can be used."""
        if (shared := self._cache) is None:
            return None
        name = _entry_name(kind, key)
        with shared.reading(name, f", of a {kind},"):
            line = shared.place.get("ac", name)
            if line is None:
                return None
            record = parcel.parse(line, Parcel[ArtefactRecord])
            record.manifest.require_whole(kind, key)
            record.require_size(MOST_BYTES, MAX_PIECES)
            self._known.add(name)
            return record
        return None

    @cached_property
    def _opened(self) -> SharedCache | None:
        place = self._place or cache.of_environment()
        return SharedCache(place, self._say, "kernels and images are made here") if place else None

    @property
    def _cache(self) -> SharedCache | None:
        """Return the cache; None without one, and where it could not be reached."""
        return self._opened if self._opened and not self._opened.given_up else None


def _entry_name(kind: str, key: str) -> str:
    """Return the name below ``ac/`` under which an artefact lies."""
    return key_of({"agelab": "artefact", "schema": SCHEMA, "kind": kind, "key": key})


def _pack(artefact: Artefact) -> Iterator[bytes]:
    """Yield the packed files of an artefact in pieces. Raises Refused for a file that has changed."""
    with TemporaryFile(dir=artefact.directory.parent) as packed:
        with gzip.GzipFile("", "wb", PACKING, packed, mtime=0) as content:
            for name, sha256 in sorted(artefact.manifest.files.items()):
                digest = hashlib.sha256()
                with (artefact / name).open("rb") as file:
                    while data := file.read(_CHUNK):
                        digest.update(data)
                        content.write(data)
                if digest.hexdigest() != sha256:
                    raise Refused(f"its file {name} has changed")
        packed.seek(0)
        while piece := packed.read(PIECE_BYTES):
            yield piece


def _unpack(record: ArtefactRecord, pieces: Iterable[bytes], directory: Path) -> None:
    """Write the files of an artefact. Raises Refused unless they are those that its manifest names."""
    with TemporaryFile(dir=directory) as packed:
        packed.writelines(pieces)
        packed.seek(0)
        with gzip.GzipFile(fileobj=packed) as content:
            for name in sorted(record.sizes):
                _write(record, name, content, directory / name)


def _write(record: ArtefactRecord, name: str, content: gzip.GzipFile, path: Path) -> None:
    """Write a file of an artefact, which begins where ``content`` is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    left = record.sizes[name]
    with path.open("xb") as file:
        while left:
            data = content.read(min(left, _CHUNK))
            if not data:
                raise Refused(f"it ends within {name}")
            file.write(data)
            left -= len(data)
    if name in record.programs:
        path.chmod(0o755)
    if file_hash(path) != record.manifest.files[name]:
        raise Refused(f"its file {name} has another hash than its manifest says")


def require_whole(artefact: Artefact) -> None:
    """Raise Refused unless an artefact holds what its kind must, in a form that can be read."""
    kind = artefact.manifest.kind
    if kind not in _KINDS:
        raise Refused(f"a {kind} is never taken from another machine")
    try:
        with checksummed.readable(artefact.directory):
            _KINDS[kind](artefact)
    except (AgelabError, struct.error) as error:
        raise Refused(f"it is no {kind}: {error}") from error


def _names(artefact: Artefact, *names: str) -> None:
    for name in names:
        if name not in artefact.manifest.files:
            raise Refused(f"it has no {name}")


def _kernel(artefact: Artefact) -> None:
    _names(artefact, "vmlinuz", CONFIG, INDEX, BUILTIN)
    modules = Modules.of("", artefact.directory)
    _names(artefact, *(info.path for info in modules.infos))
    for info in modules.infos:
        if info.name != canonical_name(PurePosixPath(info.path).name.partition(".")[0]):
            raise Refused(f"its module {info.path} is named {info.name[:40]!r}")
    for module in modules.closure([info.name for info in modules.infos]):
        module.read()


def _root(artefact: Artefact) -> None:
    _names(artefact, roots.ROOT_FILE)


def _image(artefact: Artefact) -> None:
    sealed_image.describe(artefact)
    _names(artefact, "vmlinuz")


def _drive(artefact: Artefact) -> None:
    [module] = artefact.manifest.files
    elf.read_module(artefact / module, module)
    if PurePosixPath(module).suffix != ".ko":
        raise Refused(f"{module} is no module")


def _tools(artefact: Artefact) -> None:
    sources = map(PurePosixPath, artefact.manifest.inputs["sources"])
    _names(artefact, *(path.stem for path in sources if path.suffix == ".c"))


def _corpus(artefact: Artefact) -> None:
    _names(artefact, corpora.IMAGE_FILE)
    corpus = corpora.load(artefact)
    if artefact.manifest.inputs.get("source") == "history":
        histories.read_report(corpus)


_KINDS: Mapping[str, Callable[[Artefact], None]] = {
    "kernel": _kernel,
    "root": _root,
    "image": _image,
    "drive": _drive,
    "tools": _tools,
    "corpus": _corpus,
}
