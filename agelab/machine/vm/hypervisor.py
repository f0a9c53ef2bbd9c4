"""The only module that talks to libvirt: run transient domains and wait for them without polling.

None of libvirt's errors leaves it: each becomes a HostError, DaemonLost where the connection is gone.
"""

import os
import re
import select
import shlex
import threading
import time
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Any

from inotify_simple import INotify, flags

from agelab.base import orphans
from agelab.base.errors import HostError
from agelab.machine.vm import host, libvirt_daemon, saved_guest
from agelab.machine.vm.guest_output import GuestOutput, LineReader
from agelab.results.result import Ending

try:
    import libvirt
    import libvirt_qemu
except ImportError as error:
    raise HostError(f"libvirt's Python binding cannot be used: {error}", host.binding_hint()) from error

ALREADY_ENDED = (
    libvirt.VIR_ERR_NO_DOMAIN,
    libvirt.VIR_ERR_OPERATION_INVALID,
    libvirt.VIR_ERR_RPC,
    libvirt.VIR_ERR_SYSTEM_ERROR,
    libvirt.VIR_ERR_INVALID_CONN,
)
"""libvirt errors which mean that the domain has ended already."""
BOOT_SECONDS = 600.0
"""Host seconds for a guest that is to be saved to boot, and for the first word of any."""
COMMANDS_KEPT = 256
"""QEMU commands that are remembered."""
POLL_SECONDS = 0.05
_PLAIN_WORD = re.compile(r"(?:[^\s'\"\\]|'[^']*')+")
"""A word of a command in which a shell would see at most single quotes."""
LINGERING_SECONDS = 60.0
"""Host seconds for QEMU to end once its guest has powered off: all that is measured is there by then."""
SETTLE_SECONDS = 0.05
"""Seconds between the first byte of output and reading it: the serial line is written byte by byte."""


class DaemonLost(HostError):
    """The libvirt daemon ended while it was needed, and its guests with it."""

    def __init__(self) -> None:
        super().__init__(
            "libvirt's daemon has ended, and its guests with it", hint="run it again: that starts the daemon, too"
        )


