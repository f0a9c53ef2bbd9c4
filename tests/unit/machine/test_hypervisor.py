"""The one module that talks to libvirt: none of its errors leaves it, and what its events and its words mean."""

import os
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import libvirt
import libvirt_qemu
import pytest

from agelab.base.errors import AgelabError, HostError
from agelab.machine.vm import hypervisor as module
from agelab.machine.vm import libvirt_daemon
from agelab.machine.vm.guest_output import GuestOutput
from agelab.machine.vm.hypervisor import DaemonLost, Hypervisor
from agelab.results.result import Ending

XML = "<domain>\n  <name>agelab-a</name>\n</domain>\n"


def refuse(*_: object) -> Any:
    raise libvirt.libvirtError("internal error: client socket is closed")


class Daemon:
    """A connection to a daemon that refuses all, or all but some, and is there or has ended."""

    def __init__(self, *, alive: bool, **works: Any) -> None:
        self.alive, self.works = alive, works
        self.asked: list[str] = []

    def isAlive(self) -> bool:
        return self.alive

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return self.works.get(name, refuse)


@pytest.fixture
def output(tmp_path: Path) -> GuestOutput:
    for name in ("events", "console"):
        (tmp_path / name).touch()
    return GuestOutput(tmp_path / "events", tmp_path / "console")


def connected(monkeypatch: pytest.MonkeyPatch, *daemons: Daemon) -> Hypervisor:
    """Return a hypervisor of the first of these daemons; where one has ended the next is there."""
    left = list(daemons)
    monkeypatch.setattr(libvirt, "open", lambda _: left.pop(0) if left[1:] else left[0])
    monkeypatch.setattr(libvirt_daemon, "ensure_running", lambda: None)
    monkeypatch.setattr(Hypervisor, "_events", lambda _: None)
    for daemon in daemons:
        for name in ("domainEventRegisterAny", "registerCloseCallback", "close"):
            daemon.works.setdefault(name, lambda *_: None)
    return Hypervisor()


def everything(hypervisor: Hypervisor, output: GuestOutput) -> dict[str, Any]:
    return {
        "version": lambda: hypervisor.version,
        "security models": lambda: hypervisor.security_models,
        "command line": lambda: hypervisor.command_line(XML),
        "run": lambda: hypervisor.run("agelab-a", XML, output, print, 1),
        "restore": lambda: hypervisor.run("agelab-a", XML, output, print, 1, output.events),
        "save": lambda: hypervisor.save("agelab-a", XML, output.events),
    }


def domain(daemon: Daemon) -> Any:
    """A domain of that daemon that has been started, of which nothing can be had any more."""
    ended = SimpleNamespace(destroy=refuse, state=refuse, resume=refuse, connect=lambda: daemon)
    daemon.works |= {"lookupByName": lambda _: ended, "createXML": lambda *_: ended}
    return ended


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize(
    ("what", "started"),
    [
        ("version", False), ("security models", False), ("command line", False), ("run", False),
        ("restore", False), ("restore", True), ("save", False), ("save", True),
    ],
)  # fmt: skip
def test_none_of_them_leaves_it_and_a_daemon_that_has_ended_is_named(
    monkeypatch: pytest.MonkeyPatch, output: GuestOutput, what: str, alive: bool, started: bool
) -> None:
    monkeypatch.setattr(libvirt_qemu, "qemuMonitorCommandWithFiles", refuse)
    daemon = Daemon(alive=True)
    if started:
        domain(daemon)
    made = connected(monkeypatch, daemon)
    daemon.alive = alive
    with pytest.raises(AgelabError) as raised:
        everything(made, output)[what]()
    if alive:
        assert isinstance(raised.value, HostError) and "client socket is closed" in str(raised.value)
    else:
        assert isinstance(raised.value, DaemonLost) and raised.value.hint.startswith("run it again")


def test_a_socket_that_ends_before_the_connection_knows_is_the_daemon_s_end(
    monkeypatch: pytest.MonkeyPatch, output: GuestOutput
) -> None:
    class EndOfFile(libvirt.libvirtError):  # type: ignore[misc]
        def get_error_domain(self) -> int:
            return int(libvirt.VIR_FROM_RPC)

    def end(*_: object) -> Any:
        raise EndOfFile("End of file while reading data: Input/output error")

    monkeypatch.setattr(libvirt_qemu, "qemuMonitorCommandWithFiles", end)
    daemon = Daemon(alive=True)
    domain(daemon).destroy = end
    with pytest.raises(DaemonLost):
        connected(monkeypatch, daemon).save("agelab-a", XML, output.events)


def test_a_domain_that_cannot_be_ended_is_told(monkeypatch: pytest.MonkeyPatch, output: GuestOutput) -> None:
    daemon = Daemon(alive=True)
    domain(daemon)
    with pytest.raises(HostError, match="libvirt cannot end the guest: internal error"):
        connected(monkeypatch, daemon).run("agelab-a", XML, output, print, 0.1)


def test_what_the_daemon_is_asked_while_it_ends_the_next_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        first.alive = False
        refuse()

    first = Daemon(alive=True, getCapabilities=end)
    second = Daemon(alive=True, getCapabilities=lambda: "<c><host><secmodel><model>dac</model></secmodel></host></c>")
    assert connected(monkeypatch, first, second).security_models == ["dac"]
    assert "getCapabilities" in first.asked


