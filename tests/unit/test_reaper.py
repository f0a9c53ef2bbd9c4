"""The parent of what a daemon leaves behind."""

import subprocess
import sys
import time
from pathlib import Path

REAPER = "import sys; from agelab.vm.reaper import run; sys.exit(run(sys.argv[1:]))"


def reap(script: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", REAPER, "sh", "-c", script])


def test_an_orphan_is_gone_as_soon_as_it_ends(tmp_path: Path) -> None:
    named = tmp_path / "orphan"
    # The shell in between ends at once: its sleep is an orphan from then on, and ends half a second later.
    daemon = reap(f"sh -c 'sleep 0.5 & echo $! > {named}.new; mv {named}.new {named}'; exec sleep 20")
    try:
        until = time.monotonic() + 20
        while not named.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        place = Path(f"/proc/{int(named.read_text())}")
        assert place.exists()
        parent = next(line for line in (place / "status").read_text().splitlines() if line.startswith("PPid"))
        assert int(parent.split()[1]) == daemon.pid
        while place.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        daemon.kill()
        daemon.wait()


def test_the_daemons_end_is_the_reapers() -> None:
    assert reap("exit 3").wait(20) == 3
    assert reap("kill -TERM $$").wait(20) == 128 + 15
