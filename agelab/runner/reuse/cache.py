"""The cache that machines share (AGELAB_CACHE), a place of parcels: a directory, or a server (agelab.store.http)."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from agelab.base import atomic, fileio
from agelab.base.errors import InputError, Notify
from agelab.store.http import AUTHORITY, CERTIFICATE, CERTIFICATE_KEY, HttpPlace
from agelab.store.parcel import MAX_BLOB, Kind, Lost, Place, PlaceUnreachable, Refused

FRESH = "AGELAB_FRESH"
"""Has every cell run, as --fresh does for one command."""
CACHE = "AGELAB_CACHE"
"""A directory, or the URL of a server."""
_HELD = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def every_cell_runs() -> bool:
    """Return whether AGELAB_FRESH is set."""
    return os.environ.get(FRESH, "") not in ("", "0")


def passed_on() -> dict[str, str]:
    """Return the variables that are set, for an agelab that a program of ours starts in a clean environment."""
    names = (FRESH, CACHE, CERTIFICATE, CERTIFICATE_KEY, AUTHORITY)
    return {name: os.environ[name] for name in names if name in os.environ}


def of_environment() -> Place | None:
    """Return the cache that AGELAB_CACHE names; None without one.

    Raises InputError for what is no directory and no http(s)://, and as HttpPlace does.
    """
    value = os.environ.get(CACHE)
    if not value:
        return None
    scheme = urlsplit(value).scheme if "://" in value else ""
    if scheme in ("http", "https"):
        return HttpPlace(value)
    if scheme:
        raise InputError(f"{CACHE}: {scheme}:// is not spoken here", hint="name a directory, or a server by http(s)://")
    return DirectoryPlace(Path(value))


class SharedCache:
    """The cache, as those see it who can do without: what goes wrong is told, and a cache out of reach once."""

    def __init__(self, place: Place, say: Notify, without: str) -> None:
        """``without`` says what is done without a cache."""
        self.place = place
        self.lacking: set[str] = set()
        """Keys of parcels that could not be used: what they have lost is put there again."""
        self.given_up = False
        self._say = say
        self._without = without

    def has(self, key: str) -> bool:
        """Return whether there is a parcel of this key that could be used. Raises PlaceUnreachable."""
        return key not in self.lacking and self.place.has("ac", key)

    @contextmanager
    def reading(self, key: str, of: str = "") -> Iterator[None]:
        """Tell, in place of an error of the body, why the parcel of this key is not used."""
        try:
            with self.asking():
                yield
        except Lost:
            self.lacking.add(key)
        except Refused as error:
            self.lacking.add(key)
            self._say(f"cache {self.place.name}: ac/{key}{of} is not used: {error}")

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Give the cache up where the body finds it out of reach."""
        try:
            yield
        except PlaceUnreachable as error:
            if not self.given_up:
                self.given_up = True
                self._say(f"cache {self.place.name}: {error}; {self._without}")


class DirectoryPlace:
    """A directory without links, laid out as Bazel's ``--disk_cache``: ``ac/ab/abcd...``, ``cas/12/1234...``."""

    def __init__(self, directory: Path) -> None:
        """Raises InputError where it is not there: it may be a share that is not mounted."""
        if not directory.is_dir():
            raise InputError(f"AGELAB_CACHE: {directory} is no directory", hint="make it, or mount what it stands for")
        self._directory = directory.absolute()
        self.name = str(directory)

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        try:
            with self._held(kind, sha256) as directory:
                return fileio.read_bytes(directory / sha256, MAX_BLOB, link=False)
        except FileNotFoundError:
            return None
        except fileio.RefusedFile as error:
            raise Refused(f"{self._directory / kind / sha256[:2] / sha256}: {error.strerror}") from error
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
        """Open the directory of a file, and yield a path that leads there whatever happens to its name.

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

    def _unreachable(self, error: OSError) -> PlaceUnreachable:
        why = error.strerror or os.strerror(error.errno or 0)
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EEXIST):
            why = "in the place of one of its directories is a link, which is not followed, or a file"
        return PlaceUnreachable(why)
