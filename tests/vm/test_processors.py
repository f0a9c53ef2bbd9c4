"""Several processors in the virtual clock: the same turns whatever the host does, and no time of theirs counts."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from agelab.cli.options import open_store
from agelab.machine.image import tools
from tests.vm.cells import agelab, shown
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm
RACING = Path(__file__).with_name("racing")
SCRIPT = """#!/bin/sh
race 4 40 || exit 1
dmesg | tail -n 3
"""
"""Writes more than there is memory: pages are reclaimed by their accessed bits."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("suite") / "racing"
    (place / "bin").mkdir(parents=True)
    race = tools.obtain(open_store(), sources=RACING, flags=("-O1", "-static", "-s"))["race"]
    (place / "bin/race").write_bytes(Path(race).read_bytes())
    (place / "bin/race").chmod(0o755)
    (place / "races").write_text(SCRIPT)
    (place / "races").chmod(0o755)
    return place


def _is_ours(pid: int) -> bool:
    try:
        return b"-racing/" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


@contextmanager
def paused() -> Iterator[None]:
    """Guests of the suite are stopped for half a second, again and again."""
    over = Event()

    def guests() -> list[int]:
        listed = subprocess.run(
            ["pgrep", "-f", "qemu-system-x86_64.*guest=agelab-"], capture_output=True, text=True
        )
        return [int(pid) for pid in listed.stdout.split() if _is_ours(int(pid))]

    def pausing() -> None:
        while not over.wait(0.7):
            for pid in guests():
                os.kill(pid, signal.SIGSTOP)
            time.sleep(0.5)
            for pid in guests():
                os.kill(pid, signal.SIGCONT)

    thread = Thread(target=pausing)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def raced(suite: Path, *words: str, cwd: Path | None = None) -> tuple[str, str, str, bytes, bytes]:
    """Run the suite once: key, digest, status, and the bytes of what it printed and of the console."""
    done = agelab(
        "test",
        str(suite),
        "--filesystem",
        "ext4",
        "--memory-mib",
        "96",
        "--timeout",
        "120",
        "--fresh",
        *words,
        cwd=cwd,
    )
    [name] = re.findall(r"agelab show (\S+)", done.stdout)
    cell: dict[str, Any] = shown(name)[0]
    place = open_store().runs / name / "cells/0"
    output, console = (place / "races-1.output").read_bytes(), (place / "console-0.log").read_bytes()
    assert re.search(rb"^\d+ of 4000000 updates", output), done.stdout + done.stderr
    return cell["inputs_key"], cell["digest"], cell["status"], output, console


def five(suite: Path, directory: Path, *words: str) -> list[tuple[str, str, str, bytes, bytes]]:
    """Run it quietly, on a busy host, stopped again and again, from another directory, and beside another guest."""
    results = [raced(suite, *words)]
    for beside in (both_cores_busy, paused):
        with beside():
            results.append(raced(suite, *words))
    results.append(raced(suite, *words, cwd=directory))
    return [*results, raced(suite, *words, "--seeds", "1,2", "--jobs", "2")]


@pytest.mark.full
@pytest.mark.parametrize("schedule", ["0", "1"])
@pytest.mark.parametrize("vcpus", ["1", "2", "4"])
def test_five_runs_of_each_number_of_processors_are_one(
    suite: Path, tmp_path: Path, vcpus: str, schedule: str
) -> None:
    assert len(set(five(suite, tmp_path, "--vcpus", vcpus, "--schedule", schedule))) == 1


def test_two_processors_race_and_race_the_same_way_on_a_busy_host_that_stops_them(suite: Path) -> None:
    quiet = raced(suite, "--vcpus", "2")
    with both_cores_busy(), paused():
        assert raced(suite, "--vcpus", "2") == quiet
    [counted] = re.findall(rb"^(\d+) of", quiet[3])
    assert int(counted) < 4_000_000


def test_no_statistic_takes_their_samples(suite: Path) -> None:
    done = agelab("test", str(suite), "--filesystem", "ext4", "--vcpus", "2", "--seeds", "1,2")
    [name] = re.findall(r"agelab show (\S+)", done.stdout)
    assert "not timed: the clock counts the instructions of 2 processors" in agelab("show", name).stdout
    compared = agelab("compare", name, name)
    assert "not timed" in compared.stdout + compared.stderr
    refused = agelab("test", str(suite), "--filesystem", "ext4", "--vcpus", "5")
    assert refused.returncode == 2 and "the virtual clock has 1 to 4 processors" in refused.stderr
