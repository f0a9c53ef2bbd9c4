"""bcachefs on one device: lines of ``bcachefs show-super`` and of ``bcachefs list`` of three trees.

The device is divided into buckets. The tree ``freespace`` has a key for each run of free buckets, by its end and
length; ``alloc`` says what each of the others holds, ``accounting`` how many there are of each kind. Only free buckets
take new data: what is left of others comes back when all in them has moved. Metadata are buckets of superblocks,
journal and trees.
"""

import re
from fractions import Fraction

from agelab.evaluate.layout.freespace.runs import FormatError, Run, build_free_space, numbered_lines
from agelab.evaluate.layout.model import FreeSpace

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"\s*Bucket size:\s+([0-9.]+) (B|KiB|MiB|GiB)")
_COUNT = re.compile(r"\s*Buckets:\s+(\d+)")
_DEVICES = re.compile(r"Devices:\s+(\d+)")
_RUN = re.compile(r"u64s \d+ type set 0:(\d+):0 len (\d+) ver \d+")
_TOTAL = re.compile(r"u64s .* dev_data_type dev=0 data_type=(\w+) (\d+) ")
_BUCKET = re.compile(r"u64s \d+ type alloc_v\d+ (?:0:(\d+):0|POS_MIN) len 0 ver \d+: *")
_HOLDS = re.compile(r"\s*gen \d+ oldest_gen \d+ data_type (\w+)")
_OWN = ("sb", "journal", "btree")
_NUMBER = (1 << 56) - 1
"""Of a key of ``freespace``: what is above are bits of the bucket's generation."""


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for several devices, or where the trees do not agree."""
    unit = count = bucket = None
    totals: dict[str, int] = {}
    free: list[Run] = []
    held: dict[str, list[Run]] = {kind: [] for kind in _OWN}
    for number, line in numbered_lines(output):
        if match := _RUN.fullmatch(line):
            end, length = int(match[1]) & _NUMBER, int(match[2])
            free.append((end - length, length))
        elif match := _BUCKET.fullmatch(line):
            bucket = int(match[1] or 0)
        elif match := _HOLDS.fullmatch(line):
            if bucket is None:
                raise FormatError("what a bucket holds comes before the bucket", number)
            held.setdefault(match[1], []).append((bucket, 1))
        elif match := _TOTAL.match(line):
            totals[match[1]] = int(match[2])
        elif match := _SIZE.fullmatch(line):
            unit = Fraction(match[1]) * _UNITS[match[2]]
        elif match := _COUNT.fullmatch(line):
            count = int(match[1])
        elif (match := _DEVICES.fullmatch(line)) and match[1] != "1":
            raise FormatError("it lies on more than one device", number)
    if unit is None or count is None or "free" not in totals:
        raise FormatError("size and number of its buckets, and of the free ones, are not all told")
    for kind in _OWN:
        if len(held[kind]) != totals.get(kind, 0):
            raise FormatError(f"{len(held[kind])} buckets hold {kind}, its total is {totals.get(kind, 0)}")
    if unit.denominator != 1:
        raise FormatError(f"a bucket has {float(unit)} bytes")
    own = [run for kind in _OWN for run in held[kind]]
    return build_free_space(count, free, own, totals["free"], unit=int(unit))
