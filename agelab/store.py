"""The content-addressed store: what has an identity is built once and never mutated.

An artefact lives in ``store/<kind>/<key>/`` where the key is the hash of its inputs. It is built in a
directory beside it and renamed when complete, so a half-written one can never be taken for finished.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agelab.errors import DISK_ERRNOS, AgelabError, HostError

MANIFEST = "manifest.json"
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


@dataclass(frozen=True)
class Artefact:
    """A finished artefact of the store."""

    key: str
    directory: Path
    manifest: Manifest

    def __truediv__(self, name: str) -> Path:
        return self.directory / name


class Store:
    """The artefacts, runs and caches below one directory (``AGELAB_HOME``).

    ``answers`` are what questions stand for here (``agelab.debian.remember``) in place of what is remembered: the
    key of each question to its answer.
    """

    def __init__(self, home: Path, answers: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.home = home.absolute()
        self.answers = answers
        self.root = self.home / "store"

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
        """The finished artefact of that key, or None."""
        directory = self.root / kind / key
        try:
            manifest = Manifest.model_validate_json((directory / MANIFEST).read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise HostError(
                f"the store's {directory / MANIFEST} is damaged",
                hint=f"remove {directory} to have it made again",
            ) from error
        return Artefact(key, directory, manifest)

    def all(self, kind: str) -> list[Artefact]:
        """Every finished artefact of a kind, oldest first."""
        manifests = sorted(
            (self.root / kind).glob(f"[!.]*/{MANIFEST}"), key=lambda path: path.stat().st_mtime
        )
        found = (self.find(kind, path.parent.name) for path in manifests)
        return [artefact for artefact in found if artefact]

    def obtain(
        self,
        kind: str,
        inputs: Inputs,
        build: Callable[[Path], None],
        hashed: Callable[[Path], str] = file_hash,
    ) -> Artefact:
        """The artefact of these inputs; ``build`` fills a new directory with it if it is not there yet.

        ``hashed`` makes what the manifest says of each file.

        Concurrent callers of one key wait for the first: the work is done once.
        Raises HostError when the disk is full or not writable.
        """
        key = key_of({"kind": kind, **inputs})
        if found := self.find(kind, key):
            return found
        with _disk_errors(self.root), self.lock(f"{kind}-{key}"):
            if found := self.find(kind, key):
                return found
            directory = self.root / kind / key
            partial = directory.with_name(f".{key}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            try:
                build(partial)
                manifest = Manifest(kind=kind, inputs=dict(inputs), files=tree_hashes(partial, hashed))
                (partial / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
                os.sync()
                # Without a manifest it is not finished, whoever left it there; renaming wants it gone.
                shutil.rmtree(directory, ignore_errors=True)
                partial.rename(directory)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        made = self.find(kind, key)
        if made is None:
            raise AgelabError(f"{directory} vanished while it was being made")
        return made

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of that name, waiting for whoever has it (another process, say)."""
        path = self.home / "locks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


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