@dataclass
class _WatchedDomain:
    """State shared by the event thread and the thread that waits for one domain."""

    wake: int = field(default_factory=lambda: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
    identity: str = field(default_factory=lambda: str(uuid.uuid4()))
    """libvirt's UUID of this domain alone: an earlier one of its name may still send events."""
    at_stop: Callable[[], None] | None = None
    """Called when it has stopped by itself, if somebody waits for that."""
    suspended: bool = False
    watchdog: bool = False
    signalled: bool = False
    """Somebody on the host has sent SIGTERM, on which QEMU ends as if the guest had powered off."""
    abandoned: bool = False
    powered_off: float | None = None
    """When the guest powered off, by the monotonic clock."""
    ending: Ending | None = None
    connection: Any = None
    """Connection through which the domain was started."""


class Hypervisor:
    """A connection to libvirt with its event loop; use ``connected()`` to get one."""

    def __init__(self) -> None:
        self._watched: dict[str, _WatchedDomain] = {}
        """By libvirt's UUIDs."""
        self._abandoned = False
        self._opening = threading.Lock()
        libvirt.registerErrorHandler(lambda *_: None, None)
        libvirt.virEventRegisterDefaultImpl()
        self._connection: Any = self._open()
        threading.Thread(target=self._events, daemon=True).start()

    def _open(self) -> Any:
        with _asking(None, "libvirt", "run: agelab doctor"):
            connection = libvirt.open(libvirt_daemon.uri())
            lifecycle, watchdog = libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, libvirt.VIR_DOMAIN_EVENT_ID_WATCHDOG
            connection.domainEventRegisterAny(None, lifecycle, self._lifecycle, None)
            connection.domainEventRegisterAny(None, watchdog, self._watchdog, None)
            connection.registerCloseCallback(self._closed, None)
            return connection

    def _connected(self) -> Any:
        """Return a working connection; if the last one was lost, restart the daemon and reconnect."""
        with self._opening:
            if not _alive(self._connection):
                libvirt_daemon.ensure_running()
                self._connection = self._open()
            return self._connection

    def _ask(self, what: str, question: Callable[[Any], Any]) -> Any:
        """Ask the daemon; where it ends meanwhile, ask the one that is started in its place."""
        with suppress(DaemonLost):
            return _asked(self._connected(), what, question)
        return _asked(self._connected(), what, question)

    def _events(self) -> None:
        while self._connection is not None:
            try:
                libvirt.virEventRunDefaultImpl()
            except libvirt.libvirtError:
                time.sleep(POLL_SECONDS)

    def _lifecycle(self, _: Any, domain: Any, event: int, detail: int, __: Any) -> None:
        watched = self._watched.get(domain.UUIDString())
        if watched is None:
            return
        if event == libvirt.VIR_DOMAIN_EVENT_SHUTDOWN:
            watched.signalled = watched.signalled or detail == libvirt.VIR_DOMAIN_EVENT_SHUTDOWN_HOST
            watched.powered_off = time.monotonic()
            os.eventfd_write(watched.wake, 1)
        if event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED and watched.at_stop:
            watched.suspended = True
            os.eventfd_write(watched.wake, 1)
        if event != libvirt.VIR_DOMAIN_EVENT_STOPPED:
            return
        failed = (
            libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED,
            libvirt.VIR_DOMAIN_EVENT_STOPPED_FAILED,
            libvirt.VIR_DOMAIN_EVENT_STOPPED_DESTROYED,
        )
        watched.ending = Ending.CRASHED if watched.signalled or detail in failed else Ending.STOPPED
        os.eventfd_write(watched.wake, 1)

    def _closed(self, connection: Any, _: int, __: Any) -> None:
        """Wake the threads that wait for domains of a lost connection."""
        for watched in list(self._watched.values()):
            if watched.connection is connection:
                watched.ending = Ending.DAEMON_LOST
                os.eventfd_write(watched.wake, 1)

    def _watchdog(self, _: Any, domain: Any, __: int, ___: Any) -> None:
        if watched := self._watched.get(domain.UUIDString()):
            watched.watchdog = True

    @property
    def version(self) -> str:
        """Version of the daemon, ``9.0.0``."""
        number = int(self._ask("libvirt tells no version", lambda daemon: daemon.getLibVersion()))
        return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}"

    @cached_property
    def security_models(self) -> list[str]:
        """Security models of this host: ``dac``, ``apparmor``, ``selinux``; empty in a user's session."""
        xml = self._ask("libvirt tells nothing of this host", lambda daemon: daemon.getCapabilities())
        capabilities = ElementTree.fromstring(xml)
        return [model.text or "" for model in capabilities.iterfind("host/secmodel/model") if model.text != "none"]

    def command_line(self, xml: str) -> list[str]:
        """Return the QEMU command that libvirt builds for a domain, without the environment variables before it."""
        if xml not in self._commands:
            if len(self._commands) >= COMMANDS_KEPT:
                self._commands.clear()
            self._commands[xml] = self._command_line(xml)
        return list(self._commands[xml])

    @cached_property
    def _commands(self) -> dict[str, list[str]]:
        """The commands of domains that were asked for: libvirt takes milliseconds for each."""
        return {}

    def _command_line(self, xml: str) -> list[str]:
        command = self._ask("libvirt refuses the domain", lambda daemon: daemon.domainXMLToNative("qemu-argv", xml, 0))
        words = _words(command)
        first = next(number for number, word in enumerate(words) if word.startswith("/"))
        return words[first:]

    def run(
        self,
        name: str,
        xml: str,
        output: GuestOutput,
        on_line: Callable[[str], None],
        patience: float,
        state: Path | None = None,
        at_stop: Callable[[], None] | None = None,
    ) -> Ending:
        """Run a transient domain to its end and pass on each line of its events once it is complete.

        With ``state`` it begins as a copy of the guest that was saved there; raises NotRestored where it cannot.
        ``at_stop`` is called when it stops by itself.

        Waits for kernel notifications that a file or the domain changed; ``patience`` is the timeout in host seconds.
        The domain is gone on return, also after an error. Raises HostError when it cannot be started, DaemonLost when
        the daemon ends before it runs, and KeyboardInterrupt when another thread has called ``abandon``.
        """
        with ExitStack() as stack:
            watched = _WatchedDomain(at_stop=at_stop)
            self._watched[watched.identity] = watched
            stack.callback(os.close, watched.wake)
            stack.callback(self._watched.pop, watched.identity)
            if self._abandoned:  # checked only after this domain is visible to abandon()
                raise KeyboardInterrupt
            watch = stack.enter_context(INotify())
            for file in (output.events, output.console):
                watch.add_watch(file, flags.MODIFY)
            lines = LineReader(stack.enter_context(output.events.open("rb")), on_line, output.max_event_bytes)
            connection = watched.connection = self._connected()
            stack.callback(_end_process, name)
            paused = libvirt.VIR_DOMAIN_START_PAUSED if state else 0
            domain = _start(connection, name, identified(xml, watched.identity), paused)
            stack.callback(_destroy, domain)
            if state:
                try:
                    with _asking(connection, "libvirt"):
                        saved_guest.restore(_monitor(domain), state)
                        domain.resume()
                except DaemonLost:
                    raise
                except HostError as error:
                    raise saved_guest.NotRestored(f"QEMU does not take the saved guest: {error}") from error
            stopped = partial(_paused, domain)
            ending = _wait(watched, watch, lines, output, time.monotonic() + patience, stopped)
            late = ending in (Ending.TIMEOUT, Ending.SILENT)
            return Ending.PAUSED if late and _paused(domain) else ending

    def save(self, name: str, xml: str, state: Path) -> None:
        """Boot a guest that stops itself, and save it there.

        Raises HostError where it does not come so far, DaemonLost where the daemon does not.
        """
        connection = self._connected()
        ended = _asking(connection, "the guest that is to be saved has ended", "boot in full: --boot full")
        with ExitStack() as stack:
            stack.callback(_end_process, name)
            domain = _start(connection, name, xml)
            stack.callback(_destroy, domain)
            stack.enter_context(ended)
            monitor, deadline = _monitor(domain), time.monotonic() + BOOT_SECONDS
            while not saved_guest.has_stopped(monitor):
                if self._abandoned:
                    raise KeyboardInterrupt
                if time.monotonic() > deadline:
                    raise HostError(f"the guest was not ready to be saved within {BOOT_SECONDS:g} s")
                time.sleep(POLL_SECONDS)
            saved_guest.save(monitor, state)

    def abandon(self) -> None:
        """End every running domain and refuse to start others: the user wants to stop."""
        self._abandoned = True
        for watched in list(self._watched.values()):
            watched.abandoned = True
            os.eventfd_write(watched.wake, 1)

    def close(self) -> None:
        """Close the connection; domains that still run end with it."""
        connection, self._connection = self._connection, None
        with suppress(libvirt.libvirtError):  # the connection may be lost
            connection.close()


