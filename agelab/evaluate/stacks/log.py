"""The profiler's log, and the names of what its addresses stand for."""

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from agelab.base.sanitize import escape_controls

CODE_TYPES = "tTwW"
"""The types of symbols that are code (nm(1))."""
VARIANT = re.compile(r"\.(isra|constprop|part|cold|llvm|lto_priv)(\.[0-9]+)*(?=\.|$)")
"""Suffixes of what a compiler made of a function: they differ from build to build."""
SYMBOL = re.compile(r"([0-9a-f]{8,16}) ([A-Za-z]) (\S+)(?:\t\[(\S+)\])?", re.ASCII)
"""A line of /proc/kallsyms: address, type, name, module."""
UNKNOWN = "[unknown]"


def frame(text: str) -> str:
    """Return a name fit for a folded stack: one word, without semicolons."""
    return re.sub(r"[;\s]", "_", escape_controls(text, kept="")) or UNKNOWN


def _preference(name: str, kind: str) -> tuple[int, bool, str]:
    """Sort names of one address: fewest underscores before it, global ones, by the alphabet."""
    return len(name) - len(name.lstrip("_")), kind.islower(), name


@dataclass
class KernelSymbols:
    """The functions of a kernel and its modules."""

    addresses: list[int]
    names: list[str]
    _known: dict[int, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "KernelSymbols":
        """Read /proc/kallsyms. Raises ValueError where it names no function, or hides the addresses."""
        best: dict[int, tuple[tuple[int, bool, str], str]] = {}
        for line in lines:
            match = SYMBOL.fullmatch(line)
            if not match or match[2] not in CODE_TYPES or match[3].startswith("__pfx_"):
                continue
            address, rank = int(match[1], 16), _preference(match[3], match[2])
            name = VARIANT.sub("", match[3])
            if address not in best or rank < best[address][0]:
                best[address] = rank, frame(f"{name}_[{match[4]}]" if match[4] else name)
        if not best.keys() - {0}:
            raise ValueError("it has no symbols of the kernel")
        addresses = sorted(best)
        return cls(addresses, [best[address][1] for address in addresses])

    def name(self, address: int) -> str:
        """Return the function that holds an address."""
        if address not in self._known:
            place = bisect_right(self.addresses, address) - 1
            self._known[address] = self.names[place] if place >= 0 else UNKNOWN
        return self._known[address]


@dataclass(frozen=True)
class MappedFile:
    """A part of a program or library in the memory of a process."""

    first: int
    size: int
    offset: int
    path: str

    @property
    def name(self) -> str:
        """``[cp]``, ``[libc.so.6]``, ``[vdso]``."""
        return f"[{frame(self.path.rpartition('/')[2].strip('[]'))}]"


def program_frame(mappings: Iterable[MappedFile], address: int) -> str | None:
    """Return the frame of a program's address; None for one that is no program's."""
    for mapping in mappings:
        if mapping.first <= address < mapping.first + mapping.size:
            return mapping.name
    return None


STEP, TASKS, RECORDS, SYMBOLS, END = range(1, 6)
BLOCK = 4096
HEAD = struct.Struct("<IIQ")
USED = struct.Struct("<Q")
MAX_CHUNK = 2 << 20
"""Bytes of a chunk at most: the profiler's ring has half of them."""
MAX_SYMBOLS = 64 << 20


class UnreadableLog(ValueError):
    """A log that no profiler has written to its end."""


@dataclass
class StepLog:
    """What was logged of one step."""

    step: str
    repetition: int
    interval: int
    """Nanoseconds of the guest's clock between two samples."""
    profiler: int
    """The process number of the profiler itself."""
    tasks: list[str] = field(default_factory=list)
    """Texts that begin with ``comm <pid>`` or ``maps <pid>`` and a newline; one of a long file follows another."""
    records: list[tuple[int, int]] = field(default_factory=list)
    """Place and size, in the log, of the kernel's records (perf_event_open(2))."""
    symbols: list[tuple[int, int]] = field(default_factory=list)
    """Place and size of the text of /proc/kallsyms; none where it is that of the section before."""
    dropped: int | None = None
    """Samples for which the disk had no room; None where the step's end is missing."""


def sections(file: BinaryIO) -> list[StepLog]:
    """Return the sections of a log. Raises UnreadableLog."""
    steps: list[StepLog] = []
    for kind, place, size in _chunks(file):
        if kind == STEP:
            steps.append(_section(_text(file, place, size)))
            continue
        if not steps:
            raise UnreadableLog(f"its first chunk is of kind {kind}, and begins no step")
        current = steps[-1]
        if kind == TASKS:
            current.tasks.append(_text(file, place, size))
        elif kind == RECORDS:
            current.records.append((place, size))
        elif kind == SYMBOLS:
            current.symbols.append((place, size))
        elif kind == END:
            current.dropped = _dropped(_text(file, place, size))
        else:
            raise UnreadableLog(f"a chunk is of kind {kind}, which there is not")
    return steps


def _chunks(file: BinaryIO) -> Iterator[tuple[int, int, int]]:
    """Yield kind, place and size of the chunks; the rest of a block after the last one of a write is zeros."""
    used = USED.unpack(_read(file, 0, USED.size))[0]
    place = BLOCK
    while place + HEAD.size <= used:
        kind, zero, size = HEAD.unpack(_read(file, place, HEAD.size))
        if kind == 0 and zero == 0:
            place = (place // BLOCK + 1) * BLOCK
            continue
        if zero or size > MAX_CHUNK or place + HEAD.size + size > used:
            raise UnreadableLog(f"the chunk at byte {place} is damaged")
        yield kind, place + HEAD.size, size
        place += HEAD.size + size + -size % HEAD.size


def _read(file: BinaryIO, place: int, size: int) -> bytes:
    file.seek(place)
    data = file.read(size)
    if len(data) != size:
        raise UnreadableLog(f"it ends at byte {place + len(data)}, in the middle of a chunk")
    return data


def _text(file: BinaryIO, place: int, size: int) -> str:
    return _read(file, place, size).decode("utf-8", "replace")


def _section(text: str) -> StepLog:
    words = text.split()
    if len(words) != 4 or not all(word.isascii() and word.isdigit() for word in words[1:]):
        raise UnreadableLog(f"a step begins with {text[:60]!r}")
    repetition, interval, profiler = map(int, words[1:])
    return StepLog(words[0], repetition, interval, profiler)


def _dropped(text: str) -> int:
    words = text.split()
    if len(words) != 2 or words[0] != "dropped" or not (words[1].isascii() and words[1].isdigit()):
        raise UnreadableLog(f"a step ends with {text[:60]!r}")
    return int(words[1])
