"""Paths that every program takes as they are: QEMU's options, libvirt's XML, ld.so, make, apt and shells.

Each of these gives a meaning to other characters (a comma ends an option of QEMU, a colon a library of ld.so). So a
path has one set of characters for all of them, checked where the user names it and again where QEMU gets it.
"""

import re
from pathlib import Path
from tempfile import gettempdir

from agelab.base.errors import InputError

ALLOWED = "letters and digits of any script, and / . _ - + @ = ~"
MAX_LABEL = 100
"""Characters of a user's name in the name of a file or directory of ours."""
_PLAIN = re.compile(r"[A-Za-z0-9/._+@=~-]")
_NOT_IN_LABEL = re.compile(r"[^A-Za-z0-9_-]+")


def misfit(path: Path) -> str:
    """Return the first character that some program would not take as it is; empty where there is none."""
    return next(
        (
            character
            for character in str(path)
            if not (_PLAIN.match(character) if character.isascii() else character.isprintable())
        ),
        "",
    )


def require_plain(path: Path, what: str, hint: str) -> None:
    """Raise InputError for a path that some program would not take as it is."""
    if bad := misfit(path):
        raise InputError(
            f"{what} cannot be {str(path)!r}: QEMU and others would misread a path with {bad!r}",
            hint=f"{hint}; fit are {ALLOWED}",
        )


def plain_label(name: str) -> str:
    """Return the part of a user's name that a file or directory of ours may have in its own name."""
    return _NOT_IN_LABEL.sub("-", name).strip("-")[:MAX_LABEL] or "unnamed"


def temp_parent() -> Path:
    """Return the directory for temporary files that no store has room for. Raises InputError where TMPDIR is unfit."""
    path = Path(gettempdir())
    require_plain(path, "the directory for temporary files", "name another one: TMPDIR=<directory>")
    return path
