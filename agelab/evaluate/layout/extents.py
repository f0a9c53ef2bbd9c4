"""Parse the extent mapper's output into an ExtentMap; harness/tools/extents.c documents each line."""

import re
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from agelab.base.errors import AgelabError
from agelab.evaluate.layout.model import Extent, ExtentMap, FileMap

_HEADER = re.compile(rb"agelab-extents 1 ([1-9]\d{0,9}) (fiemap|fibmap)")
_FILE = re.compile(rb"F (\d{1,20}) (\d{1,20}) (\d{1,20}) (\d{1,20}) ((?:[!-\[\]-~]|\\[0-3][0-7]{2})+)")
_EXTENT = re.compile(rb"E (\d{1,20}) (\d{1,20}) ([1-9]\d{0,19}) ([\da-f]{1,16})")
_UNMAPPED = re.compile(rb"N ([ -~]+)")
_ESCAPED = re.compile(rb"\\(\d{3})")


@dataclass
class _FileLines:
    """A file whose lines are being read."""

    path: str
    inode: int
    size: int
    allocated: int
    links: int
    extents: list[Extent] = field(default_factory=list)
    unmapped: str | None = None

    def done(self) -> FileMap:
        return FileMap(**{**vars(self), "extents": tuple(self.extents)})


def parse_extents(text: bytes) -> ExtentMap:
    """Parse the output of the mapper.

    Bytes of a name that are not UTF-8 become surrogates (PEP 383), as in Python's file names. Raises AgelabError with
    the line number for any unexpected line: a map is complete or not used.
    """
    lines = text.split(b"\n")
    if lines.pop():
        _reject(len(lines) + 1, b"the text ends within a line")
    header = _HEADER.fullmatch(lines[0]) if lines else None
    if not header:
        _reject(1, b"not the first line of an extent map")
    files: list[FileMap] = []
    current: _FileLines | None = None
    for number, line in enumerate(lines[1:], start=2):
        if match := _FILE.fullmatch(line):
            if current:
                files.append(current.done())
            inode, size, allocated, links = map(int, match.groups()[:4])
            current = _FileLines(_unescape(match[5]), inode, size, allocated, links)
        elif current is None or current.unmapped is not None:
            _reject(number, b"no file's line: " + line)
        elif match := _EXTENT.fullmatch(line):
            logical, physical, length = map(int, match.groups()[:3])
            last = current.extents[-1] if current.extents else None
            if last and logical < last.logical + last.length:
                _reject(number, b"an extent that begins before the end of the one above it: " + line)
            current.extents.append(Extent(logical, physical, length, int(match[4], 16)))
        elif (match := _UNMAPPED.fullmatch(line)) and not current.extents:
            current.unmapped = match[1].decode()
        else:
            _reject(number, b"not a line of an extent map: " + line)
    if current:
        files.append(current.done())
    method: Literal["fiemap", "fibmap"] = "fiemap" if header[2] == b"fiemap" else "fibmap"
    return ExtentMap(block_size=int(header[1]), method=method, files=tuple(files))


def _unescape(path: bytes) -> str:
    plain = _ESCAPED.sub(lambda escape: bytes([int(escape[1], 8)]), path)
    return plain.decode("utf-8", "surrogateescape")


def _reject(line: int, what: bytes) -> NoReturn:
    raise AgelabError(f"extent map, line {line}: {what[:120].decode('ascii', 'backslashreplace')}")
