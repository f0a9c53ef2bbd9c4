"""Whose a program is: all that an agelab starts says so, and what nobody owns any more can be found and ended.

An agelab that is killed with SIGKILL cannot tidy up. What it has started carries ``AGELAB_OWNER=<pid>:<start time>``
in its environment, and a process id with the time at which it began is never given out twice.
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

VARIABLE = "AGELAB_OWNER"
DAEMON = "daemon"
"""The owner of what outlives the one who started it, as long as anybody uses it (agelab.vm.daemon)."""
PROC = Path("/proc")
GRACE = 5.0
"""Seconds of the host that a process has to end itself when it is asked to."""
_ROUNDS = 8
"""Times to look again: whoever is ended may leave others."""


@dataclass(frozen=True)
class TaggedProcess:
    """A process that names its owner."""

    pid: int
    owner: str
    command: str

    def __str__(self) -> str:
        return f"{self.command} (process {self.pid})"


@cache
def tag() -> str:
    """This process, as an owner."""
    pid = os.getpid()
    moment = began(pid)
    assert moment is not None
    return f"{pid}:{moment}"


def began(pid: int) -> str | None:
    """When a process began, in ticks since the host's start (proc(5), stat, field 22); None where it is gone."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def is_dead(owner: str) -> bool:
    """Whether an owner does not live any more. What is no owner's name is nobody that could have gone."""
    pid, _, moment = owner.partition(":")
    return pid.isdecimal() and moment.isdecimal() and began(int(pid)) != moment


def of(pid: int) -> str | None:
    """The owner that a process names; None where it names none, has ended, or is not ours to look at."""
    with suppress(OSError):
        for word in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            name, _, value = word.partition(b"=")
            if name == VARIABLE.encode():
                return value.decode("ascii", "replace")
    return None


def orphans() -> Iterator[TaggedProcess]:
    """Every process of this host that an agelab which is gone has started."""
    for place in PROC.glob("[0-9]*"):
        pid = int(place.name)
        owner = of(pid)
        if owner is None or pid == os.getpid() or not _our_numbers(pid) or not is_dead(owner):
            continue
        with suppress(OSError):
            yield TaggedProcess(pid, owner, (place / "comm").read_text().strip())


def tagged(name: str, word: str) -> list[TaggedProcess]:
    """The processes of that owner whose command line holds that text; none of a container, which has its own."""
    found = []
    for place in PROC.glob("[0-9]*"):
        pid = int(place.name)
        with suppress(OSError):
            if word.encode() in (place / "cmdline").read_bytes() and of(pid) == name and _our_numbers(pid):
                found.append(TaggedProcess(pid, name, (place / "comm").read_text().strip()))
    return found


def _our_numbers(pid: int) -> bool:
    """Whether a process counts processes and time as we do: an owner in a container means another one here."""
    with suppress(OSError):
        return all(
            (PROC / str(pid) / "ns" / kind).readlink() == (PROC / "self" / "ns" / kind).readlink()
            for kind in ("pid", "time")
        )
    return False


def end_orphans() -> list[TaggedProcess]:
    """End them: each is asked to, and then made to. Returns those that are gone."""
    ended: list[TaggedProcess] = []
    for _ in range(_ROUNDS):
        found = list(orphans())
        if not found:
            break
        ended += end(found)
    return ended


def end(found: Sequence[TaggedProcess]) -> list[TaggedProcess]:
    """End processes that still have the owner they were found with. Returns those that are gone."""
    with ExitStack() as stack:
        handles: dict[int, TaggedProcess] = {}
        for one in found:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(one.pid)
                stack.callback(os.close, handle)
                if of(one.pid) == one.owner:  # the number has not gone to another process
                    handles[handle] = one
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = _left(handles, 0)
            for handle in left:
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(handle, number)
            _left(left, GRACE)
        left = _left(handles, 0)
        return [one for handle, one in handles.items() if handle not in left]


def _left(handles: dict[int, TaggedProcess], seconds: float) -> dict[int, TaggedProcess]:
    """Those that have not ended within so many seconds."""
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
