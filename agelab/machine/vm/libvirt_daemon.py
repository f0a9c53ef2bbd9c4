"""Start a libvirt daemon where none runs, and stop it after its last user.

A daemon of the service manager is used if there is one. A daemon started here gets its own qemu.conf, mounted over
the host's in a private mount namespace: as root, libvirt would otherwise run QEMU as a user who may not open
/dev/kvm, report on every request that KVM has gone, and probe QEMU again for four seconds. Its libvirtd.conf is the
host's without keepalive: otherwise suspending agelab for a minute (SIGSTOP, a debugger) would end the guests.

Its namespace is a slave of the host's: it sees what is mounted later, and holds nothing that is unmounted, where the
host's mounts are shared (systemd shares them). Elsewhere a daemon that other runs keep may not see a store: refused.
"""

import fcntl
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agelab.base import atomic, fileio, orphans, process
from agelab.base.errors import HostError
from agelab.machine.vm import reaper

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
DAEMONS = ("libvirtd", "virtqemud")
"""Programs that start QEMU's guests: the whole daemon, and the modular one."""
HOST_LIBVIRTD_CONF = Path("/etc/libvirt/libvirtd.conf")
APPARMOR = Path("/sys/module/apparmor/parameters/enabled")
APPARMOR_PROFILE = Path("/etc/apparmor.d/usr.sbin.libvirtd")
APPARMOR_RULES = Path("/etc/apparmor.d/local/usr.sbin.libvirtd")
APPARMOR_RULE = "/**/store/qemu/*/qemu-system-x86_64 PUx,"
"""Lets the daemon start agelab's QEMU of any store, unconfined as the distribution's (apparmor.d(5))."""
SOCKETS = Path("/run/libvirt")
"""Where root's daemon listens."""
START_TIMEOUT = 30.0
"""Seconds within which a new daemon must respond."""


def uri() -> str:
    """Return the libvirt URI: the system's for root, the user's own session otherwise."""
    return "qemu:///system" if os.geteuid() == 0 else "qemu:///session"


def refusal_hint(message: str) -> str:
    """Return what to do where the daemon refuses a guest: it may not be allowed to start a QEMU that is in a store."""
    if "ermission denied" not in message:
        return "run: agelab doctor"
    if APPARMOR.exists() and fileio.read_text(APPARMOR).strip() == "Y":
        return (
            "AppArmor lets libvirt's daemon start programs of /usr/bin alone; as root: "
            f"echo '{APPARMOR_RULE}' >>{APPARMOR_RULES} && apparmor_parser -r {APPARMOR_PROFILE}"
        )
    return (
        "libvirt's daemon tries QEMU as another user, who cannot enter the store's directory: move the store to "
        "where everybody may, AGELAB_HOME=/var/lib/agelab"
    )


def is_responding() -> bool:
    return process.run(["virsh", "--connect", uri(), "uri"], ok=range(256), timeout=60).returncode == 0


@contextmanager
def keep_running(needed: Sequence[Path] = ()) -> Iterator[None]:
    """Keep libvirt running for the duration of the body; the last user stops a daemon started here.

    Raises HostError when it does not respond, and when it cannot see one of the ``needed`` files and directories.
    """
    if os.geteuid() != 0:  # libvirt starts a session daemon on demand, and it exits by itself
        require_seen(needed)
        yield
        return
    STATE.mkdir(mode=0o700, exist_ok=True)  # others must not open, and so hold, the locks
    with (STATE / "users").open("w", encoding="utf-8") as users:
        try:
            with _state_lock():
                fcntl.flock(users, fcntl.LOCK_SH)
            ensure_running()
            require_seen(needed)
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


def require_seen(needed: Sequence[Path]) -> None:
    """Raise HostError when a daemon has other mounts than this process and so cannot open what is at these paths.

    A daemon that is out of sight (of another container) is taken to see them.
    """
    for pid, name in daemons().items():
        for path in needed:
            if path.exists() and not _is_seen(path.resolve(), pid):
                raise _blind(pid, name, path)


