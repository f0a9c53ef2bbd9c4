"""reiserfs: ``debugreiserfs -m DEVICE`` (reiserfsprogs, reiserfscore/prints.c).

The bitmap as ranges of busy and free blocks. Metadata are the superblock, the bitmaps and the journal; the tree's
nodes lie among the data and are not told apart.
"""

import re
from collections.abc import Iterator

from agelab.evaluate.layout.freespace.runs import FormatError, Run, build_free_space, numbered_lines
from agelab.evaluate.layout.model import FreeSpace

_FIELDS = {
    "count of blocks": re.compile(r"Count of blocks on the device: (\d+)"),
    "block size": re.compile(r"Blocksize: (\d+)"),
    "free blocks": re.compile(r"Free blocks \(.*\): (\d+)"),
    "superblock": re.compile(r"Reiserfs super block in block (\d+) "),
    "journal's size": re.compile(r"\tSize (\d+) blocks \(including 1 for journal header\) \(first block \d+\)"),
    "journal's place": re.compile(r"\tSize \d+ blocks \(including 1 for journal header\) \(first block (\d+)\)"),
}
_BITMAP = re.compile(r"#\d+: block (\d+): (.*)")
_RANGE = re.compile(r"(Busy|Free) ?\((\d+)-(\d+)\) ?")


def parse(output: bytes) -> FreeSpace:
    """Parse the output. Raises FormatError for an unexpected line, or if bitmaps and superblock disagree on the free
    blocks."""
    fields: dict[str, int] = {}
    runs: list[Run] = []
    own: list[Run] = []
    for number, line in numbered_lines(output):
        for name, pattern in _FIELDS.items():
            if match := pattern.match(line):
                fields[name] = int(match[1])
        if match := _BITMAP.match(line):
            own.append((int(match[1]), 1))
            runs += _free(match[2], number)
    if missing := [name for name in _FIELDS if name not in fields]:
        raise FormatError(f"no line of it gives the {missing[0]}")
    own += [(fields["superblock"], 1), (fields["journal's place"], fields["journal's size"])]
    return build_free_space(fields["count of blocks"], runs, own, fields["free blocks"], unit=fields["block size"])


def _free(text: str, number: int) -> Iterator[Run]:
    at = 0
    while at < len(text):
        match = _RANGE.match(text, at)
        if match is None:
            raise FormatError(f"{text[at : at + 40]!r} is no range of blocks", number)
        if match[1] == "Free":
            yield int(match[2]), int(match[3]) - int(match[2]) + 1
        at = match.end()
