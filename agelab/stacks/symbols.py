"""Names for addresses: of the kernel by /proc/kallsyms, of programs by what was mapped there."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from agelab.model.sanitize import escape_controls

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
        found: dict[int, tuple[tuple[int, bool, str], str]] = {}
        for line in lines:
            match = SYMBOL.fullmatch(line)
            if not match or match[2] not in CODE_TYPES or match[3].startswith("__pfx_"):
                continue
            address, rank = int(match[1], 16), _preference(match[3], match[2])
            name = VARIANT.sub("", match[3])
            if address not in found or rank < found[address][0]:
                found[address] = rank, frame(f"{name}_[{match[4]}]" if match[4] else name)
        if not found.keys() - {0}:
            raise ValueError("it has no symbols of the kernel")
        addresses = sorted(found)
        return cls(addresses, [found[address][1] for address in addresses])

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
    for one in mappings:
        if one.first <= address < one.first + one.size:
            return one.name
    return None
