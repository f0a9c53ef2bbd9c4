"""Free space: a parser for each tool's output.

A filesystem's file names the tool and the format of its output (scenarios/filesystems/, free_space). All places are
bytes on the disk under test; docs/measures.md lists what each tool does not report.
"""

import struct

from agelab.base.errors import AgelabError, unknown
from agelab.evaluate.layout.freespace import (
    bcachefs,
    btrfs,
    debugfs_reiser4,
    debugreiserfs,
    dumpe2fs,
    exfat,
    f2fs,
    jfs,
    ntfs,
    ufs,
    vfat,
    xfs_db,
    zdb,
)
from agelab.evaluate.layout.freespace.runs import FormatError
from agelab.evaluate.layout.model import FreeSpace

__all__ = ["FORMATS", "UnexpectedOutput", "parse"]

FORMATS = {
    "bcachefs": ("bcachefs", bcachefs.parse),
    "btrfs": ("btrfs", btrfs.parse),
    "debugreiserfs": ("debugreiserfs", debugreiserfs.parse),
    "debugfs.reiser4": ("debugfs.reiser4", debugfs_reiser4.parse),
    "dumpe2fs": ("dumpe2fs", dumpe2fs.parse),
    "exfat": ("dd (exfat) and dump.exfat", exfat.parse),
    "f2fs": ("dump.f2fs", f2fs.parse),
    "jfs": ("head (jfs)", jfs.parse),
    "ntfs": ("ntfscat and ntfsinfo", ntfs.parse),
    "ufs": ("checkufs --free", ufs.parse),
    "vfat": ("head (vfat)", vfat.parse),
    "xfs_db": ("xfs_db", xfs_db.parse),
    "zdb": ("zdb", zdb.parse),
}
"""Tool and parser by format of a filesystem's free_space."""


class UnexpectedOutput(AgelabError):
    """A tool's output is not as its parser expects."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what, hint="the free space is not measured; a newer version of the tool may print something else"
        )


def parse(format: str, output: bytes) -> FreeSpace:
    """Parse a tool's output. Raises InputError for an unknown format, UnexpectedOutput for unexpected output."""
    if format not in FORMATS:
        raise unknown("format of free space", format, list(FORMATS))
    tool, parser = FORMATS[format]
    try:
        return parser(output)
    except FormatError as error:
        where = f"line {error.line} of " if error.line else ""
        raise UnexpectedOutput(f"{where}{tool}'s output: {error}") from error
    except (ValueError, IndexError, struct.error) as error:
        raise UnexpectedOutput(f"{format}'s output: it cannot be understood: {error}") from error
