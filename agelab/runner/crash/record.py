"""The record of a drive (harness/drive/record.h), and the disk that a part of it makes."""

import hashlib
import shutil
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from agelab.base.errors import AgelabError

SECTOR = 512
MAGIC = 0x64726F6365726761
HEAD = struct.Struct("<QQQQ")
ENTRY = struct.Struct("<QQQQQ")
HASH_BYTES = 16
_MODULUS = 1 << (8 * HASH_BYTES)


class RequestKind(IntEnum):
    """Kind of a request."""

    WRITE, FUA, FLUSH, DISCARD, KEPT = range(5)


CHANGES = (RequestKind.WRITE, RequestKind.FUA, RequestKind.DISCARD)
"""What changes a disk. ``KEPT`` is no request: sectors of earlier ones have reached the platters."""


@dataclass(frozen=True)
class Entry:
    """A request that the drive has taken up."""

    kind: RequestKind
    sector: int
    sectors: int
    arrived: int
    """When the drive got it, in its nanoseconds."""
    done: int
    data: int
    """Where its data begins in the record, in bytes."""

    @property
    def has_data(self) -> bool:
        """True for a write: its data follows it."""
        return self.kind in (RequestKind.WRITE, RequestKind.FUA)

    @property
    def changes(self) -> bool:
        """True for what a cut may lose."""
        return self.kind in CHANGES

    @property
    def end(self) -> int:
        """Where the record goes on behind it."""
        return self.data + (self.sectors * SECTOR if self.has_data else 0)


@dataclass(frozen=True)
class Piece:
    """Sectors of an entry that are on a disk, as many as all or fewer."""

    number: int
    first: int
    end: int


@dataclass(frozen=True)
class Record:
    """All that a drive was sent, and the disk before it."""

    log: Path
    base: Path

    @cached_property
    def entries(self) -> list[Entry]:
        """Raises AgelabError for a file that is no record."""
        with self.log.open("rb") as file:
            magic, end, count, lost = HEAD.unpack(file.read(HEAD.size).ljust(HEAD.size, b"\0"))
            if magic != MAGIC or lost:
                raise AgelabError(f"{self.log} is no whole record of a drive")
            entries, at = [], SECTOR
            while at < end:
                file.seek(at)
                kind, sector, sectors, arrived, done = ENTRY.unpack(file.read(ENTRY.size))
                entries.append(Entry(RequestKind(kind), sector, sectors, arrived, done, at + SECTOR))
                at = entries[-1].end
        if len(entries) != count:
            raise AgelabError(f"{self.log} has {len(entries)} entries, and says {count}")
        return entries

    @property
    def end(self) -> int:
        """Bytes of the record."""
        return self.entries[-1].end if self.entries else SECTOR

    @cached_property
    def _changes(self) -> list[dict[int, int]]:
        """Of each entry what each sector's content adds to the hash of a disk; nothing where it is the base's."""
        with self.log.open("rb") as log, self.base.open("rb") as base:

            def change(entry: Entry) -> dict[int, int]:
                if not entry.changes:
                    return {}
                base.seek(entry.sector * SECTOR)
                new, old = _content(log, entry), base.read(entry.sectors * SECTOR)
                return {
                    entry.sector + number: _added(
                        entry.sector + number,
                        new[number * SECTOR : (number + 1) * SECTOR],
                        old[number * SECTOR : (number + 1) * SECTOR],
                    )
                    for number in range(entry.sectors)
                }

            return [change(entry) for entry in self.entries]

    def disk(self, pieces: Iterable[Piece]) -> str:
        """Return the hash of the disk on which these are, the later over the earlier.

        Equal disks have equal hashes, whichever entries made them.
        """
        disk: dict[int, int] = {}
        for piece in pieces:
            change = self._changes[piece.number]
            if piece.end - piece.first == len(change):
                disk.update(change)
            else:
                disk.update((sector, change[sector]) for sector in range(piece.first, piece.end))
        return f"{sum(disk.values()) % _MODULUS:0{2 * HASH_BYTES}x}"

    def write_disk(self, path: Path, pieces: Iterable[Piece]) -> None:
        """Write the disk on which these are as an image."""
        shutil.copyfile(self.base, path)
        with self.log.open("rb") as log, path.open("r+b") as disk:
            for piece in pieces:
                entry = self.entries[piece.number]
                content = _content(log, entry)
                disk.seek(piece.first * SECTOR)
                disk.write(
                    content[(piece.first - entry.sector) * SECTOR : (piece.end - entry.sector) * SECTOR]
                )


def _content(log: BinaryIO, entry: Entry) -> bytes:
    """Read what an entry makes of its sectors; what was discarded is zeros."""
    if not entry.has_data:
        return bytes(entry.sectors * SECTOR)
    log.seek(entry.data)
    return log.read(entry.sectors * SECTOR)


def _added(sector: int, new: bytes, old: bytes) -> int:
    return 0 if new == old else _hash(sector, new) - _hash(sector, old)


def _hash(sector: int, content: bytes) -> int:
    return int.from_bytes(
        hashlib.blake2b(content, key=sector.to_bytes(8, "little"), digest_size=HASH_BYTES).digest(), "little"
    )
