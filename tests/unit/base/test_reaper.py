"""The parent of what a daemon leaves behind."""

import fcntl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

REAPER = """
import sys
from pathlib import Path
from agelab.machine.vm.reaper import run
sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
"""


@pytest.fixture
def users(tmp_path: Path) -> Iterator[IO[str]]:
    """The file by which a daemon's users are known, with one user."""
    with (tmp_path / "users").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield file


def reap(users: IO[str], script: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", REAPER, users.name, "sh", "-c", script])


def parent(process: Path) -> int:
    """Its parent's process id, from its directory in /proc."""
    line = next(line for line in (process / "status").read_text().splitlines() if line.startswith("PPid"))
    return int(line.split()[1])


def test_an_orphan_is_gone_as_soon_as_it_ends(tmp_path: Path, users: IO[str]) -> None:
    named, go = tmp_path / "orphan", tmp_path / "go"
    # The shell in between ends at once: what it has started is an orphan from then on, and ends when it is told to.
    orphan = f"until [ -e {go} ]; do sleep 0.02; done"
    daemon = reap(users, f"sh -c '({orphan}) & echo $! > {named}.new; mv {named}.new {named}'; exec sleep 60")
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


def test_the_daemons_end_is_the_reapers(users: IO[str]) -> None:
    assert reap(users, "exit 3").wait(20) == 3
    assert reap(users, "kill -TERM $$").wait(20) == 128 + 15


def test_a_daemon_that_nobody_uses_any_more_ends(users: IO[str]) -> None:
    daemon = reap(users, "exec sleep 60")
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.wait(1)
    fcntl.flock(users, fcntl.LOCK_UN)
    assert daemon.wait(20) == 128 + 15
