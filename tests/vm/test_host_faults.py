"""QEMU, libvirt's daemon and the reader of the events killed, stopped and stalled while a guest runs."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.runner.doctor import leftovers
from tests.capabilities import needs_root
from tests.vm import private, taken_hold
from tests.vm.chaos import Chaos, cheap, home, wait_until
from tests.vm.taken_hold import GUEST, Begun, guests, interrupted, processes, resumed

pytestmark = [pytest.mark.vm, needs_root]


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    with taken_hold.undisturbed(tmp_path_factory.mktemp("faults")) as made:
        yield made


@pytest.fixture
def begun(chaos: Chaos) -> Iterator[Begun]:
    with taken_hold.begun(chaos) as found:
        yield found


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_guest_whose_qemu_is_killed_is_interrupted(chaos: Chaos, begun: Begun, number: signal.Signals) -> None:
    child, run = begun
    [guest] = guests(chaos)
    os.kill(guest, number)
    interrupted(chaos, run, child, "QEMU was killed, or ended by itself; a full host filesystem does that")
    resumed(chaos, run)


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_daemon_that_ends_is_started_again_for_the_next_cell(
    chaos: Chaos, begun: Begun, number: signal.Signals
) -> None:
    child, run = begun
    [guest], [libvirtd] = guests(chaos), processes("libvirtd", chaos)
    os.kill(libvirtd, number)
    assert wait_until(lambda: not Path(f"/proc/{guest}").exists())
    interrupted(chaos, run, child, "libvirt's daemon ended while the guest ran, and the guest with it")
    assert wait_until(lambda: not processes("libvirtd", chaos))
    resumed(chaos, run)


def test_a_daemon_that_ends_while_a_guest_boots_to_be_saved_interrupts_that_cell(tmp_path: Path) -> None:
    with private.host() as before:
        words = ("run", str(cheap(tmp_path)), "--filesystem", "ext2,ext4")
        chaos = Chaos(home(tmp_path, "guest"), words, before=before)
        child = chaos.start(*chaos.words)
        assert wait_until(lambda: bool(guests(chaos)), GUEST), chaos.said()
        [libvirtd] = processes("libvirtd", chaos)
        os.kill(libvirtd, signal.SIGKILL)
        [run] = chaos.plans()
        interrupted(chaos, run, child, "libvirt's daemon ended while the guest ran, and the guest with it")
        assert "--boot full" not in chaos.said() and "Traceback" not in chaos.said()
        chaos.run("resume", run.name)
        assert wait_until(lambda: not guests(chaos) and not processes("libvirtd", chaos))


@pytest.mark.full
@pytest.mark.parametrize("seconds", [5.0, 60.0])
def test_a_reader_that_stalls_changes_no_digest(chaos: Chaos, begun: Begun, seconds: float) -> None:
    child, run = begun
    [agelab] = processes("agelab", chaos)
    os.kill(agelab, signal.SIGSTOP)
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > until, seconds + 1)  # libvirt's own patience with a client is 30 s
    os.kill(agelab, signal.SIGCONT)
    child.send_signal(signal.SIGCONT)  # nsenter stops with what it has started
    assert child.wait(GUEST) == 0, chaos.said()
    assert chaos.results(run) == chaos.results(chaos.plans()[0])


@pytest.mark.full
def test_a_killed_agelab_leaves_no_guest_and_no_daemon(chaos: Chaos, begun: Begun) -> None:
    child, run = begun
    [agelab] = processes("agelab", chaos)
    os.kill(agelab, signal.SIGKILL)
    child.wait()
    assert wait_until(lambda: not guests(chaos) and not processes("libvirtd", chaos))
    [line] = [str(one) for one in leftovers.find(chaos.store) if str(chaos.store.home) in str(one)]
    assert line.startswith(f"disks of cells that have not ended in {run}")
    resumed(chaos, run)


@pytest.fixture
def systems_daemon(chaos: Chaos) -> Iterator[None]:
    """A daemon that agelab has not started, with the host's own configuration."""
    virsh = [*chaos.before, "virsh", "--connect", "qemu:///system", "uri"]
    for daemon in ("virtlogd", "libvirtd"):
        subprocess.run([*chaos.before, daemon, "--daemon"], check=True)
    try:
        assert wait_until(lambda: subprocess.run(virsh, capture_output=True, check=False).returncode == 0)
        yield
    finally:
        for daemon in ("virtlogd", "libvirtd"):
            for pid in processes(daemon, chaos):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.full
@pytest.mark.usefixtures("systems_daemon")
@pytest.mark.parametrize("restarted", [False, True])
def test_the_systems_own_daemon_may_be_killed_and_restarted(chaos: Chaos, restarted: bool) -> None:
    """Where nobody restarts it (no service manager does here) agelab starts one of its own."""
    with taken_hold.begun(chaos) as (child, run):
        [guest], [libvirtd] = guests(chaos), processes("libvirtd", chaos)
        os.kill(libvirtd, signal.SIGKILL)
        if restarted:
            subprocess.run([*chaos.before, "libvirtd", "--daemon"], check=True)
        assert wait_until(lambda: not Path(f"/proc/{guest}").exists())
        interrupted(chaos, run, child, "libvirt's daemon ended while the guest ran, and the guest with it")
        resumed(chaos, run)
    if restarted:
        assert processes("libvirtd", chaos), "it is not ours to stop"
