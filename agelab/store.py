"""The content-addressed store: what has an identity is built once and never mutated.

An artefact lives in ``store/<kind>/<key>/`` where the key is the hash of its inputs. It is built in a
directory beside it and renamed when complete, so a half-written one can never be taken for finished.
Whoever uses one reads it first, all of it, once in a process: what is damaged is made again.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agelab import atomic, places
from agelab.errors import DISK_ERRNOS, AgelabError, HostError, InputError

MANIFEST = "manifest.json"
PIECE = 1 << 16
"""Bytes that a disk's content is hashed in."""
SPARSE = "sparse:"
"""What the hash of a disk's content begins with."""
NAMED = 3
"""Damaged files to name."""
UNREADABLE = (errno.EIO, errno.EBADMSG, errno.EUCLEAN)
"""What a system says of a file that its disk has lost."""
Inputs = Mapping[str, Any]


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no spaces: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def key_of(value: object) -> str:
    """The sha256 of a JSON value's canonical text, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def file_hash(path: Path) -> str:
    """The sha256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_hash(path: Path) -> str:
    """What tells a disk's content from another's: the sha256 of its size and of each piece that is not zero.

    Before a piece comes its place; numbers are of 8 bytes, the highest first. Of a disk of 300 GB with 5 GB on it,
    5 GB are read; where the host keeps holes, and where zeros, makes no difference.
    """
    digest = hashlib.sha256()
    zeros = bytes(PIECE)
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(size.to_bytes(8, "big"))
        at = 0
        while at < size:
            try:
                data = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # there is a hole from here to the end
            at = max(at, data // PIECE * PIECE)
            piece = os.pread(file.fileno(), PIECE, at)
            if piece != zeros[: len(piece)]:
                digest.update(at.to_bytes(8, "big") + piece)
            at += PIECE
    return SPARSE + digest.hexdigest()


def tree_hashes(root: Path, hashed: Callable[[Path], str] = file_hash) -> dict[str, str]:
    """Path below ``root`` to sha256 of content, for every regular file; a link counts as its target."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = hashed(path)
    return found


class Manifest(BaseModel):
    """What is written beside an artefact: the inputs its key is the hash of, and each file's sha256."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    inputs: dict[str, Any]
    files: dict[str, str] = Field(description="path below the artefact's directory -> sha256")

    @property
    def content(self) -> str:
        """One hash over all the files: equal content, equal hash, however it came to be."""
        return key_of(self.files)


class Damaged(HostError):
    """Something in the store is not what was stored."""


@dataclass(frozen=True)
class Artefact:
    """A finished artefact of the store."""

    key: str
    directory: Path
    manifest: Manifest

    def __truediv__(self, name: str) -> Path:
        return self.directory / name

    def damage(self) -> list[str]:
        """The files that are not what was stored, are gone, or do not belong there; all of them are read."""
        wanted = self.manifest.files
        paths = [path for path in sorted(self.directory.rglob("*")) if path.is_symlink() or not path.is_dir()]
        names = {str(path.relative_to(self.directory)): path for path in paths}
        names.pop(MANIFEST, None)
        both = [name for name in wanted if name in names]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = dict(
                zip(both, pool.map(lambda name: _hash_like(names[name], wanted[name]), both), strict=True)
            )
        return [
            *(f"{self / name} is not there any more" for name in wanted if name not in names),
            *(f"{self / name} is not what was stored" for name in both if found[name] != wanted[name]),
            *(f"{path} does not belong there" for name, path in names.items() if name not in wanted),
        ]


def default_home() -> Path:
    """The directory that AGELAB_HOME names, or where the store is without it (``agelab.places.store``).

    Raises InputError where it hangs on the home directory of a user who has none.
    """
    wanted = os.environ.get("AGELAB_HOME")
    try:
        return Path(wanted).expanduser().absolute() if wanted else places.store()
    except RuntimeError as error:
        raise InputError(
            f"there is no place for the store: {error}", hint="name one: AGELAB_HOME=<directory>"
        ) from error


class Store:
    """The artefacts, runs and caches below one directory (``AGELAB_HOME``).

    ``answers`` are what questions stand for here (``agelab.debian.cached_resolution``) in place of what is remembered:
    the key of each question to its answer. ``say`` hears of what is damaged and is made again.
    """

    def __init__(
        self,
        home: Path,
        say: Callable[[str], None] = lambda line: None,
        *,
        answers: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.home = home.absolute()
        self.answers = answers
        self.root = self.home / "store"
        self.say = say
        self._read: set[Path] = set()

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    @property
    def bisects(self) -> Path:
        return self.home / "bisects"

    def cache(self, name: str) -> Path:
        """A directory for what may be lost at any time (downloads, package lists)."""
        directory = self.home / "cache" / name
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def find(self, kind: str, key: str) -> Artefact | None:
        """The finished artefact of that key, or None. Raises Damaged where its manifest is not what was stored."""
        directory = self.root / kind / key
        try:
            manifest = Manifest.model_validate_json((directory / MANIFEST).read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            manifest = None
        if manifest is None or manifest.kind != kind or key_of({"kind": kind, **manifest.inputs}) != key:
            raise Damaged(
                f"the store's {directory / MANIFEST} is damaged",
                hint=f"remove {directory} to have it made again",
            )
        return Artefact(key, directory, manifest)

    def all(self, kind: str) -> list[Artefact]:
        """Every finished artefact of a kind whose manifest can be read, oldest first."""
        found = []
        manifests = (self.root / kind).glob(f"[!.]*/{MANIFEST}")
        for path in sorted(manifests, key=lambda path: path.stat().st_mtime):
            with suppress(Damaged):
                found.append(self.find(kind, path.parent.name))
        return [artefact for artefact in found if artefact]

    def unreadable(self, kind: str) -> list[Path]:
        """The directories of those whose manifest is damaged."""
        listed = {artefact.directory for artefact in self.all(kind)}
        return sorted({path.parent for path in (self.root / kind).glob(f"[!.]*/{MANIFEST}")} - listed)

    def obtain(
        self,
        kind: str,
        inputs: Inputs,
        build: Callable[[Path], None],
        hashed: Callable[[Path], str] = file_hash,
        *,
        used: bool = True,
    ) -> Artefact:
        """The artefact of these inputs; ``build`` fills a new directory with it if it is not there yet, or damaged.

        ``hashed`` makes what the manifest says of each file. What is not to be ``used`` now is not read: its
        identity is all that is asked for.

        Concurrent callers of one key wait for the first: the work is done once.
        Raises HostError when the disk is full or not writable.
        """
        key = key_of({"kind": kind, **inputs})
        if found := self._sound(kind, key, used):
            return found
        with _disk_errors(self.root), self.lock(f"{kind}-{key}"):
            if found := self._sound(kind, key, used, self.say):
                return found
            directory = self.root / kind / key
            with atomic.directory(directory.with_name(f".{key}{atomic.SUFFIX}")) as partial:
                build(partial)
                manifest = Manifest(kind=kind, inputs=dict(inputs), files=tree_hashes(partial, hashed))
                (partial / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
                os.sync()
                # Whoever left it there without a manifest, or damaged: renaming wants it gone.
                shutil.rmtree(directory, ignore_errors=True)
                partial.rename(directory)
        made = self.find(kind, key)
        if made is None:
            raise AgelabError(f"{directory} vanished while it was being made")
        self._read.add(made.directory)
        return made

    def _sound(
        self, kind: str, key: str, used: bool, say: Callable[[str], None] = lambda line: None
    ) -> Artefact | None:
        """The finished artefact of that key; None where there is none, or a damaged one, of which ``say`` hears."""
        try:
            found = self.find(kind, key)
            if found and used and found.directory not in self._read:
                if wrong := found.damage():
                    more = f", and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
                    raise Damaged(
                        f"the store's {kind} {key[:12]} is damaged: {', '.join(wrong[:NAMED])}{more}"
                    )
                self._read.add(found.directory)
        except Damaged as damaged:
            say(f"{damaged}: it is made again")
            return None
        return found

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of that name, waiting for whoever has it (another process, say)."""
        path = self.home / "locks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _hash_like(path: Path, recorded: str) -> str | None:
    """The hash of a file, of the kind that was recorded; None where its disk has lost it."""
    try:
        if path.is_symlink():
            return f"-> {path.readlink()}"
        if not path.is_file():
            return None
        return content_hash(path) if recorded.startswith(SPARSE) else file_hash(path)
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        return None


@contextmanager
def _disk_errors(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_ERRNOS:
            raise
        raise HostError(
            f"cannot make it below {where}: {error}",
            hint="free some space, or move the store with AGELAB_HOME=<directory>",
        ) from error
