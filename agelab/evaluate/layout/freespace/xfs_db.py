"""xfs: ``xfs_db -r -c "sb 0" -c "p blocksize ..." -c "freesp -d" DEVICE`` (xfsprogs, db/freesp.c).

freesp walks each group's tree of free space and its free list (AGFL: blocks kept for those trees, which the
superblock counts as free too). Metadata are the log, and each group's four header sectors; the inodes' and the
trees' places are not printed. The superblock also counts the trees' own blocks but their roots as free
(``agf_btreeblks``; fs/xfs/libxfs/xfs_ag.c, xfs_initialize_perag_data), and freesp does not list those.
"""

import re
from collections import Counter
from collections.abc import Iterator

from agelab.evaluate.layout.freespace.runs import (
    FormatError,
    Run,
    build_free_space,
    numbered_lines,
    require_fields,
)
from agelab.evaluate.layout.model import FreeSpace

_FIELD = re.compile(r"(\w+) = (\d+)")
_RUN = re.compile(r" +(\d+) +(\d+) +(\d+)")
_BEGIN = ["agno", "agbno", "len"]
_END = ["from", "to", "extents", "blocks", "pct"]
_NEEDED = (
    *("blocksize", "dblocks", "agblocks", "agblklog", "agcount", "sectsize"),
    *("logstart", "logblocks", "fdblocks"),
)


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for an unexpected line, or runs that disagree with the superblock."""
    fields: dict[str, int] = {}
    runs: list[Run] = []
    listed: Counter[int] = Counter()
    listing = ended = False
    for number, line in numbered_lines(output):
        if match := _FIELD.match(line):
            fields[match[1]] = int(match[2])
        elif line.split() == _BEGIN:
            listing = True
        elif line.split() == _END:
            ended = True
            break
        elif listing:
            match = _RUN.fullmatch(line)
            if match is None:
                raise FormatError(f"{line!r:.60} is no extent of freesp -d", number)
            group, start, length = (int(word) for word in match.groups())
            runs.append((group * fields.get("agblocks", 0) + start, length))
            listed[group] += 1
    require_fields(fields, _NEEDED)
    if not ended:
        raise FormatError("the list of free extents has no end")
    free, unit = sum(length for _, length in runs), fields["blocksize"]
    trees = 2 * sum(_tree_blocks(extents, unit) for extents in listed.values())
    if not 0 <= fields["fdblocks"] - free <= trees:
        free = fields["fdblocks"]
    return build_free_space(fields["dblocks"], runs, _metadata(fields), free, unit=unit)


def _tree_blocks(extents: int, block_bytes: int) -> int:
    """Return how many blocks but its root a tree of so many extents has at most: each is half full, or the root.

    Behind a header of 56 bytes lie extents of 8 bytes, or keys with pointers of 12 (fs/xfs/libxfs/xfs_format.h).
    """
    blocks, level = 0, extents // ((block_bytes - 56) // 8 // 2)
    while level > 1:
        blocks += level
        level //= (block_bytes - 56) // 12 // 2
    return blocks


def _metadata(fields: dict[str, int]) -> Iterator[Run]:
    headers = -(-4 * fields["sectsize"] // fields["blocksize"])
    for group in range(fields["agcount"]):
        yield group * fields["agblocks"], headers
    if fields["logstart"]:  # 0: the log lies on another device
        group = fields["logstart"] >> fields["agblklog"]
        within = fields["logstart"] & ((1 << fields["agblklog"]) - 1)
        yield group * fields["agblocks"] + within, fields["logblocks"]
