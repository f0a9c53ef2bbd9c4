"""A named list of files as the value of an action cache: the message ActionResult of the Remote Execution API.

Servers that speak this API check that what lies under ``/ac/`` is one, and that the files that it names are there:
https://github.com/bazelbuild/remote-apis, ``remote_execution.proto``. Of its fields only ``output_files`` is written:

    ActionResult { repeated OutputFile output_files = 2; }
    OutputFile { string path = 1; Digest digest = 2; }
    Digest { string hash = 1; int64 size_bytes = 2; }

A server may add fields of its own; they are passed over.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Types of a field on the wire (protobuf's encoding)."""
FIXED = {FIXED64: 8, FIXED32: 4}
MAX_VARINT = 10
"""Bytes of a number at most."""


@dataclass(frozen=True)
class CachedFile:
    """A file of a cell in the cache."""

    path: str
    sha256: str
    size: int


def encode(files: Iterable[CachedFile]) -> bytes:
    """Return the message that names these files."""
    message = b""
    for file in files:
        digest = _field(1, file.sha256.encode()) + _number(2, file.size)
        message += _field(2, _field(1, file.path.encode()) + _field(2, digest))
    return message


def decode(message: bytes) -> list[CachedFile]:
    """Return the files that a message names. Raises ValueError for what is no such message."""
    return [_file(value) for number, value in _fields(message) if number == 2 and isinstance(value, bytes)]


def _file(message: bytes) -> CachedFile:
    found = dict(_fields(message))
    digest = dict(_fields(_bytes(found.get(2))))
    size = digest.get(2, 0)
    if not isinstance(size, int):
        raise ValueError("a size is no number")
    return CachedFile(_bytes(found.get(1)).decode(), _bytes(digest.get(1)).decode("ascii"), size)


def _bytes(value: bytes | int | None) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a file has no name or no hash")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the number and value of each field."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == BYTES:
            size, at = _varint(message, at)
        elif wire in FIXED:
            size = FIXED[wire]
        else:
            raise ValueError(f"no field has the type {wire}")
        if at + size > len(message):
            raise ValueError("it ends within a field")
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    value = 0
    for place, byte in enumerate(message[at : at + MAX_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("it ends within a number")


def _number(field: int, value: int) -> bytes:
    return _encoded(field << 3 | VARINT) + _encoded(value)


def _field(field: int, value: bytes) -> bytes:
    return _encoded(field << 3 | BYTES) + _encoded(len(value)) + value


def _encoded(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
