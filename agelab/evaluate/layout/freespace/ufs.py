"""ufs: ``checkufs --free DEVICE`` (harness/filesystems/checkufs.c), which reads each group's map of free fragments.

Metadata are the superblock and its copies, the groups' own blocks, the inodes and the groups' summaries; directories
and indirect blocks are not told apart from files.
"""

from agelab.evaluate.layout.freespace.runs import FormatError, Run, build_free_space
from agelab.evaluate.layout.model import FreeSpace

_HEADER = ["agelab-ufs", "1"]


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError if it is not checkufs's, or the runs disagree with the superblock."""
    first, *lines = output.decode("ascii").splitlines() or [""]
    words = first.split()
    if words[:2] != _HEADER or len(words) != 5:
        raise FormatError(f"it begins with {first[:40]!r}", 1)
    size, free = int(words[3]), int(words[4])
    runs: dict[str, list[Run]] = {"F": [], "M": []}
    for number, line in enumerate(lines, start=2):
        kind, _, run = line.partition(" ")
        start, _, length = run.partition(" ")
        if kind not in runs or not (start.isdigit() and length.isdigit()):
            raise FormatError(f"{line[:40]!r} is no run", number)
        runs[kind].append((int(start), int(length)))
    return build_free_space(size, runs["F"], runs["M"], free=free)
