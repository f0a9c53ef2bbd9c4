"""btrfs on one device: ``btrfs inspect-internal dump-super``, then ``dump-tree -t chunk`` and ``-t extent``.

btrfs addresses its data logically; the chunk tree says where a logical address lies. All of FreeSpace is places on
the device, as the extents of a map are (harness/tools/chunks.h translates them).

Free is what file data may still take: the device's space that no chunk has, and what data chunks have left. A chunk
of metadata is set aside for that, used or not, like the inode tables of ext2: all of it counts as metadata, each
copy of it, and so do the first MiB and the superblock's copies (BTRFS_STRIPE_LEN is left free around each).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agelab.evaluate.layout.freespace.runs import (
    FormatError,
    Run,
    build_free_space,
    join_runs,
    numbered_lines,
    subtract,
    total_bytes,
)
from agelab.evaluate.layout.model import FreeSpace

RESERVED = 1 << 20
"""Bytes at the device's beginning that no chunk takes (BTRFS_DEVICE_RANGE_RESERVED)."""
SUPERBLOCKS = (64 << 10, 64 << 20, 256 << 30)
STRIPE = 64 << 10
_SUPER = re.compile(r"(num_devices|nodesize)\t+(\d+)")
_DEVICE = re.compile(r"\t\tdevid \d+ total_bytes (\d+) ")
_ITEM = re.compile(r"\titem \d+ key \((\w+) (\w+) (\d+)\)")
_CHUNK = re.compile(r"\t\tlength (\d+) owner \d+ stripe_len \d+ type (\S+)")
_PLACE = re.compile(r"\t\t\tstripe \d+ devid \d+ offset (\d+)")
_USED = re.compile(r"\t\tblock group used (\d+) ")


@dataclass
class _Chunk:
    """A range of logical addresses and the places of its copies on the device."""

    logical: int
    length: int = 0
    kind: str = ""
    places: list[int] = field(default_factory=list)
    used: int = -1
    extents: list[Run] = field(default_factory=list)

    def copies(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Return the places of these logical runs on the device, for each copy."""
        for start, length in runs:
            for place in self.places:
                yield place + start - self.logical, length


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for an unexpected line, or extents that do not add up to a chunk's usage."""
    size, chunks = _read(output)
    taken: list[Run] = []
    own: list[Run] = [(0, RESERVED), *((at, STRIPE) for at in SUPERBLOCKS if at + STRIPE <= size)]
    for chunk in chunks:
        if "DATA" not in chunk.kind.split("|"):
            own += chunk.copies([(chunk.logical, chunk.length)])
            continue
        if (listed := total_bytes(join_runs(chunk.extents))) != chunk.used:
            what = f"the extents of chunk {chunk.logical} have {listed} bytes, it says {chunk.used}"
            raise FormatError(what)
        taken += chunk.copies(chunk.extents)
    return build_free_space(size, subtract([(0, size)], [*own, *taken]), own)


def _read(output: bytes) -> tuple[int, list[_Chunk]]:
    """Return the device's size and its chunks."""
    size = node_size = 0
    chunks: dict[int, _Chunk] = {}
    last = _Chunk(-1)
    for number, line in numbered_lines(output):
        if match := _SUPER.match(line):
            if match[1] == "num_devices" and match[2] != "1":
                raise FormatError(f"the filesystem lies on {match[2]} devices", number)
            node_size = int(match[2]) if match[1] == "nodesize" else node_size
        elif match := _DEVICE.match(line):
            size = int(match[1])
        elif match := _ITEM.match(line):
            key, kind, offset = match[1], match[2], int(match[3])
            if kind == "CHUNK_ITEM":
                last = chunks[offset] = _Chunk(offset)
            elif kind == "BLOCK_GROUP_ITEM":
                if int(key) not in chunks:
                    raise FormatError(f"there is no chunk at {int(key)}", number)
                last = chunks[int(key)]
            elif kind in ("EXTENT_ITEM", "METADATA_ITEM"):
                length = offset if kind == "EXTENT_ITEM" else node_size
                _holding(chunks, int(key), number).extents.append((int(key), length))
        elif match := _CHUNK.match(line):
            last.length, last.kind = int(match[1]), match[2]
            if last.kind.rpartition("|")[2] not in ("single", "DUP"):
                raise FormatError(f"a chunk of kind {last.kind} is spread over devices", number)
        elif match := _PLACE.match(line):
            last.places.append(int(match[1]))
        elif match := _USED.match(line):
            last.used = int(match[1])
    if not size or not node_size:
        raise FormatError(f"there is no {'nodesize' if size else 'DEV_ITEM'} in it")
    if torn := [chunk.logical for chunk in chunks.values() if not chunk.places or chunk.used < 0]:
        raise FormatError(f"chunk {torn[0]} has no place, or there is no block group of it")
    return size, list(chunks.values())


def _holding(chunks: dict[int, _Chunk], logical: int, number: int) -> _Chunk:
    # A filesystem has about a chunk per GiB, so a linear search, newest first, is fast.
    for chunk in reversed(chunks.values()):
        if chunk.logical <= logical < chunk.logical + chunk.length:
            return chunk
    raise FormatError(f"no chunk holds the extent at {logical}", number)
