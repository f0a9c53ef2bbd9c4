"""Several processors in the virtual clock: the same turns whatever the host does, and no time of theirs counts."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from agelab.cli.options import open_store
from agelab.machine.image import tools
from bench import seeds
from tests.vm.cells import agelab, shown
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm
RACING = Path(__file__).with_name("racing")
SCRIPT = """#!/bin/sh
race $PROCESSES $MIB || exit 1
dmesg | tail -n 3
"""
SMALL, LARGE = {"PROCESSES": "4", "MIB": "2"}, {"PROCESSES": "4", "MIB": "40"}
"""The large one writes more than there is memory: pages are reclaimed by their accessed bits."""
Result = tuple[str, str, str, bytes, bytes]
"""Key, digest, status, and the bytes of what it printed and of the console."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("suite") / "racing"
    (place / "bin").mkdir(parents=True)
    race = tools.obtain(open_store(), sources=RACING, flags=("-O1", "-static", "-s"))["race"]
    (place / "bin/race").write_bytes(Path(race).read_bytes())
    (place / "bin/race").chmod(0o755)
    for name, sizes in {"small": SMALL, "large": LARGE}.items():
        script = SCRIPT
        for variable, value in sizes.items():
            script = script.replace(f"${variable}", value)
        (place / name).write_text(script)
        (place / name).chmod(0o755)
    return place


def our_guests() -> Iterator[int]:
    """The QEMUs of runs of this suite."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"guest=agelab-" in command and b"-racing/" in command:
            yield int(place.name)


@contextmanager
def paused() -> Iterator[None]:
    """Guests of the suite are stopped for half a second, again and again."""
    over = Event()

    def pausing() -> None:
        while not over.wait(0.7):
            stopped = [*our_guests()]
            for sent in (signal.SIGSTOP, signal.SIGCONT):
                for pid in stopped:
                    try:
                        os.kill(pid, sent)
                    except ProcessLookupError:
                        continue
                time.sleep(0.5 if sent == signal.SIGSTOP else 0)

    thread = Thread(target=pausing)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def raced(suite: Path, test: str, *words: str, cwd: Path | None = None) -> Result:
    """Run one test of the suite once."""
    usual = ("--filesystem", "ext4", "--memory-mib", "96", "--timeout", "120", "--fresh", "--only", test)
    done = agelab("test", str(suite), *usual, *words, cwd=cwd)
    [name] = re.findall(r"agelab show (\S+)", done.stdout)
    cell = shown(name)[0]
    place = open_store().runs / name / "cells/0"
    output, console = (place / f"{test}-1.output").read_bytes(), (place / "console-0.log").read_bytes()
    assert re.search(rb"^\d+ of \d000000 updates", output), done.stdout + done.stderr
    return cell["inputs_key"], cell["digest"], cell["status"], output, console


@pytest.mark.full
@pytest.mark.parametrize("schedule", ["0", "1"])
@pytest.mark.parametrize("vcpus", ["1", "2", "4"])
def test_five_runs_of_each_number_of_processors_are_one(suite: Path, tmp_path: Path, vcpus: str, schedule: str) -> None:
    """Quietly, on a busy host, stopped again and again, from another directory, and beside another guest."""
    words = ("--vcpus", vcpus, "--schedule", schedule)
    results = [raced(suite, "large", *words)]
    for beside in (both_cores_busy, paused):
        with beside():
            results.append(raced(suite, "large", *words))
    results.append(raced(suite, "large", *words, cwd=tmp_path))
    results.append(raced(suite, "large", *words, "--seeds", "1,2", "--jobs", "2"))
    assert len(set(results)) == 1


@pytest.mark.full
def test_two_processors_race_and_race_the_same_way_on_a_busy_host_that_stops_them(suite: Path) -> None:
    words = ("--vcpus", "2", "--seeds", "4")
    quiet = raced(suite, "small", *words)
    with both_cores_busy(), paused():
        assert raced(suite, "small", *words) == quiet
    [counted] = re.findall(rb"^(\d+) of", quiet[3])
    assert int(counted) < 4_000_000


@pytest.mark.full
def test_a_lost_update_is_found_by_turns_and_found_again(tmp_path: Path) -> None:
    place = seeds.planted(tmp_path / "planted", open_store())
    which = ["--only", "lost-update", "--filesystem", "ext4", "--mib", "64", "--timeout", "20"]
    words = [*which, "--vcpus", "2", "--fresh"]
    found = agelab("test", str(place), *words, "--seeds", "1-6", "--jobs", "2")
    [first, *_] = re.findall(r"^lost-update on ext4, seed (\d+): exit status 1$", found.stdout, re.MULTILINE)
    ends = set()
    for _ in range(3):
        again = agelab("test", str(place), *words, "--seeds", first)
        [cell] = shown(re.findall(r"agelab show (\S+)", again.stdout)[0])
        ends.add((cell["inputs_key"], cell["digest"], cell["reason"]))
    [(_, _, reason)] = ends
    assert reason.endswith("exit status 1")


@pytest.mark.full
def test_no_statistic_takes_their_samples(suite: Path) -> None:
    done = agelab("test", str(suite), "--only", "small", "--filesystem", "ext4", "--vcpus", "2")
    [name] = re.findall(r"agelab show (\S+)", done.stdout)
    assert "not timed: the clock counts the instructions of 2 processors" in agelab("show", name).stdout
    compared = agelab("compare", name, name)
    assert "not timed" in compared.stdout + compared.stderr
