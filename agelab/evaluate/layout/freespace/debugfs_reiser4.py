"""reiser4: ``debugfs.reiser4 -s -a DEVICE`` (reiser4progs, plugin/alloc/alloc40).

The superblocks, and the bitmap as runs of used blocks. Metadata are the first 64 KiB, the superblocks, the status block
and the bitmaps; the tree's nodes and the journal lie among the data and are not told apart.
"""

import re

from agelab.evaluate.layout.freespace.runs import (
    FormatError,
    Run,
    build_free_space,
    numbered_lines,
    subtract,
    total_bytes,
)
from agelab.evaluate.layout.model import FreeSpace

_FIELDS = {
    "blksize": re.compile(r"blksize:\s+(\d+)"),
    "free blocks": re.compile(r"free blocks:\s+(\d+)"),
    "total blocks": re.compile(r"total blocks:\s+(\d+)"),
    "used blocks": re.compile(r"used blocks:\s+(\d+)"),
    "status block": re.compile(r"FS status block \((\d+)\)"),
    "superblock": re.compile(r"Format super block \((\d+)\)"),
}
_BITMAP = re.compile(r"\s+(\d+) \[ 0x[0-9a-f]+ \] \d+")
_MAP = re.compile(r"Block map:\s*\[([^\]]*)\]")
_RUN = re.compile(r"(\d+)\((\d+)\)")


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for an unexpected line, or if map, allocator and superblock disagree."""
    fields: dict[str, list[int]] = {name: [] for name in _FIELDS}
    own: list[Run] = []
    for _, line in numbered_lines(output):
        for name, pattern in _FIELDS.items():
            if match := pattern.match(line):
                fields[name].append(int(match[1]))
        if match := _BITMAP.fullmatch(line):
            own.append((int(match[1]), 1))
    whole = _MAP.search(output.decode(errors="replace"))
    if whole is None or not all(fields.values()):
        missing = next((name for name, values in fields.items() if not values), "block map")
        raise FormatError(f"no line of it gives the {missing}")
    words = whole[1].split()
    runs = [_RUN.fullmatch(word) for word in words]
    if wrong := [word for word, match in zip(words, runs, strict=True) if match is None]:
        raise FormatError(f"{wrong[0][:40]!r} is no run of blocks")
    used = [(int(match[1]), int(match[2])) for match in runs if match]
    if total_bytes(used) != fields["used blocks"][0]:
        raise FormatError(f"its map has {total_bytes(used)} used blocks, its total is {fields['used blocks'][0]}")
    if len(totals := set(fields["free blocks"])) != 1:
        raise FormatError(
            f"superblock and block allocator tell of {' and '.join(map(str, sorted(totals)))} free blocks"
        )
    blocks = fields["total blocks"][0]
    own += [(0, fields["superblock"][0] + 1), (fields["status block"][0], 1)]
    return build_free_space(
        blocks, subtract([(0, blocks)], used), own, fields["free blocks"][0], unit=fields["blksize"][0]
    )
