"""The record of a drive (harness/drive/record.h), and the disk that a part of it makes."""

import hashlib
import shutil
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from agelab.base.errors import AgelabError

SECTOR = 512
MAGIC = 0x64726F6365726761
HEAD = struct.Struct("<QQQQ")
ENTRY = struct.Struct("<QQQQQ")
HASH_BYTES = 16
ROOM = 512 << 20
"""Bytes for a record, of which only what is used is taken."""
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
    """When the drive was done with it, or would have been."""
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


@dataclass(frozen=True)
class Piece:
    """Sectors of an entry that are on a disk, as many as all or fewer."""

    number: int
    first: int
    end: int


@dataclass(frozen=True)
class Record:
    """All that a drive was sent which changes a disk on it, and that disk before."""

    log: Path
    base: Path
    first: int = 0
    """The drive's sector at which the disk begins: entries are told in the disk's own, and have no others."""
    sectors: int | None = None
    """Of the disk; None for as many as there are in its file."""

    @cached_property
    def entries(self) -> list[Entry]:
        """Raises AgelabError for a file that is no record, and for one that is not whole."""
        size = self.base.stat().st_size // SECTOR if self.sectors is None else self.sectors
        entries: list[Entry] = []
        try:
            with self.log.open("rb") as file:
                magic, end, count, lost = HEAD.unpack(file.read(HEAD.size))
                at = SECTOR if magic == MAGIC else end
                while at < end:
                    file.seek(at)
                    kind, sector, sectors, arrived, done = ENTRY.unpack(file.read(ENTRY.size))
                    first, behind = max(sector, self.first), min(sector + sectors, self.first + size)
                    data = at + SECTOR + (first - sector) * SECTOR
                    here = max(0, behind - first)
                    entries.append(Entry(RequestKind(kind), first - self.first, here, arrived, done, data))
                    at += SECTOR + (sectors * SECTOR if entries[-1].has_data else 0)
        except (ValueError, struct.error) as error:
            raise AgelabError(f"{self.log} is no record of a drive: {error}") from error
        if magic != MAGIC or len(entries) != count:
            raise AgelabError(f"{self.log} is no whole record of a drive")
        if lost:
            raise AgelabError(
                f"the record of a drive holds {end >> 20} MiB: {lost} of {count + lost} requests had no room",
                'have less written before the cut, or begin a boot at a step before it (caches = "reboot")',
            )
        return entries

    @property
    def end(self) -> int:
        """Bytes of the record."""
        with self.log.open("rb") as file:
            return int(HEAD.unpack(file.read(HEAD.size))[1])

    @cached_property
    def _changes(self) -> list[dict[int, int]]:
        """Of each entry what each sector's content adds to the hash of a disk; nothing where it is the base's."""
        with self.log.open("rb") as log, self.base.open("rb") as base:

            def change(entry: Entry) -> dict[int, int]:
                if not entry.changes:
                    return {}
                base.seek(entry.sector * SECTOR)
                new = _content(log, entry, entry.sector, entry.sector + entry.sectors)
                old = base.read(entry.sectors * SECTOR)
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
        self.put(path, pieces)

    def put(self, path: Path, pieces: Iterable[Piece]) -> None:
        """Put these onto an image of the disk before."""
        with self.log.open("rb") as log, path.open("r+b") as disk:
            for piece in pieces:
                disk.seek(piece.first * SECTOR)
                disk.write(_content(log, self.entries[piece.number], piece.first, piece.end))


def written_back(entries: Sequence[Entry], first: int = 0) -> list[list[Piece]]:
    """Return of each entry what it says has reached the platters: of all before it, what lies in its sectors last.

    The entries are numbered from ``first``.
    """
    import numpy as np

    newest = np.zeros(max((entry.sector + entry.sectors for entry in entries), default=0), np.int32)

    def pieces(number: int, entry: Entry) -> list[Piece]:
        here = newest[entry.sector : entry.sector + entry.sectors]
        if entry.changes:
            here[:] = number + 1
        if entry.kind is not RequestKind.KEPT or not entry.sectors:
            return []
        borders = [0, *(np.flatnonzero(np.diff(here)) + 1).tolist(), len(here)]
        return [
            Piece(first + int(here[at]) - 1, entry.sector + at, entry.sector + behind)
            for at, behind in pairwise(borders)
            if here[at]
        ]

    return [pieces(number, entry) for number, entry in enumerate(entries)]


def _content(log: BinaryIO, entry: Entry, first: int, end: int) -> bytes:
    """Read what an entry makes of its sectors between two; what was discarded is zeros."""
    if not entry.has_data:
        return bytes((end - first) * SECTOR)
    log.seek(entry.data + (first - entry.sector) * SECTOR)
    return log.read((end - first) * SECTOR)


def _added(sector: int, new: bytes, old: bytes) -> int:
    return 0 if new == old else _hash(sector, new) - _hash(sector, old)


def _hash(sector: int, content: bytes) -> int:
    return int.from_bytes(
        hashlib.blake2b(content, key=sector.to_bytes(8, "little"), digest_size=HASH_BYTES).digest(), "little"
    )
