"""Follow places on the disk under test through its layout to its drives, by what the guest's kernel tells of it.

The guest writes lines (harness/mapping.py): ``member NUMBER DEVICE``, ``top DEVICE``, ``dm DEVICE TABLE...`` (dmsetup
table: the kernel's Documentation/admin-guide/device-mapper) and ``md DEVICE LEVEL CHUNK LAYOUT OFFSET:DEVICE...``
(admin-guide/md.rst), where a device is its two numbers, chunks are bytes and offsets sectors.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agelab.base.errors import AgelabError

SECTOR = 512
LEFT_SYMMETRIC = 2
Place = tuple[str, int, int]
"""Device, offset and length in bytes."""


class NotFollowed(AgelabError):
    """The kernel does not tell where data lie; the message says of what."""


@dataclass
class Mapping:
    """The devices of a disk, from the one that the filesystem is on to its members."""

    top: str = ""
    members: dict[str, int] = field(default_factory=dict)
    """Device to its number."""
    devices: dict[str, list[Callable[[int, int], Iterator[Place]]]] = field(default_factory=dict)
    """Device to what takes offset and length to the devices below; dm has one for each line of a table."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Device to the kind of mapping that the kernel does not tell of."""

    def follow(self, offset: int, length: int) -> list[tuple[int, int, int]]:
        """Return member, offset and length of each piece. Raises NotFollowed."""
        pieces: list[tuple[int, int, int]] = []
        for device, start, size in self._pieces((self.top, offset, length)):
            member = self.members[device]
            if pieces and pieces[-1][0] == member and sum(pieces[-1][1:]) == start:
                size += pieces[-1][2]
                start = pieces.pop()[1]
            pieces.append((member, start, size))
        return pieces

    def _pieces(self, place: Place, depth: int = 0) -> Iterator[Place]:
        device, offset, length = place
        if device in self.members:
            yield place
            return
        if device in self.unknown:
            raise NotFollowed(f"the kernel does not tell where {self.unknown[device]} puts data on its drives")
        if device not in self.devices or depth > len(self.devices):
            raise NotFollowed(f"the kernel does not tell where device {device} puts data on its drives")
        for below in self.devices[device]:
            for piece in below(offset, length):
                yield from self._pieces(piece, depth + 1)


def parse_mapping(text: bytes) -> Mapping:
    """Parse what a guest has written. Raises AgelabError for a line that is none."""
    mapping = Mapping()
    for number, line in enumerate(text.decode("ascii", "replace").splitlines(), start=1):
        kind, *words = line.split()
        try:
            if kind == "member":
                mapping.members[words[1]] = int(words[0])
            elif kind == "top":
                [mapping.top] = words
            elif kind == "dm":
                _add_target(mapping, words[0], words[1:])
            elif kind == "md":
                _add_array(mapping, words[0], words[1], int(words[2]), int(words[3]), words[4:])
            else:
                raise ValueError(kind)
        except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
            raise AgelabError(f"mapping of the disk, line {number}: not as expected: {line[:80]!r}") from error
    return mapping


def _add_target(mapping: Mapping, device: str, words: Sequence[str]) -> None:
    """Add a line of a dm table."""
    begin, sectors, target = int(words[0]) * SECTOR, int(words[1]) * SECTOR, words[2]
    arguments = words[3:]
    if target == "linear":
        below = _shifted(begin, sectors, arguments[0], int(arguments[1]) * SECTOR)
    elif target == "crypt":
        below = _shifted(begin, sectors, arguments[3], int(arguments[4]) * SECTOR)
    elif target == "snapshot-origin":
        below = _shifted(begin, sectors, arguments[0], 0)
    elif target == "striped":
        pairs = [(lower, int(start) * SECTOR) for lower, start in zip(arguments[2::2], arguments[3::2], strict=True)]
        below = _striped(begin, sectors, int(arguments[1]) * SECTOR, pairs)
    else:
        mapping.unknown[device] = f"dm-{target}"
        return
    mapping.devices.setdefault(device, []).append(below)


def _add_array(mapping: Mapping, device: str, level: str, chunk: int, layout: int, slots: Sequence[str]) -> None:
    """Add an array of md, whose members have the same size."""
    parts = [(member, int(offset) * SECTOR) for offset, _, member in (slot.partition(":") for slot in slots)]
    if level == "raid0":
        mapping.devices[device] = [_striped(0, 1 << 62, chunk, parts)]
    elif level == "raid1":  # each holds the same: the first stands for all
        mapping.devices[device] = [_shifted(0, 1 << 62, *parts[0])]
    elif level == "raid5" and layout == LEFT_SYMMETRIC:
        mapping.devices[device] = [_with_parity(chunk, parts)]
    else:
        mapping.unknown[device] = f"md's {level}, layout {layout},"


def _shifted(begin: int, size: int, device: str, start: int) -> Callable[[int, int], Iterator[Place]]:
    def below(offset: int, length: int) -> Iterator[Place]:
        first, end = max(offset, begin), min(offset + length, begin + size)
        if first < end:
            yield device, start + first - begin, end - first

    return below


def _chunks(offset: int, length: int, chunk: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, offset within and length of each chunk's part."""
    while length > 0:
        number, within = divmod(offset, chunk)
        size = min(length, chunk - within)
        yield number, within, size
        offset, length = offset + size, length - size


def _striped(
    begin: int, size: int, chunk: int, parts: Sequence[tuple[str, int]]
) -> Callable[[int, int], Iterator[Place]]:
    def below(offset: int, length: int) -> Iterator[Place]:
        first, end = max(offset, begin), min(offset + length, begin + size)
        for number, within, piece in _chunks(first - begin, end - first, chunk):
            row, which = divmod(number, len(parts))
            device, start = parts[which]
            yield device, start + row * chunk + within, piece

    return below


def _with_parity(chunk: int, parts: Sequence[tuple[str, int]]) -> Callable[[int, int], Iterator[Place]]:
    """The data of RAID-5, left-symmetric: they begin behind the parity, which moves one to the left in each row."""
    count = len(parts)

    def below(offset: int, length: int) -> Iterator[Place]:
        for number, within, piece in _chunks(offset, length, chunk):
            row, which = divmod(number, count - 1)
            parity = count - 1 - row % count
            device, start = parts[(parity + 1 + which) % count]
            yield device, start + row * chunk + within, piece

    return below