def test_a_connection_that_cannot_be_opened_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libvirt, "open", refuse)
    with pytest.raises(HostError, match="client socket is closed") as raised:
        Hypervisor()
    assert raised.value.hint == "run: agelab doctor"


# ---- events and words ----

STOPPED, SHUTDOWN = libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_SHUTDOWN
ENDED, DESTROYED = libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN, libvirt.VIR_DOMAIN_EVENT_STOPPED_DESTROYED
BY_GUEST, BY_SIGNAL = libvirt.VIR_DOMAIN_EVENT_SHUTDOWN_GUEST, libvirt.VIR_DOMAIN_EVENT_SHUTDOWN_HOST


def ending(events: list[tuple[int, int]], *, of_earlier: bool = False) -> Ending | None:
    """Return how a domain has ended by these events, which come for it, or for an earlier one of the same name."""
    waiting = Hypervisor.__new__(Hypervisor)
    watched = module._WatchedDomain()
    waiting._watched = {watched.identity: watched}
    identity = module._WatchedDomain().identity if of_earlier else watched.identity
    domain = SimpleNamespace(UUIDString=lambda: identity, name=lambda: "agelab-0123456789ab")
    try:
        for event, detail in events:
            waiting._lifecycle(None, domain, event, detail, None)
        return watched.ending
    finally:
        os.close(watched.wake)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([(SHUTDOWN, BY_GUEST), (STOPPED, ENDED)], Ending.STOPPED),
        ([(SHUTDOWN, BY_SIGNAL), (STOPPED, ENDED)], Ending.CRASHED),
        ([(STOPPED, DESTROYED)], Ending.CRASHED),
        ([(SHUTDOWN, BY_SIGNAL)], None),
    ],
)
def test_a_signal_to_qemu_is_no_power_off_by_the_guest(events: list[tuple[int, int]], expected: Ending | None) -> None:
    assert ending(events) is expected


@pytest.mark.parametrize(("how", "expected"), [(BY_GUEST, Ending.STOPPED), (BY_SIGNAL, Ending.CRASHED)])
def test_a_qemu_that_hangs_once_its_guest_has_powered_off_is_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch, output: GuestOutput, how: int, expected: Ending
) -> None:
    """As one of two processors once did, when both of its threads waited for each other's lock."""
    monkeypatch.setattr(module, "LINGERING_SECONDS", 0.3)
    daemon, destroyed = Daemon(alive=True), list[int]()
    guest = domain(daemon)
    guest.destroy = lambda: destroyed.append(1)

    def start(xml: str, _: int) -> Any:
        guest.UUIDString = lambda: xml.partition("<uuid>")[2].partition("</uuid>")[0]
        hypervisor._lifecycle(None, guest, SHUTDOWN, how, None)
        return guest

    daemon.works["createXML"] = start
    hypervisor = connected(monkeypatch, daemon)
    assert hypervisor.run("agelab-a", XML, output, print, 60) is expected
    assert len(destroyed) == 2  # an earlier one of its name, too


@pytest.mark.parametrize(
    ("said", "patience", "expected"), [("", 60, "SILENT"), ("", 0, "TIMEOUT"), ("x", 1, "TIMEOUT")]
)
def test_a_guest_that_says_nothing_is_not_waited_for_longer_than_a_boot(
    monkeypatch: pytest.MonkeyPatch, output: GuestOutput, said: str, patience: float, expected: str
) -> None:
    """As one of two processors in the wall clock once did, before its kernel ran."""
    monkeypatch.setattr(module, "BOOT_SECONDS", 0.3)
    output.console.write_text(said)
    daemon = Daemon(alive=True)
    domain(daemon).destroy = lambda: None
    hypervisor = connected(monkeypatch, daemon)
    assert hypervisor.run("agelab-a", XML, output, print, patience) is Ending[expected]


@pytest.mark.parametrize("detail", [ENDED, DESTROYED])
def test_the_end_of_an_earlier_domain_of_the_same_name_is_not_this_ones(detail: int) -> None:
    """Of a run whose agelab was killed: its guest may end after the next agelab has begun to wait for its own."""
    assert ending([(SHUTDOWN, BY_SIGNAL), (STOPPED, detail)], of_earlier=True) is None


def test_libvirts_uuid_stands_behind_the_name() -> None:
    xml = "<domain>\n  <name>agelab-a</name>\n  <memory>1</memory>\n</domain>\n"
    assert module.identified(xml, "u").splitlines()[1:3] == ["  <name>agelab-a</name>", "  <uuid>u</uuid>"]


@pytest.mark.parametrize(
    "command",
    [
        "LC_ALL=C /usr/bin/qemu -name guest=a,debug-threads=on -S",
        """/usr/bin/qemu -object '{"qom-type":"secret","id":"a b"}' -append 'a b'c  -x ''""",
        "/usr/bin/qemu -append 'it'\\''s' \"b c\" d\\ e",
        "/usr/bin/qemu -append 'first\nsecond'",
    ],
)
def test_the_words_of_a_qemu_command_are_those_of_a_shell(command: str) -> None:
    assert module._words(command) == shlex.split(command)
