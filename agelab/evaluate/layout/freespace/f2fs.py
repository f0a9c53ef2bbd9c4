"""f2fs: ``dump.f2fs -d 1 -s 0~-1 DEVICE`` and the file dump_sit that it writes (f2fs-tools, fsck/dump.c).

The segment information table has one bit for each block of the main area, the highest of a byte first: set where
it holds something valid. Free is every other one: those that the filesystem keeps for cleaning (overprovision,
which statfs does not count) among them. Metadata are what lies before the main area, and the valid blocks of
segments of nodes (inodes and pointers to blocks).
"""

import re

from agelab.evaluate.layout.freespace.runs import (
    FormatError,
    Run,
    build_free_space,
    clear_bits,
    numbered_lines,
    require_fields,
    subtract,
    to_bytes,
)
from agelab.evaluate.layout.model import FreeSpace

_FIELD = re.compile(r"(\w+) +\t\t\[0x *[0-9a-f]+ : (\d+)\]")
_SEGMENT = re.compile(r"segno: *(\d+)\tvblocks: *(\d+)\tseg_type:(\d)\t")
_BYTES = re.compile(r"(?: {1,2}[0-9a-f]{2})+ *")
_NEEDED = ("log_blocksize", "log_blocks_per_seg", "segment_count_main", "main_blkaddr", "valid_block_count")
NODES = (3, 4, 5)
"""CURSEG_HOT_NODE, _WARM_NODE, _COLD_NODE."""


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for an unexpected line, or missing segments or blocks."""
    fields: dict[str, int] = {}
    segments: list[tuple[int, int, int, bytearray]] = []
    for number, line in numbered_lines(output):
        if match := _FIELD.fullmatch(line.rstrip()):
            fields[match[1]] = int(match[2])
        elif match := _SEGMENT.match(line):
            if int(match[1]) != len(segments):
                raise FormatError(f"segment {match[1]} follows after {len(segments)} segments", number)
            segments.append((number, int(match[2]), int(match[3]), bytearray()))
        elif line.startswith("valid_blocks:"):
            break  # the total line
        elif segments and line.strip():
            if not _BYTES.fullmatch(line):
                raise FormatError(f"{line!r:.60} is no part of a segment's bitmap", number)
            segments[-1][3].extend(bytes.fromhex(line))
    require_fields(fields, _NEEDED)
    if len(segments) != fields["segment_count_main"]:
        raise FormatError(f"{len(segments)} segments are listed of {fields['segment_count_main']}")
    return _space(fields, segments)


def _space(fields: dict[str, int], segments: list[tuple[int, int, int, bytearray]]) -> FreeSpace:
    main, blocks = fields["main_blkaddr"], 1 << fields["log_blocks_per_seg"]
    free: list[Run] = []
    own: list[Run] = [(0, main)]
    for segment, (number, valid, kind, bitmap) in enumerate(segments):
        first = main + segment * blocks
        # A segment without valid blocks has no bitmap.
        free_runs = list(to_bytes(clear_bits(bytes(bitmap) or bytes(blocks // 8), blocks, high_first=True), 1, first))
        if sum(length for _, length in free_runs) != blocks - valid:
            raise FormatError(f"the bitmap of segment {segment} does not hold {valid} valid blocks", number)
        free += free_runs
        if kind in NODES:
            own += subtract([(first, blocks)], free_runs)
    size = len(segments) * blocks
    return build_free_space(
        main + size, free, own, size - fields["valid_block_count"], unit=1 << fields["log_blocksize"]
    )
