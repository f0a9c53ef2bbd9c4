"""Where the user's store is, and whether it may be used."""

import os
import stat
from pathlib import Path

from agelab.base import orphans, places
from agelab.base.errors import InputError, Notify, silent
from agelab.base.plain_path import require_plain
from agelab.store.artefacts import SharedArtefacts, Store


def default_home() -> Path:
    """Return the directory that AGELAB_HOME names, or ``agelab.base.places.default_store``.

    Raises InputError when that is below the user's home directory and the user has none.
    """
    directory = os.environ.get("AGELAB_HOME")
    try:
        return Path(directory).expanduser().absolute() if directory else places.default_store()
    except RuntimeError as error:
        raise InputError(f"there is no place for the store: {error}", hint="set AGELAB_HOME=<directory>") from error


def open_store(home: Path | None = None, warn: Notify = silent, shared: SharedArtefacts | None = None) -> Store:
    """Return the store below ``home``, by default that of the user; nothing is created yet.

    ``shared`` are the artefacts that machines share.

    Raises InputError for a path that is no directory, that programs would misread, or that another user can write to,
    and HostError where /proc is not this host's: locks, guests and leftovers are known by it.
    """
    orphans.tag()
    home = home or default_home()
    require_plain(home.absolute(), "the store's directory", "move it: AGELAB_HOME=<directory>")
    if home.exists() and not home.is_dir():
        raise InputError(f"the store cannot be in {home}, which is not a directory")
    if why := _writable_by_others(home):
        raise InputError(
            f"the store is in {home}, {why}: what lies in it (a library for QEMU, compilers) is run as you",
            hint="use one of your own that nobody else may write to: AGELAB_HOME=<directory>",
        )
    return Store(home, warn, shared=shared)


def _writable_by_others(home: Path) -> str:
    """Who else can change a store; empty where nobody can, or where there is none yet."""
    if not home.exists():
        return ""
    status = home.stat()
    if status.st_uid not in (0, os.geteuid()):
        return f"which belongs to the user {status.st_uid}"
    return "to which anybody may write" if status.st_mode & stat.S_IWOTH else ""
