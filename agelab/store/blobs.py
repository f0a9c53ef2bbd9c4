"""What a cache keeps, under one hash each: the files of cells, and which files a cell has."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, Protocol

from agelab.base import atomic, fileio
from agelab.base.errors import AgelabError, InputError

Kind = Literal["ac", "cas"]
"""``cas`` has content by its own sha256, ``ac`` what belongs to a key."""
MAX_BLOB = fileio.RECORD
"""Bytes of anything in a cache at most."""
_HELD = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
    """A directory without links, laid out as Bazel's ``--disk_cache``: ``ac/ab/abcd...``, ``cas/12/1234...``."""

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
            with self._held(kind, sha256) as directory:
                return fileio.read_bytes(directory / sha256, MAX_BLOB, link=False)
        except FileNotFoundError:
            return None
        except fileio.RefusedFile as error:
            raise WrongEntry(f"{self._directory / kind / sha256[:2] / sha256}: {error.strerror}") from error
        except OSError as error:
            raise self._unreachable(error) from error

    def has(self, kind: Kind, sha256: str) -> bool:
        try:
            with self._held(kind, sha256) as directory:
                return os.path.lexists(directory / sha256)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unreachable(error) from error

    def put(self, kind: Kind, sha256: str, content: bytes) -> None:
        try:
            with self._held(kind, sha256, make=True) as directory:
                if not os.path.lexists(directory / sha256):
                    atomic.write(directory / sha256, content)
        except OSError as error:
            raise self._unreachable(error) from error

    @contextmanager
    def _held(self, kind: Kind, sha256: str, *, make: bool = False) -> Iterator[Path]:
        """Open the directory of a blob, and yield a path that leads there whatever happens to its name.

        Nothing below the cache's own directory is followed if it is a link: others may write there.
        """
        with ExitStack() as opened:
            place = self._directory
            for name in ("", kind, sha256[:2]):
                if make and name:
                    (place / name).mkdir(exist_ok=True)
                descriptor = os.open(place / name, _HELD if name else _HELD & ~os.O_NOFOLLOW)
                opened.callback(os.close, descriptor)
                place = Path(f"/proc/self/fd/{descriptor}")
            yield place

    def _unreachable(self, error: OSError) -> CacheUnreachable:
        why = error.strerror or os.strerror(error.errno or 0)
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EEXIST):
            why = "in the place of one of its directories is a link, which is not followed, or a file"
        return CacheUnreachable(why)
