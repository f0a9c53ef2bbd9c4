"""ntfs: boot sector, ``ntfscat DEVICE '$Bitmap'``, ``ntfscluster -i -f`` and ``ntfsinfo -v`` of the system files.

The bitmap has one bit for each cluster, the lowest of a byte first; ntfscluster gives the total that it must add up
to. Metadata are what ntfsinfo lists as runs of the system files: the file table and its copy, the log, the bitmap,
the boot file and the upper-case table. Security descriptors and the indexes of directories are not told apart.
"""

import re
import struct
from collections.abc import Iterator

from agelab.layout.freespace.runs import Run, UnexpectedOutput, build_free_space, clear_bits, to_bytes
from agelab.layout.model import FreeSpace

TOOL = "ntfscat and ntfsinfo"
SYSTEM_FILES = 6
"""$MFT, $MFTMirr, $LogFile, $Bitmap, $Boot and $UpCase, whose runs are queried."""
_TOTAL = re.compile(r"clusters of free space +: (\d+)")
_RUN = re.compile(r"\t\t\t0x[0-9a-f]+\t\t0x([0-9a-f]+)\t\t0x([0-9a-f]+)")


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises Unreadable if it is not NTFS, or the bitmap does not add up to the total."""
    if output[3:11] != b"NTFS    ":
        raise UnexpectedOutput(TOOL, None, "it does not begin with the boot sector of an NTFS")
    sector, per_cluster = struct.unpack_from("<HB", output, 11)
    [sectors] = struct.unpack_from("<Q", output, 40)
    # More than 128 sectors are given as a negative power of two.
    unit = sector * (per_cluster if per_cluster <= 128 else 1 << (256 - per_cluster))
    clusters = sectors * sector // unit
    bitmap = -(-clusters // 64) * 8
    text = output[512 + bitmap :].decode(errors="replace")
    total = _TOTAL.search(text)
    if total is None:
        raise UnexpectedOutput(
            TOOL, None, "there is no line of ntfscluster with the free clusters after the bitmap"
        )
    if text.count("End of inode reached") < SYSTEM_FILES:
        raise UnexpectedOutput(TOOL, None, "ntfsinfo's lists of the system files are not whole")
    return build_free_space(
        TOOL,
        clusters * unit,
        to_bytes(clear_bits(output[512 : 512 + bitmap], clusters), unit),
        to_bytes(_system_files(text), unit),
        free=int(total[1]) * unit,
    )


def _system_files(text: str) -> Iterator[Run]:
    for line in text.splitlines():
        if match := _RUN.fullmatch(line.rstrip()):
            yield int(match[1], 16), int(match[2], 16)
