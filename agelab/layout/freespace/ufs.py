"""ufs: ``checkufs --free DEVICE`` (harness/filesystems/checkufs.c), which reads each group's map of free fragments.

Metadata are the superblock and its copies, the groups' own blocks, the inodes and the groups' summaries; directories
and indirect blocks are not told apart from files.
"""

from agelab.layout.freespace.runs import Run, UnexpectedOutput, build_free_space
from agelab.layout.model import FreeSpace

TOOL = "checkufs --free"
_HEADER = ["agelab-ufs", "1"]


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises Unreadable if it is not checkufs's, or the runs disagree with the superblock."""
    first, *lines = output.decode("ascii").splitlines() or [""]
    words = first.split()
    if words[:2] != _HEADER or len(words) != 5:
        raise UnexpectedOutput(TOOL, 1, f"it begins with {first[:40]!r}")
    size, free = int(words[3]), int(words[4])
    runs: dict[str, list[Run]] = {"F": [], "M": []}
    for number, line in enumerate(lines, start=2):
        kind, _, run = line.partition(" ")
        start, _, length = run.partition(" ")
        if kind not in runs or not (start.isdigit() and length.isdigit()):
            raise UnexpectedOutput(TOOL, number, f"{line[:40]!r} is no run")
        runs[kind].append((int(start), int(length)))
    return build_free_space(TOOL, size, runs["F"], runs["M"], free=free)
