"""The content-addressed store: each artefact is built once and never changed.

An artefact lives in ``store/<kind>/<key>/`` where the key is the hash of its inputs. It is built in a
directory beside it and renamed when complete, so a half-written one can never be taken for finished.
Before a process first uses an artefact it is read in full, unless it is known to be intact
(agelab.store.known_intact); a damaged one is built again.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agelab.base import atomic, fileio, readers
from agelab.base.errors import AgelabError, HostError, InputError, naming_disk_errors
from agelab.base.hashing import key_of
from agelab.store.known_intact import FileState, is_remembered, remember

MANIFEST = "manifest.json"
HASH_BLOCK = 1 << 16
"""Bytes of each block in which a disk's content is hashed."""
SPARSE_PREFIX = "sparse:"
"""Prefix of a hash that ``content_hash`` made."""
MAX_NAMED = 3
"""Damaged files that an error names."""
LOST_ERRNOS = (errno.EIO, errno.EBADMSG, errno.EUCLEAN)
"""Errors from reading a file whose data its disk has lost."""
Inputs = Mapping[str, Any]


def artefact_key(kind: str, inputs: Inputs) -> str:
    """Return the key of the artefact of these inputs, which need not be there."""
    return key_of({"kind": kind, **inputs})


def file_hash(path: Path, most: int | None = None) -> str:
    """Return the sha256 of the content of a file of at most so many bytes, in hex."""
    with fileio.opened(path, most) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_unchanged(path: Path, sha256: str) -> None:
    """Raise InputError for a file that is not what it was when a key was made of its hash: read it, then ask."""
    if file_hash(path) != sha256:
        raise InputError(f"{path} changed while it was being read", hint="run it again when nobody writes to it")


