"""Console and event files of a guest, read in bounded memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MIB = 1 << 20
READ_BYTES = 1 << 16
"""Bytes to read at a time."""
MAX_LINE_BYTES = 1 << 16
"""Maximum length of an event line in bytes, four times the longest that the harness writes (the tasks of a hung
guest)."""
MAX_CONSOLE_BYTES = 16 * MIB
"""Maximum size of a console in bytes; a quiet kernel writes a few thousand."""
MAX_EVENT_BYTES, EVENT_BYTES_PER_STEP = 4 * MIB, 16 << 10
"""Maximum size of the events in bytes, and the addition for each step of the plan; a step has 4 KiB of samples."""
CONSOLE_BYTES_KEPT = MIB
"""Bytes kept of the beginning and of the end of a long console."""


@dataclass
class GuestOutput:
    """A guest's output files and the limits on their size."""

    events: Path
    console: Path
    max_event_bytes: int = MAX_EVENT_BYTES
    """Maximum size of the events in bytes."""

    def is_empty(self) -> bool:
        """Return True if the guest has said nothing yet."""
        return not (self.events.stat().st_size or self.console.stat().st_size)

    def is_flooded(self) -> bool:
        """Return True if a file exceeds its limit."""
        return self.events.stat().st_size > self.max_event_bytes or self.console.stat().st_size > MAX_CONSOLE_BYTES


@dataclass
class LineReader:
    """Pass on each complete line of a growing file; skip empty lines and lines longer than MAX_LINE_BYTES."""

    file: BinaryIO
    on_line: Callable[[str], None]
    max_bytes: int = MAX_EVENT_BYTES
    """Maximum number of bytes to read in all."""
    _begun: bytes = b""
    _too_long: bool = False
    _read: int = field(default=0)

    def drain(self) -> None:
        """Pass on the lines completed since the last call."""
        while self._read < self.max_bytes and (piece := self.file.read(min(READ_BYTES, self.max_bytes - self._read))):
            self._read += len(piece)
            *complete, rest = piece.split(b"\n")
            whole_lines = []
            for line in complete:
                whole, self._begun = self._begun + line, b""
                if whole and not self._too_long and len(whole) <= MAX_LINE_BYTES:
                    whole_lines.append(whole)
                self._too_long = False
            self._begun += rest
            if len(self._begun) > MAX_LINE_BYTES:
                self._begun, self._too_long = b"", True
            for whole in whole_lines:  # where one raises, the next call goes on behind this piece
                self.on_line(whole.decode("ascii", "replace"))


def console_text(console: Path) -> str:
    """Return the console text, shortened to its beginning and end if it is long."""
    with console.open("rb") as file:
        text = file.read(2 * CONSOLE_BYTES_KEPT)
        size = console.stat().st_size
        if size > len(text):
            file.seek(max(CONSOLE_BYTES_KEPT, size - CONSOLE_BYTES_KEPT))
            text = text[:CONSOLE_BYTES_KEPT] + b"\n[...]\n" + file.read(CONSOLE_BYTES_KEPT)
    return text.decode(errors="replace")
