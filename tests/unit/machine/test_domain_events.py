"""What libvirt's events say of the domain that is waited for."""

import os
from types import SimpleNamespace

import libvirt
import pytest

from agelab.machine.vm import hypervisor
from agelab.machine.vm.hypervisor import Hypervisor
from agelab.results.result import Ending

STOPPED, SHUTDOWN = libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_SHUTDOWN
ENDED, DESTROYED = libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN, libvirt.VIR_DOMAIN_EVENT_STOPPED_DESTROYED
BY_GUEST, BY_SIGNAL = libvirt.VIR_DOMAIN_EVENT_SHUTDOWN_GUEST, libvirt.VIR_DOMAIN_EVENT_SHUTDOWN_HOST


def ending(events: list[tuple[int, int]], *, of_earlier: bool = False) -> Ending | None:
    """Return how a domain has ended by these events, which come for it, or for an earlier one of the same name."""
    waiting = Hypervisor.__new__(Hypervisor)
    watched = hypervisor._WatchedDomain()
    waiting._watched = {watched.identity: watched}
    identity = hypervisor._WatchedDomain().identity if of_earlier else watched.identity
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
def test_a_signal_to_qemu_is_no_power_off_by_the_guest(
    events: list[tuple[int, int]], expected: Ending | None
) -> None:
    assert ending(events) is expected


@pytest.mark.parametrize("detail", [ENDED, DESTROYED])
def test_the_end_of_an_earlier_domain_of_the_same_name_is_not_this_ones(detail: int) -> None:
    """Of a run whose agelab was killed: its guest may end after the next agelab has begun to wait for its own."""
    assert ending([(SHUTDOWN, BY_SIGNAL), (STOPPED, detail)], of_earlier=True) is None


def test_libvirts_uuid_stands_behind_the_name() -> None:
    xml = "<domain>\n  <name>agelab-a</name>\n  <memory>1</memory>\n</domain>\n"
    assert hypervisor.identified(xml, "u").splitlines()[1:3] == [
        "  <name>agelab-a</name>",
        "  <uuid>u</uuid>",
    ]
