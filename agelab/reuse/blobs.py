"""What a cache keeps, under one hash each: the files of cells, and which files a cell has."""

import os
from pathlib import Path
from typing import Literal, Protocol

from agelab import atomic, fileio
from agelab.errors import AgelabError, InputError

Kind = Literal["ac", "cas"]
"""``cas`` has content by its own sha256, ``ac`` what belongs to a key."""
MAX_BLOB = fileio.RECORD
"""Bytes of anything in a cache at most."""


class CacheUnreachable(AgelabError):
    """The cache as a whole cannot be used now."""


class WrongEntry(AgelabError):
    """What a cache holds under a name cannot be what belongs there."""


class Blobs(Protocol):
    """A cache: nothing in it is changed once it is there. All of these raise CacheUnreachable."""

    name: str
    """Its address, without a password."""

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        """Return what lies there, which may be anything, or None. Raises WrongEntry for what is not even read."""

    def has(self, kind: Kind, sha256: str) -> bool:
        """Return whether anything lies there."""

    def put(self, kind: Kind, sha256: str, content: bytes) -> None:
        """Put content where there is none."""


class DirectoryBlobs:
    """A directory, laid out as Bazel's ``--disk_cache``: ``ac/ab/abcd...``, ``cas/12/1234...``."""

    def __init__(self, directory: Path) -> None:
        """Raises InputError where it is not there: it may be a share that is not mounted."""
        if not directory.is_dir():
            raise InputError(
                f"AGELAB_CACHE: {directory} is no directory", hint="make it, or mount what it stands for"
            )
        self._directory = directory.absolute()
        self.name = str(directory)

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        try:
            return fileio.read_bytes(self._place(kind, sha256), MAX_BLOB)
        except FileNotFoundError:
            return None
        except fileio.RefusedFile as error:
            raise WrongEntry(f"{error.filename}: {error.strerror}") from error
        except OSError as error:
            raise self._unreachable(error) from error

    def has(self, kind: Kind, sha256: str) -> bool:
        return self._place(kind, sha256).exists()

    def put(self, kind: Kind, sha256: str, content: bytes) -> None:
        place = self._place(kind, sha256)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                atomic.write(place, content)
        except OSError as error:
            raise self._unreachable(error) from error

    def _place(self, kind: Kind, sha256: str) -> Path:
        return self._directory / kind / sha256[:2] / sha256

    def _unreachable(self, error: OSError) -> CacheUnreachable:
        return CacheUnreachable(error.strerror or os.strerror(error.errno or 0))
