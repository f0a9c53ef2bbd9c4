"""Measure the processor time of programs that are nobody's children here: libvirt's daemon starts the guests' QEMU.

The kernel forgets a program's times when its parent reaps it. So they are read every 10 ms, up to its end.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from agelab.base import fileio, orphans

PROC = Path("/proc")
INTERVAL = 0.01
"""Host seconds between two readings."""
SEARCH_INTERVAL = 0.05
"""Host seconds between two searches for new programs."""
SETTLED = 2.0
"""Host seconds after which a process is the program that it will be: libvirt forks well before it starts QEMU."""
TICKS = os.sysconf("SC_CLK_TCK")


class Times(NamedTuple):
    """Processor seconds, user and system (proc(5), stat, fields 14 to 17)."""

    own: float = 0
    waited_for: float = 0
    """Those of its children that have ended."""

    def since(self, before: "Times") -> "Times":
        return Times(self.own - before.own, self.waited_for - before.waited_for)


@dataclass
class Program:
    """A program as it was seen last."""

    pid: int
    parent: int
    """Process id of its parent when it was found."""
    first_seen: float
    """Host seconds, monotonic, when it was found."""
    used: Times
    """What it has used while it was watched."""
    before: Times
    """What it had used until then: nothing, unless it is older than the watch."""
    words: tuple[str, ...] = ()
    """Its command line."""
    owner: str | None = None
    """The agelab that started it (agelab.base.orphans)."""

    @property
    def is_guest(self) -> bool:
        """True for the QEMU of a domain."""
        return any(word.startswith("guest=") for word in self.words)

    def look(self) -> None:
        """Read which program the process is by now: after a fork another one begins in it."""
        words = _command_line(self.pid)
        if words and words != self.words:
            self.words, self.owner = words, orphans.owner_of(self.pid)


@dataclass
class ProgramWatch:
    """Watches, as a context, the programs of this host that ``is_wanted``."""

    is_wanted: Callable[[Program], bool]
    _watched: dict[int, Program] = field(default_factory=dict)
    _ended: list[Program] = field(default_factory=list)
    _others: set[int] = field(default_factory=set)
    """Process ids that are not wanted."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._watch, name="processor-time", daemon=True)

    def __enter__(self) -> Self:
        for program in self._new_programs():
            program.before, program.used, program.first_seen = program.used, Times(), 0
            program.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def programs(self) -> list[Program]:
        """List the wanted programs so far, those first that have ended."""
        with self._lock:
            return [program for program in [*self._ended, *self._watched.values()] if self.is_wanted(program)]

    def _watch(self) -> None:
        search_at = 0.0
        while not self._stop.wait(INTERVAL):
            with self._lock:
                if time.monotonic() >= search_at:
                    self._new_programs()
                    search_at = time.monotonic() + SEARCH_INTERVAL
                for program in list(self._watched.values()):
                    self._read(program)

    def _new_programs(self) -> list[Program]:
        """Find the processes that have begun since the last search."""
        there = {int(name) for name in os.listdir(PROC) if name.isdecimal()}  # noqa: PTH208 (no paths are wanted)
        self._others &= there
        new = []
        for pid in there - self._others - self._watched.keys():
            if read := read_times(pid):
                parent, used = read
                new.append(Program(pid, parent, time.monotonic(), used, Times()))
        self._watched |= {program.pid: program for program in new}
        return new

    def _read(self, program: Program) -> None:
        read = read_times(program.pid)
        if read is None:
            self._ended.append(self._watched.pop(program.pid))
            return
        program.used = read[1].since(program.before)
        if time.monotonic() < program.first_seen + SETTLED:
            program.look()
        elif not self.is_wanted(program):
            self._others.add(program.pid)
            del self._watched[program.pid]


def read_times(pid: int) -> tuple[int, Times] | None:
    """Return the parent and the times of a process; None if it has been reaped."""
    with suppress(OSError):
        fields = fileio.read_text(PROC / str(pid) / "stat", errors="replace").rpartition(")")[2].split()
        user, system, waited_user, waited_system = (int(ticks) / TICKS for ticks in fields[11:15])
        return int(fields[1]), Times(user + system, waited_user + waited_system)
    return None


def _command_line(pid: int) -> tuple[str, ...]:
    with suppress(OSError):
        return tuple(fileio.read_bytes(PROC / str(pid) / "cmdline").decode(errors="replace").split("\0")[:-1])
    return ()
