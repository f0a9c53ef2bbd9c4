"""Events: one JSON object a line, written as each thing ends: a crash loses nothing that had finished."""

import json
import os
import termios
from dataclasses import dataclass
from pathlib import Path

LAST = ("end", "reboot", "cut")
"""The events after which a boot says nothing more."""


@dataclass
class Events:
    """Writes to the second serial line (a regular file on the host), or to any file."""

    descriptor: int
    lines: int = 0
    """Written so far."""

    @classmethod
    def open(cls, path: Path) -> "Events":
        """Open the line raw: a terminal would turn each newline into two characters."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY)
        if os.isatty(descriptor):
            mode = termios.tcgetattr(descriptor)
            mode[1] &= ~termios.OPOST
            termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        return cls(descriptor)

    def emit(self, event: str, **fields: object) -> None:
        """Write one event and wait until the line has taken it: the next step must not pay for it.

        It begins with a newline, too: what anybody else has left on the line is none of its own. Before its last word a
        boot says how many lines there were: a host without room loses some, and nobody tells it.
        """
        if event in LAST:
            self.emit("said", lines=self.lines)
        self.lines += 1
        line = json.dumps({"event": event, **fields}, ensure_ascii=True, separators=(",", ":"))
        data = f"\n{line}\n".encode()
        while data:
            data = data[os.write(self.descriptor, data) :]
        if os.isatty(self.descriptor):
            termios.tcdrain(self.descriptor)

    def sample(self, step: str, repetition: int, metric: str, value: float, unit: str) -> None:
        """One measured value."""
        self.emit("sample", step=step, repetition=repetition, metric=metric, value=value, unit=unit)

    def not_measured(self, step: str, repetition: int, metric: str, unit: str, why: str) -> None:
        """A value that could not be had, with the reason."""
        self.emit(
            "sample", step=step, repetition=repetition, metric=metric, value=None, unit=unit, not_measured=why
        )