def content_hash(path: Path, size: int | None = None) -> str:
    """Hash a disk image, or its first ``size`` bytes: the sha256 of the size and of each block that is not all zeros.

    Each block is preceded by its offset; numbers are 8 bytes, big-endian. Holes are skipped, so 5 GB are read of a
    300 GB disk that holds 5 GB. Holes and zeros give the same hash.
    """
    digest = hashlib.sha256()
    zeros = bytes(HASH_BLOCK)
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size if size is None else size
        digest.update(size.to_bytes(8, "big"))
        at = 0
        while at < size:
            try:
                data = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # there is a hole from here to the end
            at = max(at, data // HASH_BLOCK * HASH_BLOCK)
            piece = os.pread(file.fileno(), min(HASH_BLOCK, size - at), at)
            if piece != zeros[: len(piece)]:
                digest.update(at.to_bytes(8, "big") + piece)
            at += HASH_BLOCK
    return SPARSE_PREFIX + digest.hexdigest()


def tree_hashes(root: Path, hash_file: Callable[[Path], str] = file_hash) -> dict[str, str]:
    """Map the path below ``root`` of every regular file to its hash, and of every symbolic link to its target."""
    hashes: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            hashes[name] = f"-> {fileio.link_text(path)}"
        elif path.is_file():
            hashes[name] = hash_file(path)
    return hashes


class Manifest(BaseModel):
    """The file ``manifest.json`` of an artefact: the inputs that make its key, and the hash of each of its files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    inputs: dict[str, Any]
    files: dict[str, str] = Field(description="path below the artefact's directory -> sha256")

    @property
    def content(self) -> str:
        """One hash over all files: equal content has equal hashes, whatever the inputs were."""
        return key_of(self.files)


class DamagedArtefact(HostError):
    """An artefact in the store differs from what was stored."""


def damaged(what: str, directory: Path, details: str = "") -> DamagedArtefact:
    """Return the error for a damaged artefact, which is made again when its directory has been removed."""
    return DamagedArtefact(
        f"{what} is damaged" + (f": {details}" if details else ""), hint=f"remove {directory} to have it made again"
    )


@dataclass(frozen=True)
class Artefact:
    """A finished artefact of the store."""

    key: str
    directory: Path
    manifest: Manifest

    def __truediv__(self, name: str) -> Path:
        return self.directory / name

    @property
    def readable_by(self) -> int:
        """Its readers (agelab.base.fileio)."""
        return readers.of_made(self.directory)

    def damage(self) -> list[str]:
        """Read every file and describe each that is changed, missing or not listed in the manifest."""
        listed = self.manifest.files
        paths = [path for path in sorted(self.directory.rglob("*")) if path.is_symlink() or not path.is_dir()]
        names = {str(path.relative_to(self.directory)): path for path in paths}
        names.pop(MANIFEST, None)
        both = [name for name in listed if name in names]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            hashes = dict(zip(both, pool.map(lambda name: _hash_like(names[name], listed[name]), both), strict=True))
        return [
            *(f"{self / name} is missing" for name in listed if name not in names),
            *(f"{self / name} has changed" for name in both if hashes[name] != listed[name]),
            *(f"{path} does not belong there" for name, path in names.items() if name not in listed),
        ]


class SharedArtefacts(Protocol):
    """Artefacts that machines share, by kind and key: they are found there before they are made."""

    def manifest(self, kind: str, key: str) -> Manifest | None:
        """Return what an artefact there says that it holds."""

    def fill(self, kind: str, key: str, directory: Path) -> bool:
        """Put the files of an artefact into an empty directory; return False, and leave it empty, without one."""

    def offer(self, artefact: Artefact) -> None:
        """Add an intact artefact, unless there is one of its key."""


class Store:
    """The artefacts, runs and caches below one directory (``AGELAB_HOME``).

    ``resolutions`` fixes what package questions resolve to (``agelab.debian.cached_resolution``): the key of a question
    to its answer. ``shared`` are artefacts of other machines. ``apart`` says of kinds of artefacts that they are kept
    below another directory. ``warn`` is called with a line about each damaged artefact that is made again.
    """

    def __init__(
        self,
        home: Path,
        warn: Callable[[str], None] = lambda line: None,
        *,
        resolutions: Mapping[str, Any] = MappingProxyType({}),
        shared: SharedArtefacts | None = None,
        apart: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.home = home.absolute()
        self.resolutions = resolutions
        self.shared = shared
        self.root = self.home / "store"
        self.apart = apart
        self.warn = warn
        self._verified: set[Path] = set()
        self._read: set[Path] = set()
        """Artefacts that this object has read in full, or made."""
        self._claimed: set[Path] = set()
        self._records: list[dict[str, Any]] = []

    @contextmanager
    def recording(self) -> Iterator[dict[str, Any]]:
        """Yield what package questions are answered while the body runs: the key of each to its answer."""
        answers: dict[str, Any] = {}
        self._records.append(answers)
        try:
            yield answers
        finally:
            self._records = [record for record in self._records if record is not answers]

    def record(self, key: str, answer: Any) -> None:
        """Record the answer to a package question."""
        for answers in self._records:
            answers[key] = answer

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    @property
    def bisects(self) -> Path:
        return self.home / "bisects"

    @property
    def crashes(self) -> Path:
        return self.home / "crashes"

    def _below(self, kind: str) -> Path:
        return self.apart.get(kind, self.root) / kind

    def cache(self, name: str) -> Path:
        """Return a directory for data that can be fetched or made again (downloads, package lists).

        ``agelab store prune`` removes nothing from it while this object lives.
        """
        directory = self.home / "cache" / name
        directory.mkdir(parents=True, exist_ok=True)
        self._claim(directory, directory)
        return directory

    def _claim(self, directory: Path, lock: Path) -> bool:
        """Record a use by the directory's mtime, and lock it against pruning for as long as this object lives.

        Returns False when it has just been removed.
        """
        if directory in self._claimed:
            return True
        try:
            descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if not os.fstat(descriptor).st_nlink:
            os.close(descriptor)
            return False
        weakref.finalize(self, os.close, descriptor)
        self._claimed.add(directory)
        with suppress(OSError):  # somebody else's store can be read, too
            os.utime(directory)
        return True

    def find(self, kind: str, key: str) -> Artefact | None:
        """Return the finished artefact of that key, or None. Raises DamagedArtefact when its manifest is damaged."""
        directory = self._below(kind) / key
        try:
            manifest = Manifest.model_validate_json(fileio.read_bytes(directory / MANIFEST))
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise HostError(
                f"the store's {directory} belongs to another user, who keeps it closed",
                hint="use a store of your own: AGELAB_HOME=<directory>",
            ) from error
        except ValidationError:
            manifest = None
        if manifest is None or manifest.kind != kind or artefact_key(kind, manifest.inputs) != key:
            raise damaged(f"the store's {directory / MANIFEST}", directory)
        return Artefact(key, directory, manifest)

    def all(self, kind: str) -> list[Artefact]:
        """List the finished artefacts of a kind whose manifests can be read, oldest first."""
        artefacts = []
        manifests = self._below(kind).glob(f"[!.]*/{MANIFEST}")
        for path in sorted(manifests, key=lambda path: path.stat().st_mtime):
            with suppress(DamagedArtefact):
                artefacts.append(self.find(kind, path.parent.name))
        return [artefact for artefact in artefacts if artefact]

    def unreadable(self, kind: str) -> list[Path]:
        """List the directories of a kind whose manifests are damaged."""
        listed = {artefact.directory for artefact in self.all(kind)}
        return sorted({path.parent for path in self._below(kind).glob(f"[!.]*/{MANIFEST}")} - listed)

    def obtain(
        self,
        kind: str,
        inputs: Inputs,
        build: Callable[[Path], None],
        hash_file: Callable[[Path], str] = file_hash,
        *,
        verify: bool = True,
        claim: bool = True,
        readable_by: int = readers.EVERYBODY,
        shared: bool = False,
    ) -> Artefact:
        """Return the artefact of these inputs, calling ``build`` to fill a directory if it is missing or damaged.

        ``hash_file`` makes the manifest's hash of each file. Without ``verify`` the files are not read: for callers
        that need only the artefact's identity. With ``claim`` it is not pruned while this object lives.
        ``readable_by`` are its readers: it is taken from all others, also where it was there already. ``shared`` says
        that it may come from other machines, and go to them, since nothing of it is run on the host.

        Concurrent callers of one key wait for the first: the work is done once.
        Raises HostError when the disk is full or not writable.
        """
        key = artefact_key(kind, inputs)
        if artefact := self._find_intact(kind, key, verify, claim):
            return self._offered(_kept(artefact, readable_by), shared and verify)
        with naming_disk_errors(self.root), self.lock(f"{kind}-{key}"):
            if artefact := self._find_intact(kind, key, verify, claim, self.warn):
                return self._offered(_kept(artefact, readable_by), shared and verify)
            directory = self._below(kind) / key
            self._claimed.discard(directory)
            with atomic.locked_directory(directory.with_name(f".{key}{atomic.SUFFIX}")) as partial:
                readers.restrict(partial, readable_by)
                if not (shared and self.shared and self.shared.fill(kind, key, partial)):
                    build(partial)
                manifest = Manifest(kind=kind, inputs=dict(inputs), files=tree_hashes(partial, hash_file))
                (partial / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
                readers.restrict_tree(partial, readable_by)
                os.sync()
                # Left without a manifest, or damaged: rename needs the name free.
                shutil.rmtree(directory, ignore_errors=True)
                partial.rename(directory)
            made = self.find(kind, key)
            if made and claim:
                self._claim(made.directory, made / MANIFEST)
        if made is None:
            raise AgelabError(f"{directory} vanished while it was being built")
        self._verified.add(made.directory)
        self._read.add(made.directory)
        return self._offered(made, shared)

    def identity(self, kind: str, inputs: Inputs) -> Manifest | None:
        """Return the manifest of the artefact of these inputs, from here or from other machines; None without one."""
        key = artefact_key(kind, inputs)
        if artefact := self._find_intact(kind, key, verify=False, claim=True):
            return artefact.manifest
        return self.shared.manifest(kind, key) if self.shared else None

    def _offered(self, artefact: Artefact, shared: bool) -> Artefact:
        """Return an artefact, which other machines are offered where it is to be shared and everybody may read it."""
        if shared and self.shared and artefact.readable_by == readers.EVERYBODY:
            self.shared.offer(artefact)
        return artefact

    def discard(self, artefact: Artefact) -> None:
        """Remove an artefact that turned out to be of no use, so that ``obtain`` makes it again."""
        with self.lock(f"{artefact.manifest.kind}-{artefact.key}"):
            self._verified.discard(artefact.directory)
            self._read.discard(artefact.directory)
            self._claimed.discard(artefact.directory)
            shutil.rmtree(artefact.directory, ignore_errors=True)

    def read(self, directories: Iterable[Path], *, again: bool = False) -> None:
        """Read in full the artefacts of the store that lie in these directories, whatever is remembered of them.

        Those that this object has read or made are read only if ``again``. Raises DamagedArtefact for one that is no
        longer as it was stored; whoever wants it next makes it anew.
        """
        for directory in directories:
            if self.root not in directory.parents or (directory in self._read and not again):
                continue
            if artefact := self.find(directory.parent.name, directory.name):
                self._require_read(artefact)

    def _find_intact(
        self, kind: str, key: str, verify: bool, claim: bool, warn: Callable[[str], None] = lambda line: None
    ) -> Artefact | None:
        """Return the finished artefact of that key; None when there is none or, after a warning, when it is damaged.

        It is claimed before it is read, so that nobody prunes it meanwhile.
        """
        try:
            artefact = self.find(kind, key)
            if artefact and claim and not self._claim(artefact.directory, artefact / MANIFEST):
                return None
            if artefact and verify and artefact.directory not in self._verified:
                self._require_intact(artefact)
                self._verified.add(artefact.directory)
        except DamagedArtefact as error:
            warn(f"{error}: it is made again")
            return None
        return artefact

    def _require_intact(self, artefact: Artefact) -> None:
        """Read every file, unless they are known to be intact. Raises DamagedArtefact."""
        if not is_remembered(self._record(artefact), FileState.of(artefact.directory)):
            self._require_read(artefact)

    def _require_read(self, artefact: Artefact) -> None:
        """Read every file, and remember whether all are intact. Raises DamagedArtefact."""
        record, state = self._record(artefact), FileState.of(artefact.directory)
        if wrong := artefact.damage():
            record.unlink(missing_ok=True)
            more = f", and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
            raise DamagedArtefact(
                f"the store's {artefact.manifest.kind} {artefact.key[:12]} is damaged: "
                f"{', '.join(wrong[:MAX_NAMED])}{more}",
                hint="run the command again: agelab makes again what is damaged",
            )
        remember(record, state)
        self._read.add(artefact.directory)

    def _record(self, artefact: Artefact) -> Path:
        """Return the file that remembers that an artefact was intact."""
        return self.home / "cache" / "intact" / f"{artefact.manifest.kind}-{artefact.key}.json"

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of that name for as long as the body runs, waiting for any other holder."""
        path = self.home / "locks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _kept(artefact: Artefact, readable_by: int) -> Artefact:
    """Take an artefact from all who are not among the readers; in another user's store that is not ours to do."""
    if artefact.readable_by & ~readable_by:
        with suppress(PermissionError):
            readers.restrict_tree(artefact.directory, readable_by)
    return artefact


def _hash_like(path: Path, recorded: str) -> str | None:
    """Hash a file in the way its recorded hash was made; None when its disk cannot return the data."""
    try:
        if path.is_symlink():
            return f"-> {fileio.link_text(path)}"
        if not path.is_file():
            return None
        return content_hash(path) if recorded.startswith(SPARSE_PREFIX) else file_hash(path)
    except OSError as error:
        if error.errno not in LOST_ERRNOS:
            raise
        return None
