"""Events: one JSON object a line, written as each thing ends: a crash loses nothing that had finished."""

import json
import os
import termios
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

CODE = 16
"""Bytes of the code that follows from a line and the boot's secret."""


@dataclass
class Events:
    """Writes to the second serial line (a regular file on the host), or to any file."""

    descriptor: int
    secret: bytes
    """What the host and this boot's harness alone know."""
    lines: int = 0
    """Written so far."""

    @classmethod
    def open(cls, path: Path, secret: bytes) -> "Events":
        """Open the line raw: a terminal would turn each newline into two characters."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY)
        if os.isatty(descriptor):
            mode = termios.tcgetattr(descriptor)
            mode[1] &= ~termios.OPOST
            termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        return cls(descriptor, secret)

    def emit(self, event: str, **fields: object) -> None:
        """Write one event and wait until the line has taken it: the next step must not pay for it.

        It begins with a newline, too: what anybody else has left on the line is none of its own. Its number, and a code
        that takes the secret, tell the host which lines are missing and which are not ours. Nothing that is done with
        the secret takes longer for one than for another.
        """
        self.lines += 1
        text = json.dumps({"event": event, **fields}, ensure_ascii=True, separators=(",", ":"))
        code = blake2b(f"{self.lines}{text}".encode(), key=self.secret, digest_size=CODE).hexdigest()
        data = f'\n{{"line":{self.lines},"code":"{code}",{text[1:]}\n'.encode()
        while data:
            data = data[os.write(self.descriptor, data) :]
        if os.isatty(self.descriptor):
            termios.tcdrain(self.descriptor)

    def sample(self, step: str, repetition: int, metric: str, value: float, unit: str) -> None:
        """One measured value."""
        self.emit("sample", step=step, repetition=repetition, metric=metric, value=value, unit=unit)

    def not_measured(self, step: str, repetition: int, metric: str, unit: str, why: str) -> None:
        """A value that could not be had, with the reason."""
        self.emit("sample", step=step, repetition=repetition, metric=metric, value=None, unit=unit, not_measured=why)