@contextmanager
def _asking(connection: Any, what: str, hint: str = "") -> Iterator[None]:
    """Make libvirt's errors HostErrors that begin with ``what``, and DaemonLost where the connection is gone."""
    try:
        yield
    except libvirt.libvirtError as error:
        # The socket to the daemon may end before the connection knows.
        lost = error.get_error_domain() == libvirt.VIR_FROM_RPC
        if connection is not None and (lost or not _alive(connection)):
            raise DaemonLost from error
        raise HostError(f"{what}: {error}", hint or libvirt_daemon.refusal_hint(str(error))) from error


def _asked(connection: Any, what: str, question: Callable[[Any], Any]) -> Any:
    with _asking(connection, what):
        return question(connection)


def identified(xml: str, identity: str) -> str:
    """Return a domain's XML with libvirt's UUID in it; its guest sees the one of QEMU's command."""
    return xml.replace("</name>", f"</name>\n  <uuid>{identity}</uuid>", 1)


def _wait(
    watched: _WatchedDomain,
    watch: INotify,
    lines: LineReader,
    output: GuestOutput,
    deadline: float,
    stopped: Callable[[], bool],
) -> Ending:
    poll = select.poll()
    poll.register(watched.wake, select.POLLIN)
    poll.register(watch, select.POLLIN)
    first_word = time.monotonic() + BOOT_SECONDS
    try:
        while True:
            powered_off = watched.powered_off
            if first_word < inf and not output.is_empty():
                first_word = inf
            until = min(deadline, first_word, inf if powered_off is None else powered_off + LINGERING_SECONDS)
            ready = poll.poll(max(0, until - time.monotonic()) * 1000)
            with suppress(BlockingIOError):
                os.eventfd_read(watched.wake)
            if ready and watched.ending is None:
                time.sleep(SETTLE_SECONDS)
                watch.read(timeout=0)
            if watched.abandoned:
                raise KeyboardInterrupt
            ended = watched.ending
            lines.drain()
            if watched.suspended and watched.at_stop and ended is None:
                watched.suspended = False
                if stopped():  # a copy of a saved guest is suspended before it begins
                    watched.at_stop()
            if output.is_flooded():
                return Ending.OUTPUT_TOO_LARGE
            if ended is not None:
                return Ending.WATCHDOG if watched.watchdog else ended
            if not ready and powered_off is None:
                return Ending.SILENT if until == first_word else Ending.TIMEOUT
            if not ready:  # QEMU hangs
                watched.ending = Ending.CRASHED if watched.signalled else Ending.STOPPED
    finally:
        lines.drain()  # an interrupt must not lose completed lines


