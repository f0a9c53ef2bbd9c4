"""How many bytes a filesystem says that it takes: an image that has fewer is cut short."""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agelab.base import fileio

HEAD = 1 << 20
"""Bytes at the beginning of an image that hold what is read here."""
_ZFS_FRONT, _ZFS_END = 4 << 20, 512 << 10
"""Bytes of a pool's labels before and behind what its label calls asize."""
_ZFS_ASIZE = re.compile(rb"\0\0\0\x05asize\0\0\0\0\0\0\x08\0\0\0\x01(.{8})", re.DOTALL)
"""A name and a number of a label's list, as XDR has them."""


def stated_bytes(image: Path, signature: str) -> int | None:
    """Return the bytes that a filesystem, or a member of an array, needs by its superblock.

    ``signature`` is what wipefs calls it. None where it is not one of these, or says nothing that makes sense.
    """
    read = _READERS.get(signature)
    if read is None:
        return None
    with fileio.opened(image) as file:
        head = file.read(HEAD)
    try:
        return read(head) or None
    except (struct.error, OverflowError):
        return None


def _fields(head: bytes, layout: str, at: int) -> tuple[Any, ...]:
    return struct.unpack_from(layout, head, at)


def _ext(head: bytes) -> int:
    low, _, _, _, _, shift = _fields(head, "<6I", 1024 + 4)
    [high] = _fields(head, "<I", 1024 + 0x150)
    has_high = _fields(head, "<I", 1024 + 96)[0] & 0x80
    return int((low | (high << 32 if has_high else 0)) << 10 + _small(shift))


def _xfs(head: bytes) -> int:
    block, blocks = _fields(head, ">IQ", 4)
    return int(block * blocks)


def _btrfs(head: bytes) -> int:
    [own] = _fields(head, "<Q", 65536 + 0xC9 + 8)  # of this device alone
    return int(own)


def _jfs(head: bytes) -> int:
    blocks, block, _, _, physical = _fields(head, "<qIHHI", 32768 + 8)
    ends = [blocks * physical]
    for place in (72, 80):  # its log, and room for its check
        first, second = _fields(head, "<II", 32768 + place)
        ends.append(((first & 0xFFFFFF) + ((first >> 24) << 32 | second)) * block)
    return int(max(ends))


def _reiserfs(head: bytes) -> int:
    at = 65536 if head[65536 + 52 :].startswith(b"ReIsEr") else 8192
    return int(_fields(head, "<I", at)[0] * _fields(head, "<H", at + 44)[0])


def _reiser4(head: bytes) -> int:
    [block] = _fields(head, "<H", 65536 + 18)
    return int(_fields(head, "<Q", 65536 + block)[0] * block)


def _nilfs2(head: bytes) -> int:
    return int(_fields(head, "<Q", 1024 + 32)[0])


def _ntfs(head: bytes) -> int:
    return int(_fields(head, "<H", 11)[0] * _fields(head, "<Q", 40)[0])


def _vfat(head: bytes) -> int:
    return int(_fields(head, "<H", 11)[0] * (_fields(head, "<H", 19)[0] or _fields(head, "<I", 32)[0]))


def _exfat(head: bytes) -> int:
    return int(_fields(head, "<Q", 72)[0] << _small(_fields(head, "<B", 108)[0]))


def _f2fs(head: bytes) -> int:
    return int(_fields(head, "<Q", 1024 + 36)[0] << _small(_fields(head, "<I", 1024 + 16)[0]))


def _ufs(head: bytes) -> int:
    return int(_fields(head, "<i", 65536 + 52)[0] * _fields(head, "<q", 65536 + 1080)[0])


def _zfs(head: bytes) -> int:
    match = _ZFS_ASIZE.search(head)
    return int.from_bytes(match[1], "big") + _ZFS_FRONT + _ZFS_END if match else 0


def _array(head: bytes) -> int:
    if head[4096:4100] != b"\xfc\x4e\x2b\xa9":  # formats 0.90 and 1.0 lie at the end, and go with it
        return 0
    first, sectors = _fields(head, "<QQ", 4096 + 128)
    return int((first + sectors) * 512)


def _small(shift: int) -> int:
    """Return the logarithm of a block's size. Raises OverflowError for one that no filesystem has."""
    if shift > 25:
        raise OverflowError
    return shift


_READERS: dict[str, Callable[[bytes], int]] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), _ext),
    **{"xfs": _xfs, "btrfs": _btrfs, "jfs": _jfs, "reiserfs": _reiserfs, "reiser4": _reiser4},
    **{"nilfs2": _nilfs2, "ntfs": _ntfs, "vfat": _vfat, "exfat": _exfat, "f2fs": _f2fs, "ufs": _ufs},
    **{"zfs_member": _zfs, "linux_raid_member": _array},
}
