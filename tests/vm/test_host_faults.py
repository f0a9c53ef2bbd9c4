"""QEMU, libvirt's daemon and the reader of the events killed, stopped and stalled while a guest runs."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.doctor import leftovers
from tests.capabilities import needs_root
from tests.vm import private
from tests.vm.cells import step
from tests.vm.chaos import Chaos, cheap, cleaned, home, wait_until

pytestmark = [pytest.mark.vm, needs_root]
SPIN = step("spin", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done")
GUEST = 240.0
"""Seconds of the host in which a guest comes to its second step."""


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    """agelab on a host of its own, which has carried out an undisturbed run."""
    directory = tmp_path_factory.mktemp("faults")
    path = cheap(directory, SPIN)
    with private.host() as before:
        made = Chaos(home(directory), ("run", str(path), "--filesystem", "ext2,ext4"), before=before)
        made.run(*made.words)
        yield made


@pytest.fixture
def begun(chaos: Chaos) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A run whose first guest is at its second step."""
    known = set(chaos.plans())
    child = chaos.start(*chaos.words)

    def copied() -> bool:
        new = set(chaos.plans()) - known
        samples = [path / "samples.jsonl" for path in new]
        return any(path.exists() and '"copy"' in path.read_text() for path in samples)

    try:
        assert wait_until(copied, GUEST), chaos.said()
        [run] = set(chaos.plans()) - known
        yield child, run
    finally:
        for pid in processes("agelab", chaos):
            os.kill(pid, signal.SIGKILL)
        child.kill()
        child.wait()


def processes(name: str, chaos: Chaos) -> list[int]:
    """The processes of that name on the test's host: those in its process namespace."""
    mine = (Path("/proc") / chaos.before[2] / "ns" / "pid").readlink()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "comm").read_text().startswith(name) and (place / "ns" / "pid").readlink() == mine:
                found.append(int(place.name))
        except OSError:
            continue
    return found


def guests(chaos: Chaos) -> list[int]:
    return processes("qemu-system", chaos)


def resumed(chaos: Chaos, run: Path) -> None:
    """The rest of the run, which comes to what the undisturbed one came to, and leaves nothing."""
    before = chaos.recorded()
    chaos.run("resume", run.name)
    chaos.nothing_lost(before)
    assert chaos.results(run) == chaos.results(chaos.plans()[0])
    assert wait_until(lambda: not guests(chaos))
    assert cleaned(chaos.store) == []


def interrupted(chaos: Chaos, run: Path, child: "subprocess.Popen[bytes]", why: str) -> None:
    """The first cell was interrupted, the next one ran."""
    assert child.wait(GUEST) == 1, chaos.said()
    first, second = (chaos.end(run, number) for number in (0, 1))
    assert (first["status"], first["reason"], first["digest"]) == ("interrupted", why, None)
    assert second["status"] == "ok"
    assert not list(run.glob("cells/*/*disk-*"))


def test_a_guest_whose_qemu_is_killed_is_interrupted(
    chaos: Chaos, begun: tuple["subprocess.Popen[bytes]", Path]
) -> None:
    child, run = begun
    [guest] = guests(chaos)
    os.kill(guest, signal.SIGKILL)
    interrupted(chaos, run, child, "QEMU was killed, or ended by itself; a full host filesystem does that")
    resumed(chaos, run)


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_daemon_that_ends_is_started_again_for_the_next_cell(
    chaos: Chaos, begun: tuple["subprocess.Popen[bytes]", Path], number: signal.Signals
) -> None:
    child, run = begun
    [guest], [libvirtd] = guests(chaos), processes("libvirtd", chaos)
    os.kill(libvirtd, number)
    assert wait_until(lambda: not Path(f"/proc/{guest}").exists())
    interrupted(chaos, run, child, "libvirt's daemon ended while the guest ran, and the guest with it")
    assert wait_until(lambda: not processes("libvirtd", chaos))
    resumed(chaos, run)


@pytest.mark.parametrize("seconds", [5.0, pytest.param(60.0, marks=pytest.mark.full)])
def test_a_reader_that_stalls_changes_no_digest(
    chaos: Chaos, begun: tuple["subprocess.Popen[bytes]", Path], seconds: float
) -> None:
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
def test_a_killed_agelab_leaves_no_guest_and_no_daemon(
    chaos: Chaos, begun: tuple["subprocess.Popen[bytes]", Path]
) -> None:
    child, run = begun
    [agelab] = processes("agelab", chaos)
    os.kill(agelab, signal.SIGKILL)
    child.wait()
    assert wait_until(lambda: not guests(chaos) and not processes("libvirtd", chaos))
    [line] = [str(one) for one in leftovers.find(chaos.store) if str(chaos.store.home) in str(one)]
    assert line.startswith(f"disks of cells that have not ended in {run}")
    resumed(chaos, run)
