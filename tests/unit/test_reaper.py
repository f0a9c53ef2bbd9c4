"""The parent of what a daemon leaves behind."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

REAPER = "import sys; from agelab.vm.reaper import run; sys.exit(run(sys.argv[1:]))"


def reap(script: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", REAPER, "sh", "-c", script])


def parent(process: Path) -> int:
    """Its parent's process id, from its directory in /proc."""
    line = next(line for line in (process / "status").read_text().splitlines() if line.startswith("PPid"))
    return int(line.split()[1])


def test_an_orphan_is_gone_as_soon_as_it_ends(tmp_path: Path) -> None:
    named, go = tmp_path / "orphan", tmp_path / "go"
    # The shell in between ends at once: what it has started is an orphan from then on, and ends when it is told to.
    orphan = f"until [ -e {go} ]; do sleep 0.02; done"
    daemon = reap(f"sh -c '({orphan}) & echo $! > {named}.new; mv {named}.new {named}'; exec sleep 60")
    try:
        until = time.monotonic() + 40

        def wait(over: Callable[[], bool]) -> None:
            while not over():
                assert time.monotonic() < until
                time.sleep(0.01)

        wait(named.exists)
        place = Path(f"/proc/{int(named.read_text())}")
        wait(lambda: parent(place) == daemon.pid)
        go.touch()
        wait(lambda: not place.exists())
    finally:
        daemon.kill()
        daemon.wait()


def test_the_daemons_end_is_the_reapers() -> None:
    assert reap("exit 3").wait(20) == 3
    assert reap("kill -TERM $$").wait(20) == 128 + 15
