"""zfs on one device: ``zdb -e -p DIRECTORY -mmm POOL`` of zfs-fuse, -mmmm of OpenZFS (cmd/zdb/zdb.c, dump_metaslabs).

The device is divided into metaslabs; of each the log of its allocations and frees is printed, which is played back
here, and must leave as many free segments as zdb says. Offsets count from behind the two labels and the boot area
at the device's beginning (4 MiB), which are all of the metadata that is named: what is allocated is not told apart.
OpenZFS' segments are those of 16 KiB and more alone (metaslab_by_size_min_shift): its histogram counts all of them. It
has logs of the pool, too, which zdb does not count: what is younger there than a metaslab's own log (its unflushed txg)
comes behind that.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from agelab.evaluate.layout.freespace.runs import (
    FormatError,
    Run,
    build_free_space,
    join_runs,
    numbered_lines,
    subtract,
    to_bytes,
)
from agelab.evaluate.layout.model import FreeSpace

LABELS = 4 << 20
"""VDEV_LABEL_START_SIZE."""
_DEVICE = re.compile(r"\tvdev +(\d+)")
_COUNT = re.compile(r"\tmetaslabs +(\d+) ")
_METASLAB = re.compile(r"\tmetaslab +\d+ +offset +([0-9a-f]+) ")
_SEGMENTS = re.compile(r"\t +segments +(\d+) ")
_ENTRY = re.compile(r"\t +\[ *\d+\] +([AF]) +range: ([0-9a-f]+)-([0-9a-f]+) ")
_HISTOGRAM = re.compile(r"\t(In-memory|On-disk) histogram:")
_BAR = re.compile(r"\t\t\t +(\d+): +(\d+) ")
_POOL_LOG = re.compile(r"Log Spacemap object \d+ txg (\d+)")
_UNFLUSHED = re.compile(r"\tunflushed txg=(\d+)")


@dataclass
class _Metaslab:
    line: int
    start: int
    segments: int = -1
    histogram: dict[int, int] | None = None
    """Free segments by the power of two that they reach."""
    unflushed: int = 0
    """Transaction group from which on its log is in those of the pool."""
    log: list[tuple[int, str, Run]] = field(default_factory=list)
    later: list[tuple[int, str, Run]] = field(default_factory=list)
    """What the pool's logs have of it."""

    def free(self, end: int) -> tuple[Run, ...]:
        """Replay the logs and return the free space. Raises FormatError if that is impossible."""
        whole = [(self.start, end - self.start)]
        taken = _replay([], self.log)
        free_runs = subtract(whole, taken)
        if self.histogram is not None:
            lengths = Counter(length.bit_length() - 1 for _, length in free_runs)
            if lengths != {power: count for power, count in self.histogram.items() if count}:
                raise FormatError(
                    f"the metaslab at {self.start}: its log leaves free segments of other lengths than it says",
                    self.line,
                )
        elif len(free_runs) != self.segments:
            what = f"its log leaves {len(free_runs)} free segments, it says {self.segments}"
            raise FormatError(f"the metaslab at {self.start}: {what}", self.line)
        return subtract(whole, _replay(taken, self.later))


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for several devices, or a log that does not match the number of segments."""
    slabs: list[_Metaslab] = []
    count = 0
    txg: int | None = None
    in_memory = False
    logged: list[tuple[int, tuple[int, str, Run]]] = []
    for number, line in numbered_lines(output):
        if match := _ENTRY.match(line):
            if not slabs:
                raise FormatError("a log comes before its metaslab", number)
            start, end = int(match[2], 16), int(match[3], 16)
            entry = (number, match[1], (start, end - start))
            if txg is None:
                slabs[-1].log.append(entry)
            else:
                logged.append((txg, entry))
        elif match := _HISTOGRAM.match(line):
            in_memory = bool(slabs) and match[1] == "In-memory"
            if in_memory:
                slabs[-1].histogram = {}
        elif in_memory and (match := _BAR.match(line)):
            bars = slabs[-1].histogram
            assert bars is not None, "it was made with its first line"
            bars[int(match[1])] = int(match[2])
        elif match := _POOL_LOG.match(line):
            txg = int(match[1])
        elif (match := _UNFLUSHED.match(line)) and slabs:
            slabs[-1].unflushed = int(match[1])
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
    for txg, entry in logged:
        place = (entry[2][0] - slabs[0].start) // size
        if place >= len(slabs):
            raise FormatError("a log of the pool is of no metaslab", entry[0])
        if txg >= slabs[place].unflushed:
            slabs[place].later.append(entry)
    free = [run for slab in slabs for run in slab.free(slab.start + size)]
    return build_free_space(LABELS + count * size, to_bytes(join_runs(free), 1, LABELS), [(0, LABELS)])


def _replay(taken: list[Run], log: list[tuple[int, str, Run]]) -> list[Run]:
    """Return what is taken after a log."""
    for letters in _turns(log):
        runs = [run for _, _, run in letters]
        taken = [*taken, *runs] if letters[0][1] == "A" else list(subtract(taken, runs))
    return taken


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
