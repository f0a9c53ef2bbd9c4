"""A parcel: a manifest, and files by their hashes. Whatever agelab hands from one place to another is one.

A cached cell, a shared artefact, a worker's answer and a capsule are parcels with different manifests. A place holds
parcels: a directory or a server many of them by key (agelab.runner.reuse.cache), one file a single one.

The list of a parcel is a line of JSON with a seal, the hash of what stands before it. Who takes a parcel checks that
list first, and each file against it; what is wrong is ``Refused`` with the reason.

One file is a plain tar: the list, and the files in the order of their names, in one canonical form. It is read in
place. A header that is not byte for byte what this module writes for that name and size is refused, which excludes
links, devices, sparse files and extensions. Nothing is compressed, so there are no decompression bombs.
"""

import hashlib
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, Field, ValidationError

from agelab.base import fileio
from agelab.base.errors import AgelabError, InputError
from agelab.base.types import Frozen
from agelab.results.checksummed import sealed_line

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Manifest = TypeVar("Manifest", bound=BaseModel)
Parsed = TypeVar("Parsed")
AnyParcel = TypeVar("AnyParcel", bound="Parcel[Any]")
Kind = Literal["ac", "cas"]
"""``cas`` has files by their own sha256, ``ac`` the lists of parcels by their keys."""
Content = bytes | Path
"""Content of a file: bytes, or a file to copy."""

MAX_BLOB = fileio.RECORD
"""Bytes of a parcel's list at most, and of anything that a directory or a server holds."""
MAX_FILES = 500_000
LIST = "parcel.json"
"""The first member of one file."""
BLOCK = 512
END = bytes(2 * BLOCK)
MAX_MEMBER_BYTES = (8 << 30) - 1
"""Bytes of a member at most: the largest number that a tar header holds in octal digits."""
_CHUNK = 1 << 20


class Refused(InputError):
    """A parcel that is not used; the message is the reason, in one line."""


class Lost(Refused):
    """A file of a parcel is not where the parcel is."""


class PlaceUnreachable(AgelabError):
    """A place as a whole cannot be used now."""


class Source(Protocol):
    """Where a parcel is read from."""

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        """Return what lies there, which may be anything, or None.

        Raises Refused for what is not even read, PlaceUnreachable.
        """


class Place(Source, Protocol):
    """Holds parcels, and changes nothing that is there. All of these raise PlaceUnreachable."""

    name: str
    """Its address, without a password."""

    def has(self, kind: Kind, sha256: str) -> bool:
        """Return whether anything lies there."""

    def put(self, kind: Kind, sha256: str, content: bytes) -> None:
        """Put content where there is none."""


