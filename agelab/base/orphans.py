"""Find and end the processes that a killed agelab has left.

An agelab that is killed with SIGKILL cannot clean up. Each process that it starts has ``AGELAB_OWNER=<pid>:<start
time>`` in its environment; a process id together with its start time is never used twice.
"""

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agelab.base import fileio, limits

VARIABLE = "AGELAB_OWNER"
DAEMON = "daemon"
"""Owner of a process that outlives its starter, as long as anyone uses it (agelab.machine.vm.libvirt_daemon)."""
PROC = Path("/proc")
GRACE = 5.0
"""Seconds of the host that a process has to end after each signal."""
_ROUNDS = 8
"""Searches for orphans: a process that is ended may leave others."""


@dataclass(frozen=True)
class TaggedProcess:
    """A process whose environment names its owner."""

    pid: int
    started: str
    """Its start time: no other process has had both."""
    owner: str
    command: str

    def __str__(self) -> str:
        return f"{self.command} (process {self.pid})"


@cache
def tag() -> str:
    """Return the owner tag of this process. Raises HostError where /proc is not that of its pid namespace."""
    pid = os.getpid()
    with suppress(OSError):
        if (PROC / "self").readlink().name == str(pid) and (started := start_time(pid)):
            return f"{pid}:{started}"
    raise limits.no_proc()


def start_time(pid: int) -> str | None:
    """Return when a process started, in ticks since the host's boot (proc(5), stat, field 22); None if it has ended."""
    try:
        fields = fileio.read_text(PROC / str(pid) / "stat", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def is_dead(owner: str) -> bool:
    """Return True when the owner has ended. A text that is not an owner tag is never dead."""
    pid, _, started = owner.partition(":")
    return pid.isdecimal() and started.isdecimal() and start_time(int(pid)) != started


def owner_of(pid: int) -> str | None:
    """Return the owner that a process names; None if it names none, has ended, or may not be read by this user."""
    with suppress(OSError):
        for word in fileio.read_bytes(PROC / str(pid) / "environ").split(b"\0"):
            name, _, value = word.partition(b"=")
            if name == VARIABLE.encode():
                return value.decode("ascii", "replace")
    return None


def find_orphans() -> Iterator[TaggedProcess]:
    """Yield every process of this host whose owner is dead."""
    for place in PROC.glob("[0-9]*"):
        owner = owner_of(int(place.name))
        if owner and int(place.name) != os.getpid() and is_dead(owner):
            yield from _tagged_process(place, owner)


def tagged(owner: str, text: str) -> list[TaggedProcess]:
    """List the processes of an owner whose command line contains ``text``, without those in a container."""
    processes: list[TaggedProcess] = []
    for place in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in fileio.read_bytes(place / "cmdline") and owner_of(int(place.name)) == owner:
                processes += _tagged_process(place, owner)
    return processes


def shares_namespaces(place: Path) -> bool:
    """Return True if a process, by its directory in /proc, is in the pid and time namespaces of this one."""
    ours = PROC / "self" / "ns"
    return all((place / "ns" / kind).readlink() == (ours / kind).readlink() for kind in ("pid", "time"))


def _tagged_process(place: Path, owner: str) -> list[TaggedProcess]:
    """Return a process of that owner; nothing when it has ended or has pid and time namespaces of its own.

    In other namespaces its owner tag means nothing here.
    """
    with suppress(OSError):
        pid = int(place.name)
        started = start_time(pid)
        if started and shares_namespaces(place):
            command = fileio.read_text(place / "comm", errors="replace").strip()
            return [TaggedProcess(pid, started, owner, command)]
    return []


def terminate_orphans() -> list[TaggedProcess]:
    """End all orphans, with SIGTERM and then SIGKILL. Returns those that have ended."""
    ended: list[TaggedProcess] = []
    for _ in range(_ROUNDS):
        orphans = list(find_orphans())
        if not orphans:
            break
        ended += terminate(orphans)
    return ended


def terminate(processes: Sequence[TaggedProcess]) -> list[TaggedProcess]:
    """End processes that are still those that were found, with their owners. Returns those that have ended."""
    with ExitStack() as stack:
        handles: dict[int, TaggedProcess] = {}
        for orphan in processes:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(orphan.pid)
                stack.callback(os.close, handle)
                if (start_time(orphan.pid), owner_of(orphan.pid)) == (orphan.started, orphan.owner):
                    handles[handle] = orphan
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = _still_running(handles, 0)
            for handle in left:
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(handle, number)
            _still_running(left, GRACE)
        left = _still_running(handles, 0)
        return [orphan for handle, orphan in handles.items() if handle not in left]


def _still_running(handles: dict[int, TaggedProcess], seconds: float) -> dict[int, TaggedProcess]:
    """Wait up to so many seconds for processes to end. Returns those that still run."""
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    left, until = dict(handles), time.monotonic() + seconds
    while left:
        ready = poll.poll(max(0, until - time.monotonic()) * 1000)
        for handle, _ in ready:
            poll.unregister(handle)
            left.pop(handle)
        if not ready:
            break
    return left
