"""A guest that is saved once and restored for each boot: its memory as a file, its devices as QEMU's migration stream.

QEMU's interface: docs/devel/migration.rst and qapi/migration.json of QEMU 7.2. With the capability x-ignore-shared
memory that is a shared mapping of a file is not in the stream: the file is it. A restored guest maps the same file
privately, so nothing is copied, and what it writes is its own.
"""

import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agelab.base import fileio
from agelab.base.errors import AgelabError

IGNORE_SHARED = {"capability": "x-ignore-shared", "state": True}
STREAM = "state"
"""Name under which QEMU holds the open file of the stream."""
POLL_SECONDS = 0.01
MIGRATION_SECONDS = 60.0
STOPPED = "guest-panicked"
"""QEMU's status of a guest that has stopped itself (harness/saved.py)."""
TIMER_SECTION = b"\x05timer"
"""The clocks' section in the stream (softmmu/cpu-timers.c): a length and its name, instance, version, three numbers."""
HOST_CLOCKS = struct.Struct(">qqq")
"""cpu_ticks_offset, unused, cpu_clock_offset: of the host's clocks, which a guest that counts instructions ignores."""

Monitor = Callable[[str, list[Any]], str]
"""Sends QEMU a command (JSON) with open files, and returns the answer (JSON)."""


class NotRestored(AgelabError):
    """QEMU does not take a saved guest."""


def has_stopped(monitor: Monitor) -> bool:
    """Return True if the guest has come to the moment at which it is saved."""
    return bool(_command(monitor, "query-status")["status"] == STOPPED)


def save(monitor: Monitor, state: Path) -> None:
    """Save a stopped guest's devices. Raises AgelabError where QEMU does not."""
    with state.open("wb") as file:
        _migrate(monitor, "migrate", file)
    hide_host_clocks(state)


def restore(monitor: Monitor, state: Path) -> None:
    """Make a guest that waits (``-incoming defer``) a copy of the saved one. Raises NotRestored."""
    with state.open("rb") as file:
        try:
            _migrate(monitor, "migrate-incoming", file)
        except (AgelabError, OSError) as error:
            raise NotRestored(f"QEMU does not take the saved guest: {error}") from error


def hide_host_clocks(state: Path) -> None:
    """Make what is of the host's clocks zeros: the same guest then has the same bytes on every host."""
    data = bytearray(fileio.read_bytes(state, fileio.PROGRAM))
    if data.count(TIMER_SECTION) != 1:
        raise AgelabError("the saved guest has no section of clocks that agelab knows")
    at = data.index(TIMER_SECTION) + len(TIMER_SECTION) + 8
    data[at : at + HOST_CLOCKS.size] = bytes(HOST_CLOCKS.size)
    state.write_bytes(data)


def _migrate(monitor: Monitor, command: str, file: Any) -> None:
    _command(monitor, "migrate-set-capabilities", capabilities=[IGNORE_SHARED])
    _command(monitor, "getfd", [file], fdname=STREAM)
    _command(monitor, command, uri=f"fd:{STREAM}")
    deadline = time.monotonic() + MIGRATION_SECONDS
    while True:
        answer = _command(monitor, "query-migrate")
        status = answer.get("status")
        if status == "completed":
            return
        if status in ("failed", "cancelled") or time.monotonic() > deadline:
            raise AgelabError(f"{command}: {status}: {answer.get('error-desc', 'no reason given')}")
        time.sleep(POLL_SECONDS)


def _command(monitor: Monitor, name: str, files: list[Any] | None = None, **arguments: Any) -> dict[str, Any]:
    request = {"execute": name, **({"arguments": arguments} if arguments else {})}
    answer = json.loads(monitor(json.dumps(request), files or []))
    if "error" in answer:
        raise AgelabError(f"{name}: {answer['error'].get('desc', answer['error'])}")
    result: dict[str, Any] = answer["return"]
    return result
