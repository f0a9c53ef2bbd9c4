"""The libvirt daemon: used where one runs, started where no service manager did, ended when nobody uses it any more.

A daemon that we start gets a qemu.conf of its own (mounted over the host's in a private mount namespace):
as root, libvirt would otherwise drop QEMU to a user who may not open /dev/kvm, find on every request that
KVM has "gone", and probe QEMU again for four seconds. Its libvirtd.conf is the host's, without keepalive: a user who
stops agelab for a minute (SIGSTOP, a debugger) would lose the guests.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agelab import orphans, process
from agelab.errors import HostError
from agelab.vm import reaper

STATE = Path("/run/agelab")
CONFIGURATION = """\
# Guests run as the user who runs agelab: their disks are that user's files.
user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
dynamic_ownership = 0
remember_owner = 0
"""
HOST_DAEMON = Path("/etc/libvirt/libvirtd.conf")
START = 30.0
"""Seconds that a daemon may take until it answers."""


def uri() -> str:
    """The libvirt to talk to: the system's for root, the user's own session otherwise."""
    return "qemu:///system" if os.geteuid() == 0 else "qemu:///session"


def answers() -> bool:
    """Whether libvirt answers now."""
    return process.run(["virsh", "--connect", uri(), "version"], ok=range(256), timeout=60).returncode == 0


@contextmanager
def running() -> Iterator[None]:
    """See to it that libvirt answers for as long as the body runs; the last one out ends what we started.

    Raises HostError when it cannot be made to answer.
    """
    if os.geteuid() != 0:  # a session's daemon is started on demand by the library and leaves by itself
        yield
        return
    STATE.mkdir(mode=0o700, exist_ok=True)  # who can open a lock can hold it
    with (STATE / "users").open("w") as users:
        try:
            with _alone():
                fcntl.flock(users, fcntl.LOCK_SH)
            see_to_it()
            yield
        finally:
            with _alone():
                if _last(users.fileno()):
                    _stop()


def see_to_it() -> None:
    """Have libvirt answer again, in the body of ``running``. Raises HostError when it cannot be made to."""
    if os.geteuid() == 0:
        with _alone():
            if not answers():
                _start()


def unused() -> int | None:
    """The process id of a daemon that we started and nobody uses; None where there is none."""
    try:
        with (STATE / "users").open() as users:
            return _ours() if _last(users.fileno()) else None
    except FileNotFoundError:
        return None


def end_unused() -> None:
    """End a daemon that we started and nobody uses."""
    with _alone(), (STATE / "users").open("w") as users:
        if _last(users.fileno()):
            _stop()


@contextmanager
def _alone() -> Iterator[None]:
    with (STATE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _last(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid_file() -> Path:
    return STATE / "libvirtd.pid"


def _start() -> None:
    # One that does not answer has been told to end, and may take long: until then it has the sockets.
    before = orphans.tagged(orphans.DAEMON, str(STATE / "libvirtd.conf"))
    orphans.terminate([one for one in before if one.command == "libvirtd"])
    configuration = STATE / "qemu.conf"
    configuration.write_text(CONFIGURATION)
    settings = STATE / "libvirtd.conf"
    settings.write_text(
        "keepalive_interval = -1\n" + (HOST_DAEMON.read_text() if HOST_DAEMON.exists() else "")
    )
    daemon = f"exec libvirtd --config {settings} --pid-file {_pid_file()}"
    private = f"mount --bind {configuration} /etc/libvirt/qemu.conf"
    # Where the host forbids mount namespaces, the daemon runs with the host's qemu.conf: slower, no less right.
    start = f"if unshare --mount -- {private}; then exec unshare --mount -- sh -c '{private} && {daemon}'; fi; {daemon}"
    process.run(["libvirtd", "--version"])  # or nobody would hear that there is none
    argv = [sys.executable, "-P", reaper.__file__, str(STATE / "users"), "sh", "-c", start]
    process.run(argv, env={orphans.VARIABLE: orphans.DAEMON}, timeout=START)
    deadline = time.monotonic() + START
    while not answers():
        if time.monotonic() > deadline:
            raise HostError(
                "libvirtd was started and does not answer", hint="see its log: journalctl or syslog"
            )
        time.sleep(0.1)


def _ours() -> int | None:
    """The daemon that was started here and still runs."""
    try:
        pid = int(_pid_file().read_text())
        named = Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    return pid if named == "libvirtd" else None  # the number may have gone to another process since


def _stop() -> None:
    """End the daemon that this program started, if it did."""
    pid = _ours()
    if pid is None:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 5
    while orphans.start_time(pid) is not None and time.monotonic() < until:
        time.sleep(0.05)
    _pid_file().unlink(missing_ok=True)
