"""ntfs: boot sector, ``ntfscat DEVICE '$Bitmap'``, ``ntfscluster -i -f`` and ``ntfsinfo -v`` of the system files.

The bitmap has one bit for each cluster, the lowest of a byte first; ntfscluster gives the total that it must add up
to. Metadata are what ntfsinfo lists as runs of the system files: the file table and its copy, the log, the bitmap,
the boot file and the upper-case table. Security descriptors and the indexes of directories are not told apart.
"""

import re
import struct

from agelab.evaluate.layout.freespace.runs import FormatError, build_free_space, clear_bits
from agelab.evaluate.layout.model import FreeSpace

SYSTEM_FILES = 6
"""$MFT, $MFTMirr, $LogFile, $Bitmap, $Boot and $UpCase, whose runs are queried."""
_TOTAL = re.compile(r"clusters of free space +: (\d+)")
_RUN = re.compile(r"\t\t\t0x[0-9a-f]+\t\t0x([0-9a-f]+)\t\t0x([0-9a-f]+)")


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError if it is not NTFS, or the bitmap does not add up to the total."""
    if output[3:11] != b"NTFS    ":
        raise FormatError("it does not begin with the boot sector of an NTFS")
    sector, per_cluster = struct.unpack_from("<HB", output, 11)
    [sectors] = struct.unpack_from("<Q", output, 40)
    # More than 128 sectors are given as a negative power of two.
    unit = sector * (per_cluster if per_cluster <= 128 else 1 << (256 - per_cluster))
    clusters = sectors * sector // unit
    bitmap = -(-clusters // 64) * 8
    text = output[512 + bitmap :].decode(errors="replace")
    total = _TOTAL.search(text)
    if total is None:
        raise FormatError("there is no line of ntfscluster with the free clusters after the bitmap")
    if text.count("End of inode reached") < SYSTEM_FILES:
        raise FormatError("ntfsinfo's lists of the system files are not whole")
    runs = clear_bits(output[512 : 512 + bitmap], clusters)
    matches = (_RUN.fullmatch(line.rstrip()) for line in text.splitlines())
    system_files = [(int(match[1], 16), int(match[2], 16)) for match in matches if match]
    return build_free_space(clusters, runs, system_files, int(total[1]), unit=unit)
