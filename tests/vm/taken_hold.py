"""A run of two cells on a host of its own, taken hold of while its first guest is at work."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.vm import private
from tests.vm.cells import step
from tests.vm.chaos import Chaos, cheap, cleaned, home, wait_until

SPIN = step("spin", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done")
GUEST = 240.0
"""Seconds of the host in which a guest comes to its second step."""
Begun = tuple["subprocess.Popen[bytes]", Path]
"""An agelab, and its run."""


@contextmanager
def undisturbed(directory: Path, more: str = SPIN) -> Iterator[Chaos]:
    """Yield an agelab on a host of its own, which has carried out an undisturbed run."""
    path = cheap(directory, more)
    with private.host() as before:
        made = Chaos(home(directory), ("run", str(path), "--filesystem", "ext2,ext4"), before=before)
        made.run(*made.words)
        yield made


@contextmanager
def begun(chaos: Chaos, *, early: bool = False) -> Iterator[Begun]:
    """Yield a run whose first guest is at its second step, or has just been started."""
    known = set(chaos.plans())
    child = chaos.start(*chaos.words)

    def copied() -> bool:
        new = set(chaos.plans()) - known
        samples = [path / "samples.jsonl" for path in new]
        return any(path.exists() and '"copy"' in path.read_text() for path in samples)

    try:
        assert wait_until(lambda: bool(guests(chaos)) if early else copied(), GUEST), chaos.said()
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
    """The guests of cells; libvirt starts QEMU without any, too, to ask what it can do."""
    found = []
    for pid in processes("qemu-system", chaos):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found += [pid] if any(word.startswith(b"guest=agelab-") for word in words) else []
    return found


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
