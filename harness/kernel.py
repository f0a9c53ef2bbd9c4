"""What the kernel says while the harness works, heard as it is said: in guest time, so the same in every run.

Interface: the kernel's Documentation/ABI/testing/dev-kmsg: each read is one record, ``priority,number,time,flags;text``
and further lines of properties. The console, which the host reads afterwards, has the errors alone.
"""

import os
import re

DEVICE = "/dev/kmsg"
RECORD = 8192
"""Bytes that a record has at most."""
NEWLINE = "\\x0a"
"""How a record has a character that is none: some filesystems end their words with two newlines."""
LEVELS = 8
"""A priority is a level and, times this, the facility: 0 is the kernel itself."""
KILLED = re.compile(r"ut of memory: Killed process (\d+) \((.*?)\)")
"""As mm/oom_kill.c has it since Linux 4.20, with and without a cgroup's name before it."""


class Trouble(Exception):
    """What the kernel has said makes whatever is measured now worthless; in its own words."""


class Kernel:
    """The kernel's log from now on."""

    def __init__(self, descriptor: int, gone: tuple[str, ...]) -> None:
        self.descriptor = descriptor
        self.gone = re.compile("|".join(f"(?:{pattern})" for pattern in gone)) if gone else None

    @classmethod
    def listen(cls, gone: tuple[str, ...]) -> "Kernel":
        """Hear what comes; ``gone``: regular expressions by which a filesystem has shut itself down."""
        descriptor = os.open(DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(descriptor, 0, os.SEEK_END)
        return cls(descriptor, gone)

    def check(self) -> None:
        """Take in what has been said since the last time. Raises Trouble with the first words that are."""
        trouble = None
        while True:
            try:
                record = os.read(self.descriptor, RECORD).decode("ascii", "replace")
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten before it was read; what is left comes next
                continue
            trouble = trouble or self._trouble(record)
        if trouble:
            raise Trouble(trouble)

    def _trouble(self, record: str) -> str | None:
        head, _, rest = record.partition(";")
        text = rest.partition("\n")[0].removesuffix(NEWLINE)
        if int(head.partition(",")[0]) >= LEVELS:
            return None
        if killed := KILLED.search(text):
            return f"out of memory: the kernel ended {killed[2]} (process {killed[1]})"
        if self.gone and self.gone.search(text):
            return f"the filesystem has given up: {text}"
        return None
