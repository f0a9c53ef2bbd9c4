"""ext2, ext3 and ext4: ``dumpe2fs DEVICE`` (e2fsprogs, misc/dumpe2fs.c, list_desc).

Each group's free blocks and where its superblock, descriptors, bitmaps and inode table lie. The journal's place is
not printed: its blocks are neither free nor named.
"""

import re
from collections.abc import Iterator

from agelab.evaluate.layout.freespace.runs import (
    FormatError,
    Run,
    build_free_space,
    numbered_lines,
    require_fields,
)
from agelab.evaluate.layout.model import FreeSpace

_HEADER = re.compile(r"(Block count|Block size|Free blocks|Cluster size|First block): +(\d+)")
_FREE = re.compile(r"  Free blocks: ?(.*)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_OWN = re.compile(
    r"(?:superblock|Group descriptors|GDT blocks|Block bitmap|Inode bitmap|Inode table) at (\d+)(?:-(\d+))?"
)


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for an unexpected line, or groups that do not add up to the total."""
    header: dict[str, int] = {}
    runs: list[Run] = []
    own: list[Run] = []
    for number, line in numbered_lines(output):
        if match := _HEADER.match(line):
            header[match[1]] = int(match[2])
        elif match := _FREE.match(line):
            runs += _ranges(match[1], number)
        elif line.startswith("  "):
            own += [_run(match[1], match[2]) for match in _OWN.finditer(line)]
    require_fields(header, ("Block count", "Block size", "Free blocks"))
    if "Cluster size" in header:
        raise FormatError("blocks are allocated in clusters (bigalloc), which it counts otherwise")
    return build_free_space(header["Block count"], runs, own, header["Free blocks"], unit=header["Block size"])


def _ranges(text: str, number: int) -> Iterator[Run]:
    for part in text.split(", ") if text else ():
        match = _RANGE.fullmatch(part)
        if match is None:
            raise FormatError(f"{part!r:.40} is no range of blocks", number)
        yield _run(match[1], match[2])


def _run(first: str, last: str | None) -> Run:
    return int(first), int(last or first) - int(first) + 1
