"""A git repository of somebody else, as far as agelab reads it itself: where its directories are."""

import shutil
from collections.abc import Iterator
from contextlib import suppress

from agelab.base import git
from agelab.base.errors import AgelabError
from tests.fuzz._files import directory

FILES = (".git", "real/commondir", "real/HEAD")
"""What the first byte of an input chooses the place of."""
SOUND = {".git": b"gitdir: real\n", "real/commondir": b"../common\n", "real/HEAD": b"ref: refs/heads/main\n"}


def one(data: bytes) -> None:
    """Put it in the place of one of the files, and look for the repository."""
    top = directory() / "work"
    shutil.rmtree(top, ignore_errors=True)
    for name in ("real", "common/objects", "common/refs"):
        (top / name).mkdir(parents=True)
    for name, content in SOUND.items():
        (top / name).write_bytes(content)
    (top / FILES[data[0] % len(FILES) if data else 0]).write_bytes(data[1:])
    with suppress(AgelabError):
        git.find(top)
        git.at(top)
        git.nested(top)


def seeds() -> Iterator[bytes]:
    """Each file as git writes it, and names that no file can have."""
    for number, name in enumerate(FILES):
        yield bytes([number]) + SOUND[name]
    yield b"\0gitdir: a\0b\n"
    yield b"\1" + b"n" * 300
    yield b"\1" + b"n/" * 3000
