"""Run a daemon in the background while anybody uses it, and reap its orphans.

python reaper.py USERS COMMAND...

Each user of the daemon holds a shared lock on the file USERS; the kernel releases it however the user ends.

libvirt takes a guest for running until its process has been reaped. Reaping orphans is the work of process 1, which
takes seconds in some containers and small virtual machines.
"""

import ctypes
import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""
STOP_SECONDS = 20.0
"""Seconds that a daemon may take to end."""


def daemonize() -> None:
    """Continue as a background process without a terminal; the calling process exits."""
    if os.fork():
        os._exit(0)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)


def _end_unused(users: Path, daemon: int) -> None:
    """Stop the daemon, an open pidfd, after its last user; new users wait for the lock until this process has ended."""
    with users.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(daemon, number)
            time.sleep(STOP_SECONDS)


def run(users: Path, argv: Sequence[str]) -> int:
    """Run the command to its end, reaping orphans meanwhile. Return its exit status as a shell does."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    daemon = os.posix_spawnp(argv[0], tuple(argv), os.environ)
    threading.Thread(target=_end_unused, args=(users, os.pidfd_open(daemon)), daemon=True).start()
    while True:
        pid, status = os.wait()
        if pid == daemon:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    daemonize()
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
