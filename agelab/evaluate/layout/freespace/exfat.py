"""exfat: the boot sector, the root directory's first sector and the allocation bitmap, as they are; ``dump.exfat``.

Microsoft, "exFAT file system specification", 3.1, 6 and 7.1: one bit for each cluster of the heap, set where it
is taken. mkfs.exfat puts the bitmap at the heap's beginning. Metadata are all before the heap, the bitmap and the
table of upper case; directories are files like others.
"""

import re
import struct

from agelab.evaluate.layout.freespace.runs import FormatError, build_free_space, clear_bits, to_bytes
from agelab.evaluate.layout.model import FreeSpace

_SECTOR = 512
_BITMAP, _UPPER_CASE = 0x81, 0x82
_FREE = re.compile(rb"Free Clusters: \t*\s*(\d+)")


def parse(output: bytes) -> FreeSpace:
    """Parse the blocks. Raises FormatError for anything but exFAT, or where bitmap and dump.exfat disagree."""
    if output[3:11] != b"EXFAT   ":
        raise FormatError("it does not begin with a boot sector of exFAT")
    heap, clusters = struct.unpack_from("<II", output, 88)
    sector_shift, cluster_shift = struct.unpack_from("<BB", output, 108)
    unit, start = 1 << sector_shift + cluster_shift, heap << sector_shift
    root = output[_SECTOR : 2 * _SECTOR]
    entries = {root[at]: struct.unpack_from("<IQ", root, at + 20) for at in range(0, _SECTOR, 32)}
    if not {_BITMAP, _UPPER_CASE} <= entries.keys() or entries[_BITMAP][0] != 2:
        raise FormatError("its bitmap is not at the heap's beginning")
    length = -(-clusters // 8)
    bitmap, summary = output[2 * _SECTOR : 2 * _SECTOR + length], output[2 * _SECTOR + length :]
    if len(bitmap) < length or not (free_clusters := _FREE.search(summary)):
        raise FormatError("the bitmap or dump.exfat's free clusters are missing")
    runs = list(clear_bits(bitmap, clusters))
    if (free := sum(count for _, count in runs)) != int(free_clusters[1]):
        raise FormatError(f"its bitmap has {free} free clusters, dump.exfat says {int(free_clusters[1])}")
    own = [
        (start + (first - 2) * unit, -(-size // unit) * unit)
        for first, size in (entries[_BITMAP], entries[_UPPER_CASE])
    ]
    return build_free_space(start + clusters * unit, to_bytes(runs, unit, start), [(0, start), *own])