def _monitor(domain: Any) -> saved_guest.Monitor:
    """Return what sends commands to the domain's QEMU."""

    def send(command: str, files: list[Any]) -> str:
        answer, _ = libvirt_qemu.qemuMonitorCommandWithFiles(domain, command, [file.fileno() for file in files])
        return str(answer)

    return send


def _paused(domain: Any) -> bool:
    try:
        return bool(domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED)
    except libvirt.libvirtError:
        return False


def _start(connection: Any, name: str, xml: str, how: int = 0) -> Any:
    """Start a domain that ends with the connection, after the end of any earlier one of that name."""
    with _asking(connection, "libvirt cannot start the guest"):
        _end_earlier_domain(connection, name)
        return connection.createXML(xml, libvirt.VIR_DOMAIN_START_AUTODESTROY | how)


def _end_earlier_domain(connection: Any, name: str) -> None:
    """End a domain of that name left by an earlier process that carried out this run and was killed."""
    try:
        domain = connection.lookupByName(name)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
            raise
    else:
        _destroy(domain)


def _words(command: str) -> list[str]:
    """Split a command as shlex does, which is slow; what it quotes otherwise than by ' is left to it."""
    if _PLAIN_WORD.sub("", command).strip():
        return shlex.split(command)
    return [word.replace("'", "") for word in _PLAIN_WORD.findall(command)]


def _alive(connection: Any) -> bool:
    try:
        return bool(connection.isAlive())
    except libvirt.libvirtError:
        return False


def _end_process(name: str) -> None:
    """End the guest's QEMU if it still runs: a daemon that was killed cannot destroy its domains."""
    orphans.terminate(orphans.tagged(orphans.tag(), f"guest={name},"))


def _destroy(domain: Any) -> None:
    with suppress(DaemonLost), _asking(domain.connect(), "libvirt cannot end the guest"):
        try:
            domain.destroy()
        except libvirt.libvirtError as error:
            if error.get_error_code() not in ALREADY_ENDED:
                raise


@contextmanager
def connected(needed: Sequence[Path] = ()) -> Iterator[Hypervisor]:
    """Yield a connection to a daemon that sees the ``needed`` files and directories. Raises HostError without one."""
    with libvirt_daemon.keep_running(needed):
        hypervisor = Hypervisor()
        try:
            yield hypervisor
        finally:
            hypervisor.close()
