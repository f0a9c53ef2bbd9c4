"""vfat: the boot sector and the first file allocation table of FAT32, as they are (``head -c``).

No tool of dosfstools lists free clusters, and the table is a plain array (Microsoft, "FAT: General Overview of
On-Disk Format", 1.03): 32 bits for each cluster, the lower 28 of them 0 where it is free. Metadata are the boot
sectors and the tables; directories are files like others.
"""

import struct
from array import array
from collections.abc import Iterator
from sys import byteorder

from agelab.evaluate.layout.freespace.runs import FormatError, Run, build_free_space, to_bytes
from agelab.evaluate.layout.model import FreeSpace


def parse(output: bytes) -> FreeSpace:
    """Parse the blocks. Raises FormatError if it is not FAT32, or the table is incomplete."""
    if len(output) < 512 or output[510:512] != b"\x55\xaa":
        raise FormatError("it does not begin with a boot sector")
    # BPB_BytsPerSec, SecPerClus, RsvdSecCnt, NumFATs; then FATSz16, TotSec32 and FATSz32.
    sector, per_cluster, reserved, tables = struct.unpack_from("<HBHB", output, 11)
    [small_table] = struct.unpack_from("<H", output, 22)
    sectors, table = struct.unpack_from("<II", output, 32)
    if small_table or not (sector and per_cluster and table):
        raise FormatError("it is FAT12, FAT16 or no FAT at all")
    first = reserved + tables * table
    clusters = (sectors - first) // per_cluster
    entries = array("I", output[reserved * sector :][: 4 * (clusters + 2)])
    if len(entries) < clusters + 2:
        raise FormatError(f"the table has {len(entries)} entries, the filesystem {clusters} clusters")
    if byteorder == "big":
        entries.byteswap()
    unit = per_cluster * sector
    return build_free_space(
        first * sector + clusters * unit,
        to_bytes(_free(entries), unit, first * sector - 2 * unit),  # clusters are numbered from 2
        [(0, first * sector)],
    )


def _free(entries: "array[int]") -> Iterator[Run]:
    start = -1
    for cluster in range(2, len(entries)):
        if entries[cluster] & 0x0FFFFFFF:
            if start >= 0:
                yield start, cluster - start
                start = -1
        elif start < 0:
            start = cluster
    if start >= 0:
        yield start, len(entries) - start
