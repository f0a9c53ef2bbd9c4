"""Start a libvirt daemon where none runs, and stop it after its last user.

A daemon of the service manager is used if there is one. A daemon started here gets its own qemu.conf, mounted over
the host's in a private mount namespace: as root, libvirt would otherwise run QEMU as a user who may not open
/dev/kvm, report on every request that KVM has gone, and probe QEMU again for four seconds. Its libvirtd.conf is the
host's without keepalive: otherwise suspending agelab for a minute (SIGSTOP, a debugger) would end the guests.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agelab import atomic, fileio, orphans, process
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
"""Seconds within which a new daemon must respond."""


def uri() -> str:
    """Return the libvirt URI: the system's for root, the user's own session otherwise."""
    return "qemu:///system" if os.geteuid() == 0 else "qemu:///session"


def is_responding() -> bool:
    return process.run(["virsh", "--connect", uri(), "version"], ok=range(256), timeout=60).returncode == 0


@contextmanager
def keep_running() -> Iterator[None]:
    """Keep libvirt running for the duration of the body; the last user stops a daemon started here.

    Raises HostError when it does not respond.
    """
    if os.geteuid() != 0:  # libvirt starts a session daemon on demand, and it exits by itself
        yield
        return
    STATE.mkdir(mode=0o700, exist_ok=True)  # others must not open, and so hold, the locks
    with (STATE / "users").open("w", encoding="utf-8") as users:
        try:
            with _state_lock():
                fcntl.flock(users, fcntl.LOCK_SH)
            ensure_running()
            yield
        finally:
            with _state_lock():
                if atomic.try_lock(users):
                    _stop()


def ensure_running() -> None:
    """Restart libvirt if it does not respond, inside ``keep_running``. Raises HostError when it still does not."""
    if os.geteuid() == 0:
        with _state_lock():
            if not is_responding():
                _start()


def unused_pid() -> int | None:
    """Return the process id of a daemon started here that nobody uses, or None."""
    try:
        with (STATE / "users").open(encoding="utf-8") as users:
            return _own_pid() if atomic.try_lock(users) else None
    except FileNotFoundError:
        return None


def stop_unused() -> None:
    """Stop a daemon started here that nobody uses."""
    with _state_lock(), (STATE / "users").open("w", encoding="utf-8") as users:
        if atomic.try_lock(users):
            _stop()


@contextmanager
def _state_lock() -> Iterator[None]:
    with (STATE / "lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _pid_file() -> Path:
    return STATE / "libvirtd.pid"


def _start() -> None:
    # A daemon that does not respond may be shutting down, and holds the sockets until it has ended.
    before = orphans.tagged(orphans.DAEMON, str(STATE / "libvirtd.conf"))
    orphans.terminate([one for one in before if one.command == "libvirtd"])
    configuration = STATE / "qemu.conf"
    configuration.write_text(QEMU_CONF, encoding="utf-8")
    settings = STATE / "libvirtd.conf"
    settings.write_text(
        "keepalive_interval = -1\n"
        + (fileio.read_text(HOST_LIBVIRTD_CONF) if HOST_LIBVIRTD_CONF.exists() else ""),
        encoding="utf-8",
    )
    daemon = f"exec libvirtd --config {settings} --pid-file {_pid_file()}"
    private = f"mount --bind {configuration} /etc/libvirt/qemu.conf"
    # Where the host forbids mount namespaces, the daemon uses the host's qemu.conf: slower, equally correct.
    start = f"if unshare --mount -- {private}; then exec unshare --mount -- sh -c '{private} && {daemon}'; fi; {daemon}"
    process.run(
        ["libvirtd", "--version"]
    )  # report a missing libvirtd here: the reaper runs in the background
    argv = [sys.executable, "-P", reaper.__file__, str(STATE / "users"), "sh", "-c", start]
    process.run(argv, env={orphans.VARIABLE: orphans.DAEMON}, timeout=START_TIMEOUT)
    deadline = time.monotonic() + START_TIMEOUT
    while not is_responding():
        if time.monotonic() > deadline:
            raise HostError(
                "libvirtd was started but does not respond", hint="see its log: journalctl or syslog"
            )
        time.sleep(0.1)


def _own_pid() -> int | None:
    """Return the process id of the running daemon that was started here, or None."""
    try:
        pid = int(fileio.read_text(_pid_file()))
        named = fileio.read_text(Path(f"/proc/{pid}/comm"), errors="replace").strip()
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    return pid if named == "libvirtd" else None  # the process id may have been reused


def _stop() -> None:
    """Stop the daemon if it was started here."""
    pid = _own_pid()
    if pid is None:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 5
    while orphans.start_time(pid) is not None and time.monotonic() < until:
        time.sleep(0.05)
    _pid_file().unlink(missing_ok=True)
