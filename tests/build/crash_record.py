"""Records of a drive, as its module writes them."""

from collections.abc import Sequence
from pathlib import Path

from agelab.machine.drive.record import ENTRY, HEAD, MAGIC, SECTOR, Record, RequestKind

Request = tuple[RequestKind, int, bytes, int, int]
"""Kind, sector, content of whole sectors, when it arrived and when it was done."""


def record(directory: Path, requests: Sequence[Request], *, lost: int = 0) -> Record:
    """Write a record as the drive's module does, before a disk of zeros."""
    body = b""
    for kind, sector, data, arrived, done in requests:
        head = ENTRY.pack(kind, sector, len(data) // SECTOR, arrived, done)
        has_data = kind in (RequestKind.WRITE, RequestKind.FUA)
        body += head.ljust(SECTOR, b"\0") + (data if has_data else b"")
    head = HEAD.pack(MAGIC, SECTOR + len(body), len(requests), lost)
    (directory / "log").write_bytes(head.ljust(SECTOR, b"\0") + body)
    (directory / "base").write_bytes(bytes(64 * SECTOR))
    return Record(directory / "log", directory / "base")


def sectors(text: str) -> bytes:
    """A sector of each letter."""
    return b"".join(letter.encode() * SECTOR for letter in text)
