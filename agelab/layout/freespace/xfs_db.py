"""xfs: ``xfs_db -r -c "sb 0" -c "p blocksize ..." -c "freesp -d" DEVICE`` (xfsprogs, db/freesp.c).

freesp walks each group's tree of free space and its free list (AGFL: blocks kept for those trees, which the
superblock counts as free too). Metadata are the log, and each group's four header sectors; the inodes' and the
trees' places are not printed.
"""

import re
from collections.abc import Iterator

from agelab.layout.freespace.runs import Run, UnexpectedOutput, build_free_space, to_bytes
from agelab.layout.model import FreeSpace

_FIELD = re.compile(r"(\w+) = (\d+)")
_RUN = re.compile(r" +(\d+) +(\d+) +(\d+)")
_BEGIN = ["agno", "agbno", "len"]
_END = ["from", "to", "extents", "blocks", "pct"]
_NEEDED = (
    *("blocksize", "dblocks", "agblocks", "agblklog", "agcount", "sectsize"),
    *("logstart", "logblocks", "fdblocks"),
)


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises Unreadable for an unexpected line, or runs that disagree with the superblock's count."""
    fields: dict[str, int] = {}
    runs: list[Run] = []
    listing = ended = False
    for number, line in enumerate(output.decode(errors="replace").splitlines(), 1):
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
                raise UnexpectedOutput("xfs_db", number, f"{line!r:.60} is no extent of freesp -d")
            group, start, length = (int(word) for word in match.groups())
            runs.append((group * fields.get("agblocks", 0) + start, length))
    if missing := [name for name in _NEEDED if name not in fields]:
        raise UnexpectedOutput("xfs_db", None, f"there is no {missing[0]!r} in it")
    if not ended:
        raise UnexpectedOutput("xfs_db", None, "the list of free extents has no end")
    unit = fields["blocksize"]
    return build_free_space(
        "xfs_db",
        fields["dblocks"] * unit,
        to_bytes(runs, unit),
        to_bytes(_metadata(fields), unit),
        fields["fdblocks"] * unit,
    )


def _metadata(fields: dict[str, int]) -> Iterator[Run]:
    headers = -(-4 * fields["sectsize"] // fields["blocksize"])
    for group in range(fields["agcount"]):
        yield group * fields["agblocks"], headers
    if fields["logstart"]:  # 0: the log lies on another device
        group = fields["logstart"] >> fields["agblklog"]
        within = fields["logstart"] & ((1 << fields["agblklog"]) - 1)
        yield group * fields["agblocks"] + within, fields["logblocks"]
