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
QEMU_CONF = """\
# Guests run as the user who runs agelab: their disks are that user's files.
user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
dynamic_ownership = 0
remember_owner = 0
"""
HOST_LIBVIRTD_CONF = Path("/etc/libvirt/libvirtd.conf")
START_TIMEOUT = 30.0
"""Seconds that a daemon may take until it answers."""


def uri() -> str:
    """The libvirt to talk to: the system's for root, the user's own session otherwise."""
    return "qemu:///system" if os.geteuid() == 0 else "qemu:///session"


def is_responding() -> bool:
    """Whether libvirt answers now."""
    return process.run(["virsh", "--connect", uri(), "version"], ok=range(256), timeout=60).returncode == 0


@contextmanager
def keep_running() -> Iterator[None]:
    """See to it that libvirt answers for as long as the body runs; the last one out ends what we started.

    Raises HostError when it cannot be made to answer.
    """
    if os.geteuid() != 0:  # a session's daemon is started on demand by the library and leaves by itself
        yield
        return
    STATE.mkdir(mode=0o700, exist_ok=True)  # who can open a lock can hold it
    with (STATE / "users").open("w") as users:
        try:
            with _state_lock():
                fcntl.flock(users, fcntl.LOCK_SH)
            ensure_running()
            yield
        finally:
            with _state_lock():
                if _is_last_user(users.fileno()):
                    _stop()


def ensure_running() -> None:
    """Have libvirt answer again, in the body of ``running``. Raises HostError when it cannot be made to."""
    if os.geteuid() == 0:
        with _state_lock():
            if not is_responding():
                _start()


def unused_pid() -> int | None:
    """The process id of a daemon that we started and nobody uses; None where there is none."""
    try:
        with (STATE / "users").open() as users:
            return _own_pid() if _is_last_user(users.fileno()) else None
    except FileNotFoundError:
        return None


def stop_unused() -> None:
    """End a daemon that we started and nobody uses."""
    with _state_lock(), (STATE / "users").open("w") as users:
        if _is_last_user(users.fileno()):
            _stop()


@contextmanager
def _state_lock() -> Iterator[None]:
    with (STATE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_last_user(descriptor: int) -> bool:
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
    configuration.write_text(QEMU_CONF)
    settings = STATE / "libvirtd.conf"
    settings.write_text(
        "keepalive_interval = -1\n" + (HOST_LIBVIRTD_CONF.read_text() if HOST_LIBVIRTD_CONF.exists() else "")
    )
    daemon = f"exec libvirtd --config {settings} --pid-file {_pid_file()}"
    private = f"mount --bind {configuration} /etc/libvirt/qemu.conf"
    # Where the host forbids mount namespaces, the daemon runs with the host's qemu.conf: slower, no less right.
    start = f"if unshare --mount -- {private}; then exec unshare --mount -- sh -c '{private} && {daemon}'; fi; {daemon}"
    process.run(["libvirtd", "--version"])  # or nobody would hear that there is none
    argv = [sys.executable, "-P", reaper.__file__, str(STATE / "users"), "sh", "-c", start]
    process.run(argv, env={orphans.VARIABLE: orphans.DAEMON}, timeout=START_TIMEOUT)
    deadline = time.monotonic() + START_TIMEOUT
    while not is_responding():
        if time.monotonic() > deadline:
            raise HostError(
                "libvirtd was started and does not answer", hint="see its log: journalctl or syslog"
            )
        time.sleep(0.1)


def _own_pid() -> int | None:
    """The daemon that was started here and still runs."""
    try:
        pid = int(_pid_file().read_text())
        named = Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    return pid if named == "libvirtd" else None  # the number may have gone to another process since


def _stop() -> None:
    """End the daemon that this program started, if it did."""
    pid = _own_pid()
    if pid is None:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 5
    while orphans.start_time(pid) is not None and time.monotonic() < until:
        time.sleep(0.05)
    _pid_file().unlink(missing_ok=True)