class PackedFile(Frozen):
    """Hash and size of a parcel's file."""

    sha256: Sha256
    size: int = Field(ge=0, le=MAX_MEMBER_BYTES)

    @classmethod
    def of(cls, content: Content) -> "PackedFile":
        if isinstance(content, bytes):
            return cls(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        with fileio.opened(content) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return cls(sha256=digest, size=file.tell())


class Parcel(Frozen, Generic[Manifest]):
    """The list of a parcel."""

    parcel: Literal[1] = 1
    manifest: Manifest
    files: dict[str, PackedFile] = Field(max_length=MAX_FILES)

    def listed(self) -> bytes:
        """Return it as it is written. Raises Refused for one that nobody would read."""
        line = sealed_line(self.model_dump(mode="json", by_alias=True))
        if len(line) > MAX_BLOB:
            raise Refused(f"its list has more than {MAX_BLOB >> 20} MiB")
        return line

    def require_size(self, most: int, files: int) -> None:
        """Raise Refused for more bytes or files than this: before any is read."""
        if len(self.files) > files:
            raise Refused(f"it names more than {files} files")
        if sum(file.size for file in self.files.values()) > most:
            raise Refused(f"its files have more than {most >> 20} MiB")

    def file(self, name: str) -> PackedFile:
        if name not in self.files:
            raise Refused(f"it names no {name}")
        return self.files[name]

    def read(self, name: str, place: Source) -> bytes:
        """Return the content of a file. Raises Lost where the place has it no more, Refused for another content."""
        file = self.file(name)
        data = place.get("cas", file.sha256)
        if data is None:
            raise Lost(f"{name} is not there")
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise Refused(f"{name} has another hash than its name says")
        if len(data) != file.size:
            raise Refused(f"{name} has another size than is said")
        return data


def parse(line: bytes, kind: type[AnyParcel]) -> AnyParcel:
    """Read a parcel's list, of which nothing is believed. Raises Refused for what is none."""
    if len(line) > MAX_BLOB:
        raise Refused(f"its list has more than {MAX_BLOB >> 20} MiB")
    before, _, seal = line.rpartition(b',"seal":"')
    content = before + b"}"
    if seal != b'%s"}\n' % hashlib.sha256(content).hexdigest().encode():
        raise Refused("its list is not what was written")
    return validated(content, "its list", kind.model_validate_json)


def put(place: Place, key: str, parcel: Parcel[Any], contents: Mapping[str, bytes]) -> None:
    """Put a parcel into a place, its files before its list: a list is never there without its files."""
    for name, file in parcel.files.items():
        place.put("cas", file.sha256, contents[name])
    place.put("ac", key, parcel.listed())


def validated(raw: bytes, what: str, validate: Callable[[bytes], Parsed]) -> Parsed:
    """Validate data from outside; of its content an error repeats only names. Raises Refused."""
    try:
        return validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place: Sequence[int | str] = first["loc"]
        reason = ".".join(map(str, place)) + ": " * bool(place) + first["msg"]
        raise Refused(f"{what}: {quote(reason, 200)}") from error


def quote(text: str, most: int = 60) -> str:
    """Quote untrusted text for a terminal, shortened to ``most`` characters."""
    return repr(text[:most] + ("..." if len(text) > most else ""))


class _PackedMember(NamedTuple):
    """A file in one file."""

    name: str
    size: int
    at: int
    """Offset of its content in bytes."""


class OneFile:
    """A parcel in one file, which is open."""

    def __init__(self, file: IO[bytes]) -> None:
        """Raises Refused for what is no such file."""
        self._file = file
        self._members: dict[str, _PackedMember] = {}
        self._names: dict[str, str] = {}
        for member in _members(file):
            if len(self._members) > MAX_FILES:
                raise Refused(f"it has more than {MAX_FILES:,} members")
            if member.name in self._members:
                raise Refused(f"{member.name} is in it twice")
            self._members[member.name] = member
        if next(iter(self._members), None) != LIST:
            raise Refused(f"it does not begin with {LIST}")

    def parcel(self, kind: type[AnyParcel]) -> AnyParcel:
        """Return the parcel, whose files are those that are there. Raises Refused."""
        parcel = parse(self.content(LIST, MAX_BLOB), kind)
        there, due = [*self._members][1:], sorted(parcel.files)
        if there != due:
            other = set(there) ^ set(due)
            what = quote(min(other)) + " is in one of them alone" if other else "the order is another"
            raise Refused(f"its members are not those of {LIST}: {what}")
        self._names = {file.sha256: name for name, file in parcel.files.items()}
        return parcel

    def require_intact(self, parcel: Parcel[Any]) -> None:
        """Read every file. Raises Refused for one that the list does not say."""
        for name, file in parcel.files.items():
            if self._members[name].size != file.size or self.digest(name) != file.sha256:
                raise Refused(f"{name} does not match the hash in {LIST}")

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        if kind == "ac":
            return self.content(LIST, MAX_BLOB)
        return self.content(self._names[sha256], MAX_BLOB) if sha256 in self._names else None

    def content(self, name: str, most: int) -> bytes:
        """Return the content of a member. Raises Refused if it is larger than ``most`` bytes."""
        if self._member(name).size > most:
            raise Refused(f"{name} is larger than {most} bytes")
        return b"".join(self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member in pieces. Raises Refused where there is none of that name."""
        member = self._member(name)
        self._file.seek(member.at)
        left = member.size
        while left and (piece := self._file.read(min(_CHUNK, left))):
            left -= len(piece)
            yield piece

    def extract(self, name: str, parcel: Parcel[Any], target: Path) -> Path:
        """Write a file of the parcel into a new file. Raises Refused for what the list does not say."""
        file = parcel.file(name)
        digest = hashlib.sha256()
        with target.open("xb") as written:
            for piece in self.pieces(name):
                digest.update(piece)
                written.write(piece)
        if digest.hexdigest() != file.sha256:
            raise Refused(f"{name} does not match the hash in {LIST}")
        return target

    def _member(self, name: str) -> _PackedMember:
        if name not in self._members:
            raise Refused(f"it has no {name}")
        return self._members[name]

    def digest(self, name: str) -> str:
        """Return the sha256 of a member's content."""
        digest = hashlib.sha256()
        for piece in self.pieces(name):
            digest.update(piece)
        return digest.hexdigest()


def write(file: IO[bytes], parcel: Parcel[Any], contents: Mapping[str, Content]) -> None:
    """Write a parcel into one file. Raises InputError for a file that changes meanwhile."""
    _add(file, LIST, parcel.listed())
    for name in sorted(parcel.files):
        _add(file, name, contents[name])
    file.write(END)


def _add(file: IO[bytes], name: str, content: Content) -> None:
    size = content.stat().st_size if isinstance(content, Path) else len(content)
    if size > MAX_MEMBER_BYTES:
        raise InputError(f"{content if isinstance(content, Path) else name} is too large for one file")
    file.write(_header(name, size))
    if isinstance(content, Path):
        with content.open("rb") as source:
            left = size
            while left and (piece := source.read(min(_CHUNK, left))):
                left -= file.write(piece)
        if left:
            raise InputError(f"{content} changed while it was being packed")
    else:
        file.write(content)
    file.write(bytes(-size % BLOCK))


def _header(name: str, size: int) -> bytes:
    """Return the header of a member. Raises ValueError for a name or size that does not fit."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


def _members(file: IO[bytes]) -> Iterator[_PackedMember]:
    """Yield the members of a file in order. Raises Refused."""
    whole = file.seek(0, 2)
    at = 0
    while True:
        file.seek(at)
        raw = file.read(BLOCK)
        if not any(raw):
            if raw + file.read(BLOCK + 1) != END or at + len(END) != whole:
                raise Refused("it does not end at its end marker")
            return
        name, size = _parse_header(raw)
        following = at + BLOCK + size + -size % BLOCK
        if following + len(END) > whole:
            raise Refused(f"it is cut short in {name}")
        file.seek(at + BLOCK + size)
        if any(file.read(-size % BLOCK)):
            raise Refused(f"there is data in the padding after {name}")
        yield _PackedMember(name, size, at + BLOCK)
        at = following


def _parse_header(raw: bytes) -> tuple[str, int]:
    """Return name and size from a member's header."""
    name, digits = raw[:100].split(b"\0")[0], raw[124:136].split(b"\0")[0]
    try:
        name_and_size = name.decode("ascii"), int(digits.decode("ascii"), 8)
        if name_and_size[1] <= MAX_MEMBER_BYTES and _header(*name_and_size) == raw:
            return name_and_size
    except ValueError:
        pass
    raise Refused("it has an entry that is not a regular file as agelab packs it")
