"""What a guest writes to its two files, of which no more is ever held than a bounded piece."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MIB = 1 << 20
PIECE = 1 << 16
"""Bytes to read at a time."""
LONGEST = 1 << 16
"""Bytes of a line at most: the longest that the harness writes, the tasks of a hung guest, has a quarter of them."""
CONSOLE = 16 * MIB
"""Bytes of a console at most; a quiet kernel writes some thousand."""
EVENTS, EVENTS_OF_A_STEP = 4 * MIB, 16 << 10
"""Bytes of events at most, and for each step of the plan so many more; a step has 4 KiB of samples."""
KEPT = MIB
"""Bytes of a console's beginning, and of its end, that are looked at."""


@dataclass
class Output:
    """A guest's files, and how long each may become (bytes)."""

    events: Path
    console: Path
    most: int = EVENTS
    """Of events."""

    def flooded(self) -> bool:
        """Whether one of them has become longer than that."""
        return self.events.stat().st_size > self.most or self.console.stat().st_size > CONSOLE


@dataclass
class Lines:
    """The lines of a file that grows, handed on as each is complete: none that is empty, nothing of one too long."""

    file: BinaryIO
    on_line: Callable[[str], None]
    most: int = EVENTS
    """Bytes to read in all."""
    _begun: bytes = b""
    _too_long: bool = False
    _read: int = field(default=0)

    def drain(self) -> None:
        """Hand on what has become complete."""
        while self._read < self.most and (piece := self.file.read(min(PIECE, self.most - self._read))):
            self._read += len(piece)
            *complete, rest = piece.split(b"\n")
            for line in complete:
                whole, self._begun = self._begun + line, b""
                if whole and not self._too_long and len(whole) <= LONGEST:
                    self.on_line(whole.decode("ascii", "replace"))
                self._too_long = False
            self._begun += rest
            if len(self._begun) > LONGEST:
                self._begun, self._too_long = b"", True


def said(console: Path) -> str:
    """What a guest's console says: all of it, or its beginning and its end where it is long."""
    with console.open("rb") as file:
        text = file.read(2 * KEPT)
        size = console.stat().st_size
        if size > len(text):
            file.seek(max(KEPT, size - KEPT))
            text = text[:KEPT] + b"\n[...]\n" + file.read(KEPT)
    return text.decode(errors="replace")
