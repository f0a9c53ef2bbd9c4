"""What a guest writes to its two files, of which no more is ever held than a bounded piece."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MIB = 1 << 20
READ_BYTES = 1 << 16
"""Bytes to read at a time."""
MAX_LINE_BYTES = 1 << 16
"""Bytes of a line at most: the longest that the harness writes, the tasks of a hung guest, has a quarter of them."""
MAX_CONSOLE_BYTES = 16 * MIB
"""Bytes of a console at most; a quiet kernel writes some thousand."""
MAX_EVENT_BYTES, EVENT_BYTES_PER_STEP = 4 * MIB, 16 << 10
"""Bytes of events at most, and for each step of the plan so many more; a step has 4 KiB of samples."""
CONSOLE_BYTES_KEPT = MIB
"""Bytes of a console's beginning, and of its end, that are looked at."""


@dataclass
class GuestOutput:
    """A guest's files, and how long each may become (bytes)."""

    events: Path
    console: Path
    most: int = MAX_EVENT_BYTES
    """Of events."""

    def is_flooded(self) -> bool:
        """Whether one of them has become longer than that."""
        return self.events.stat().st_size > self.most or self.console.stat().st_size > MAX_CONSOLE_BYTES


@dataclass
class LineReader:
    """The lines of a file that grows, handed on as each is complete: none that is empty, nothing of one too long."""

    file: BinaryIO
    on_line: Callable[[str], None]
    most: int = MAX_EVENT_BYTES
    """Bytes to read in all."""
    _begun: bytes = b""
    _too_long: bool = False
    _read: int = field(default=0)

    def drain(self) -> None:
        """Hand on what has become complete."""
        while self._read < self.most and (piece := self.file.read(min(READ_BYTES, self.most - self._read))):
            self._read += len(piece)
            *complete, rest = piece.split(b"\n")
            for line in complete:
                whole, self._begun = self._begun + line, b""
                if whole and not self._too_long and len(whole) <= MAX_LINE_BYTES:
                    self.on_line(whole.decode("ascii", "replace"))
                self._too_long = False
            self._begun += rest
            if len(self._begun) > MAX_LINE_BYTES:
                self._begun, self._too_long = b"", True


def console_text(console: Path) -> str:
    """What a guest's console says: all of it, or its beginning and its end where it is long."""
    with console.open("rb") as file:
        text = file.read(2 * CONSOLE_BYTES_KEPT)
        size = console.stat().st_size
        if size > len(text):
            file.seek(max(CONSOLE_BYTES_KEPT, size - CONSOLE_BYTES_KEPT))
            text = text[:CONSOLE_BYTES_KEPT] + b"\n[...]\n" + file.read(CONSOLE_BYTES_KEPT)
    return text.decode(errors="replace")
