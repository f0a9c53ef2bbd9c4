"""Container of a capsule: a plain tar of regular files with known names, in one canonical form.

It is read in place. A header that is not byte for byte what this module writes for that name and size is refused,
which excludes links, devices, sparse files and extensions. Members are not compressed, so there are no decompression
bombs.
"""

import hashlib
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from agelab.base.errors import InputError

BLOCK = 512
END = bytes(2 * BLOCK)
READ_BYTES = 1 << 20
MAX_MEMBER_BYTES = (8 << 30) - 1
"""Maximum size of a member in bytes: the largest that a tar header holds in octal digits."""
MODE = 0o644


@dataclass(frozen=True)
class Member:
    """A file in a container."""

    name: str
    size: int
    at: int
    """Offset of the content in bytes from the start of the container."""


MemberContent = bytes | Path
"""Content of a member: bytes, or a file to copy."""


def header(name: str, size: int) -> bytes:
    """Return the header block of a member. Raises ValueError for a name or size that does not fit."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, MODE
    return info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


def write(path: Path, members: Mapping[str, MemberContent]) -> None:
    """Write a container with these members in order. Raises InputError for a file that changes meanwhile."""
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
    """Yield the members of a container in order. Raises InputError, with the reason only, if it is malformed."""
    whole = file.seek(0, 2)
    at = 0
    while True:
        file.seek(at)
        raw = file.read(BLOCK)
        if not any(raw):
            if raw + file.read(BLOCK + 1) != END or at + len(END) != whole:
                raise InputError("it does not end at its end marker")
            return
        name, size = _parse_header(raw)
        following = at + BLOCK + size + -size % BLOCK
        if following + len(END) > whole:
            raise InputError(f"it is cut short in {name}")
        file.seek(at + BLOCK + size)
        if any(file.read(-size % BLOCK)):
            raise InputError(f"there is data in the padding after {name}")
        yield Member(name, size, at + BLOCK)
        at = following


def _parse_header(raw: bytes) -> tuple[str, int]:
    """Return name and size from a member's header."""
    name, digits = raw[:100].split(b"\0")[0], raw[124:136].split(b"\0")[0]
    try:
        found = name.decode("ascii"), int(digits.decode("ascii"), 8)
        if found[1] <= MAX_MEMBER_BYTES and header(*found) == raw:
            return found
    except ValueError:
        pass
    raise InputError("it has an entry that is not a regular file as agelab packs it")


def read(file: IO[bytes], member: Member, most: int) -> bytes:
    """Return a member's content. Raises InputError if it is larger than ``most`` bytes."""
    if member.size > most:
        raise InputError(f"{member.name} is larger than {most} bytes")
    file.seek(member.at)
    return file.read(member.size)


def chunks(file: IO[bytes], member: Member) -> Iterator[bytes]:
    """Yield a member's content in chunks."""
    file.seek(member.at)
    left = member.size
    while left and (piece := file.read(min(READ_BYTES, left))):
        left -= len(piece)
        yield piece


def digest(file: IO[bytes], member: Member) -> str:
    """Return the sha256 of a member's content in hex."""
    found = hashlib.sha256()
    for piece in chunks(file, member):
        found.update(piece)
    return found.hexdigest()
