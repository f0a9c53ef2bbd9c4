"""jfs: the first blocks of the disk, as they are (``head -c``).

No tool lists the block map: jfs_debugfs shows one page of it at a time and waits for a key. So it is read here:
superblock (jfs_superblock.h), the map's inode (jfs_dinode.h, jfs_xtree.h), its control page and its dmap pages
(jfs_dmap.h). mkfs writes the map in one piece from block 16 on, one page for 8192 blocks.

Metadata are the map, the inline log and the space that fsck works in; inodes and trees are not told apart.
"""

import struct
from collections.abc import Iterator
from itertools import chain

from agelab.evaluate.layout.freespace.runs import FormatError, Run, build_free_space, clear_bits
from agelab.evaluate.layout.model import FreeSpace

UNIT = 4096
"""Block size; Linux supports no other for jfs."""
PER_PAGE = 8192
"""Blocks described by one dmap page."""
_SUPERBLOCK = 0x8000
_MAP_INODE = 0xB000 + 2 * 512
"""Inode 2 of the first aggregate inode table."""
_EXTENT_TREE = 224
"""Offset of the extent tree in an inode; its header takes two entries of 16 bytes."""


def parse(output: bytes) -> FreeSpace:
    """Parse the blocks. Raises FormatError if it is not jfs, or the map is inconsistent."""
    if output[_SUPERBLOCK : _SUPERBLOCK + 4] != b"JFS1":
        raise FormatError("there is no superblock of jfs at byte 32768")
    try:
        return _read(output)
    except struct.error:
        raise FormatError(f"{len(output)} bytes are not the whole map") from None


def _read(disk: bytes) -> FreeSpace:
    [unit] = struct.unpack_from("<I", disk, _SUPERBLOCK + 16)
    if unit != UNIT:
        raise FormatError(f"it has blocks of {unit} bytes")
    # s_logpxd and s_fsckpxd; the log may lie on another device, then its length is 0.
    reserved = [_extent(disk, _SUPERBLOCK + 72), _extent(disk, _SUPERBLOCK + 80)]
    at, length = _map(disk)
    blocks, free = struct.unpack_from("<qq", disk, at * UNIT)
    pages = -(-blocks // PER_PAGE)
    runs = chain.from_iterable(_page(disk, at, number, blocks) for number in range(pages))
    size = max(blocks, *(start + count for start, count in reserved))
    own = [(0, at + length), *reserved]
    return build_free_space(size, runs, own, free, unit=UNIT)


def _extent(disk: bytes, at: int) -> Run:
    """Decode a pxd_t: 24 bits of length, 40 of address."""
    low, address = struct.unpack_from("<II", disk, at)
    return (low >> 24) << 32 | address, low & 0xFFFFFF


def _map(disk: bytes) -> Run:
    """Return the place of the block map."""
    root = _MAP_INODE + _EXTENT_TREE
    flag, next_entry = struct.unpack_from("<BxH", disk, root + 16)
    if not flag & 2 or next_entry != 3:  # BT_LEAF: the root is its own leaf, with one extent after the header
        raise FormatError("its block map does not lie in one piece: the disk was enlarged")
    return _extent(disk, root + 2 * 16 + 8)


def _page(disk: bytes, at: int, number: int, blocks: int) -> Iterator[Run]:
    """Yield the free blocks of one dmap page."""
    first = number * PER_PAGE
    # The map's control page, those of levels 2 and 1, and one of level 0 for each 1024 pages come before it.
    page = (at + number + number // 1024 + 4) * UNIT
    count, free, start = struct.unpack_from("<IIq", disk, page)
    if (count, start) != (min(PER_PAGE, blocks - first), first):
        raise FormatError(f"page {number} of the map is of blocks {start} to {start + count}")
    words = struct.unpack_from("<256I", disk, page + 3072)  # the map on disk, not the working one
    free_runs = list(clear_bits(struct.pack(">256I", *words), count, high_first=True))
    if sum(length for _, length in free_runs) != free:
        raise FormatError(f"page {number} of the map does not hold the {free} free blocks it says")
    for offset, length in free_runs:
        yield first + offset, length
