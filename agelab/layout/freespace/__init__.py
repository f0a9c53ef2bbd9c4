"""Free space: a parser for each tool's output, and measures.

A filesystem's file names the tool and the format of its output (scenarios/filesystems/, free_space). All places are
bytes on the disk under test; docs/free-space.md lists what each tool does not report.
"""

import struct

from agelab.errors import unknown
from agelab.layout.freespace import btrfs, debugreiserfs, dumpe2fs, f2fs, jfs, ntfs, ufs, vfat, xfs_db, zdb
from agelab.layout.freespace.measures import METRICS, measures
from agelab.layout.freespace.runs import UnexpectedOutput
from agelab.layout.model import FreeSpace

__all__ = ["FORMATS", "METRICS", "UnexpectedOutput", "measures", "parse"]

FORMATS = {
    "btrfs": btrfs.parse,
    "debugreiserfs": debugreiserfs.parse,
    "dumpe2fs": dumpe2fs.parse,
    "f2fs": f2fs.parse,
    "jfs": jfs.parse,
    "ntfs": ntfs.parse,
    "ufs": ufs.parse,
    "vfat": vfat.parse,
    "xfs_db": xfs_db.parse,
    "zdb": zdb.parse,
}
"""Parser by format of a filesystem's free_space."""


def parse(format: str, output: bytes) -> FreeSpace:
    """Parse a tool's output. Raises InputError for an unknown format, Unreadable for unexpected output."""
    if format not in FORMATS:
        raise unknown("format of free space", format, list(FORMATS))
    try:
        return FORMATS[format](output)
    except (ValueError, struct.error) as error:
        raise UnexpectedOutput(format, None, f"it cannot be understood: {error}") from error