def daemons() -> dict[int, str]:
    """Map process id to program of the daemons that may start this user's guests.

    They are of this user, in these namespaces, and listen where agelab asks: one of a chroot listens elsewhere.
    """
    programs = {}
    for place in orphans.PROC.glob("[0-9]*"):
        with suppress(OSError):
            ours = place.stat().st_uid == os.geteuid() and orphans.shares_namespaces(place)
            if ours and (name := fileio.read_text(place / "comm", errors="replace").strip()) in DAEMONS:
                where = SOCKETS if SOCKETS.exists() else SOCKETS.parent
                if _is_seen(where.resolve(), int(place.name)):
                    programs[int(place.name)] = name
    return programs


def _is_seen(path: Path, pid: int) -> bool:
    """Return True if that process finds the same file or directory at that path."""
    try:
        seen = orphans.PROC / str(pid) / "root" / path.relative_to("/")
        return os.path.samestat(path.stat(), seen.stat())
    except PermissionError:  # not ours to ask
        return True
    except OSError:
        return False


def _blind(pid: int, name: str, path: Path) -> HostError:
    if pid in [daemon.pid for daemon in _own()]:
        hint = "wait for the end of the other agelab runs, which keep this daemon"
    elif os.geteuid():
        hint = f"end it, libvirt starts another: kill {pid}"
    else:
        hint = f"restart it (its guests go on): systemctl restart {name}"
    return HostError(
        f"libvirt's daemon (process {pid}) does not see {path}: that was mounted after the daemon had started", hint
    )


def unused_pid() -> int | None:
    """Return the process id of a daemon started here that nobody uses, or None."""
    try:
        with (STATE / "users").open(encoding="utf-8") as users:
            unused = _own() if atomic.try_lock(users) else []
            return unused[0].pid if unused else None
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


def _settings() -> Path:
    return STATE / "libvirtd.conf"


def _start() -> None:
    _stop()  # one that does not respond may be shutting down, and holds the sockets until it has ended
    configuration = STATE / "qemu.conf"
    configuration.write_text(QEMU_CONF, encoding="utf-8")
    settings = _settings()
    settings.write_text(
        "keepalive_interval = -1\n" + (fileio.read_text(HOST_LIBVIRTD_CONF) if HOST_LIBVIRTD_CONF.exists() else ""),
        encoding="utf-8",
    )
    daemon = f"exec libvirtd --config {settings} --pid-file {STATE}/libvirtd.pid"
    private = f"mount --bind {configuration} /etc/libvirt/qemu.conf"
    # Where the host forbids mount namespaces, the daemon uses the host's qemu.conf: slower, equally correct.
    apart = shlex.join(process.MOUNTS_APART)
    start = f"if {apart} {private}; then exec {apart} sh -c '{private} && {daemon}'; fi; {daemon}"
    process.run(["libvirtd", "--version"])  # report a missing libvirtd here: the reaper runs in the background
    argv = [sys.executable, "-P", reaper.__file__, str(STATE / "users"), "sh", "-c", start]
    process.run(argv, env={orphans.VARIABLE: orphans.DAEMON}, timeout=START_TIMEOUT)
    deadline = time.monotonic() + START_TIMEOUT
    while not is_responding():
        if time.monotonic() > deadline:
            raise HostError("libvirtd was started but does not respond", hint="see its log: journalctl or syslog")
        time.sleep(0.1)


def _own() -> list[orphans.TaggedProcess]:
    """List the running daemon that was started here: by an agelab with the same STATE, which those of a chroot lack."""
    named = orphans.tagged(orphans.DAEMON, str(_settings()))
    return [daemon for daemon in named if daemon.command == "libvirtd" and _is_seen(STATE, daemon.pid)]


def _stop() -> None:
    """Stop the daemon if it was started here."""
    orphans.terminate(_own())
