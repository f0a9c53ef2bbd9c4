"""The container: a plain tar of regular files under known names, in the one form that is written here.

It is not unpacked. A header that is not, byte for byte, the one that this module writes for that name and size is
refused, and with it links, devices, sparse files, extensions and whatever else a tar may hold. Nothing is packed: a
member is as large as the file says, and there is nothing to blow up.
"""

import hashlib
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from agelab.errors import InputError

BLOCK = 512
END = bytes(2 * BLOCK)
READ_BYTES = 1 << 20
MAX_MEMBER_BYTES = (8 << 30) - 1
"""Bytes of a member at most: what a tar's header can say in its own digits."""
MODE = 0o644


@dataclass(frozen=True)
class Member:
    """A file of a container: where its content lies."""

    name: str
    size: int
    at: int
    """Where the content begins, in bytes from the start of the container."""


MemberContent = bytes | Path
"""What becomes a member: bytes, or a file's content."""


def header(name: str, size: int) -> bytes:
    """The block before a member's content. Raises ValueError for a name or size that has no place in it."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, MODE
    return info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


def write(path: Path, members: Mapping[str, MemberContent]) -> None:
    """Write a container with these members in their order. Raises InputError for a file that changes meanwhile."""
    with path.open("wb") as file:
        for name, content in members.items():
            _add(file, name, content)
        file.write(END)


def _add(file: BinaryIO, name: str, content: MemberContent) -> None:
    size = content.stat().st_size if isinstance(content, Path) else len(content)
    if size > MAX_MEMBER_BYTES:
        raise InputError(f"{content if isinstance(content, Path) else name} is too large for a capsule")
    file.write(header(name, size))
    if isinstance(content, Path):
        with content.open("rb") as source:
            left = size
            while left and (piece := source.read(min(READ_BYTES, left))):
                left -= file.write(piece)
        if left:
            raise InputError(f"{content} changed while it was being packed")
    else:
        file.write(content)
    file.write(bytes(-size % BLOCK))


def members(file: IO[bytes]) -> Iterator[Member]:
    """The members of a container, in its order. Raises InputError, with what is wrong alone, for any other file."""
    whole = file.seek(0, 2)
    at = 0
    while True:
        file.seek(at)
        raw = file.read(BLOCK)
        if not any(raw):
            if raw + file.read(BLOCK + 1) != END or at + len(END) != whole:
                raise InputError("it does not end where its end is marked")
            return
        name, size = _parse_header(raw)
        following = at + BLOCK + size + -size % BLOCK
        if following + len(END) > whole:
            raise InputError(f"it is cut short in {name}")
        file.seek(at + BLOCK + size)
        if any(file.read(-size % BLOCK)):
            raise InputError(f"there is something behind the end of {name}")
        yield Member(name, size, at + BLOCK)
        at = following


def _parse_header(raw: bytes) -> tuple[str, int]:
    """Name and size in a member's header."""
    name, digits = raw[:100].split(b"\0")[0], raw[124:136].split(b"\0")[0]
    try:
        found = name.decode("ascii"), int(digits.decode("ascii"), 8)
        if found[1] <= MAX_MEMBER_BYTES and header(*found) == raw:
            return found
    except ValueError:
        pass
    raise InputError("it holds something else than regular files as agelab packs them")


def read(file: IO[bytes], member: Member, most: int) -> bytes:
    """A member's content. Raises InputError where it is larger than ``most`` bytes."""
    if member.size > most:
        raise InputError(f"{member.name} is larger than {most} bytes")
    file.seek(member.at)
    return file.read(member.size)


def chunks(file: IO[bytes], member: Member) -> Iterator[bytes]:
    """A member's content, piece by piece."""
    file.seek(member.at)
    left = member.size
    while left and (piece := file.read(min(READ_BYTES, left))):
        left -= len(piece)
        yield piece


def digest(file: IO[bytes], member: Member) -> str:
    """The sha256 of a member's content, in hex."""
    found = hashlib.sha256()
    for piece in chunks(file, member):
        found.update(piece)
    return found.hexdigest()
