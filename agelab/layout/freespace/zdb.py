"""zfs on one device: ``zdb -e -p DIRECTORY -mmm POOL`` of zfs-fuse (cmd/zdb/zdb.c, dump_metaslabs).

The device is divided into metaslabs; of each the log of its allocations and frees is printed, which is played back
here, and must leave as many free segments as zdb says. Offsets count from behind the two labels and the boot area
at the device's beginning (4 MiB), which are all of the metadata that is named: what is allocated is not told apart.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agelab.layout.freespace.runs import (
    FormatError,
    Run,
    build_free_space,
    join_runs,
    numbered_lines,
    subtract,
    to_bytes,
)
from agelab.layout.model import FreeSpace

LABELS = 4 << 20
"""VDEV_LABEL_START_SIZE."""
_DEVICE = re.compile(r"\tvdev +(\d+)")
_COUNT = re.compile(r"\tmetaslabs +(\d+) ")
_METASLAB = re.compile(r"\tmetaslab +\d+ +offset +([0-9a-f]+) ")
_SEGMENTS = re.compile(r"\t +segments +(\d+) ")
_ENTRY = re.compile(r"\t +\[ *\d+\] +([AF]) +range: ([0-9a-f]+)-([0-9a-f]+) ")


@dataclass
class _Metaslab:
    line: int
    start: int
    segments: int = -1
    log: list[tuple[int, str, Run]] = field(default_factory=list)

    def free(self, end: int) -> tuple[Run, ...]:
        """Replay the log and return the free space. Raises FormatError if that is impossible."""
        taken: list[Run] = []
        for letters in _turns(self.log):
            runs = [run for _, _, run in letters]
            if letters[0][1] == "A":
                taken += runs
            else:
                taken = list(subtract(taken, runs))
        found = subtract([(self.start, end - self.start)], taken)
        if len(found) != self.segments:
            what = f"its log leaves {len(found)} free segments, it says {self.segments}"
            raise FormatError(f"the metaslab at {self.start}: {what}", self.line)
        return found


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for several devices, or a log that does not match the number of segments."""
    slabs: list[_Metaslab] = []
    count = 0
    for number, line in numbered_lines(output):
        if match := _ENTRY.match(line):
            if not slabs:
                raise FormatError("a log comes before its metaslab", number)
            start, end = int(match[2], 16), int(match[3], 16)
            slabs[-1].log.append((number, match[1], (start, end - start)))
        elif match := _METASLAB.match(line):
            slabs.append(_Metaslab(number, int(match[1], 16)))
        elif (match := _SEGMENTS.match(line)) and slabs:
            slabs[-1].segments = int(match[1])
        elif (match := _DEVICE.match(line)) and match[1] != "0":
            raise FormatError("the pool lies on more than one device", number)
        elif match := _COUNT.match(line):
            count = int(match[1])
    if len(slabs) < 2 or len(slabs) != count:
        raise FormatError(f"{len(slabs)} metaslabs are listed of {count}")
    size = slabs[1].start - slabs[0].start  # all have the same size
    free = [run for slab in slabs for run in slab.free(slab.start + size)]
    return build_free_space(LABELS + count * size, to_bytes(join_runs(free), 1, LABELS), [(0, LABELS)])


def _turns(log: list[tuple[int, str, Run]]) -> Iterator[list[tuple[int, str, Run]]]:
    """Yield the log in stretches of allocations and of frees."""
    turn: list[tuple[int, str, Run]] = []
    for entry in log:
        if turn and turn[0][1] != entry[1]:
            yield turn
            turn = []
        turn.append(entry)
    if turn:
        yield turn
