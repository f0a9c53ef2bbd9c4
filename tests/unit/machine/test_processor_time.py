"""Processor time of programs that somebody else starts and reaps."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agelab.base import orphans
from agelab.machine.vm.processor_time import Program, ProgramWatch, read_times

SPIN = "import time, sys; end = time.process_time() + float(sys.argv[1])\nwhile time.process_time() < end: pass"
MARK = "guest=agelab-spinning,"
TAGGED = {**os.environ, orphans.VARIABLE: orphans.tag()}


def ours(program: Program) -> bool:
    return program.is_guest and program.owner == orphans.tag()


def spin(seconds: float) -> list[str]:
    return [sys.executable, "-c", SPIN, str(seconds), MARK]


@contextmanager
def spinning(seconds: float) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(spin(seconds), env=TAGGED) as child:
        yield child


def test_a_program_is_measured_to_its_end() -> None:
    before = os.times()
    with ProgramWatch(ours) as watch, spinning(0.5) as child:
        child.wait()
        after = os.times()
        time.sleep(0.1)
        [found] = watch.programs()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert found.pid == child.pid
    assert used - 0.05 <= found.used.own <= used + 0.02  # the last reading is less than 50 ms old


def test_a_fork_is_the_program_that_begins_in_it() -> None:
    """libvirt's daemon forks, prepares the child for a while, and only then starts QEMU in it."""
    script = f"sleep 0.3; exec {sys.executable} -c '{SPIN}' 0.3 {MARK}"
    with ProgramWatch(ours) as watch:
        subprocess.run(["sh", "-c", script], env=TAGGED, check=True)
        time.sleep(0.1)
        [found] = watch.programs()
    assert found.used.own >= 0.25


def test_of_an_older_program_only_what_it_uses_while_it_is_watched_counts() -> None:
    with spinning(1.0) as child:
        while _used(child.pid) < 0.5:
            time.sleep(0.05)
        with ProgramWatch(ours) as watch:
            child.wait()
        [found] = watch.programs()
    assert 0.2 < found.used.own < 0.7


def test_programs_of_others_are_not_listed() -> None:
    # The other owner lives: a program of a dead one is ended by any agelab that runs beside this test.
    parent = os.getppid()
    other = f"{parent}:{orphans.start_time(parent)}"
    with ProgramWatch(ours) as watch:
        subprocess.run(spin(0.2), env={**os.environ, orphans.VARIABLE: other}, check=True)
        subprocess.run(spin(0.2)[:-1], env=TAGGED, check=True)
    assert watch.programs() == []


def test_what_children_have_used_is_the_parents_once_they_are_waited_for() -> None:
    script = f"{sys.executable} -c '{SPIN}' 0.3; sleep 0.2; : {MARK}"
    with ProgramWatch(ours) as watch:
        subprocess.run(["sh", "-c", script, MARK], env=TAGGED, check=True)
        [found] = watch.programs()
    assert found.used.waited_for >= 0.25 > found.used.own


def _used(pid: int) -> float:
    read = read_times(pid)
    assert read
    return read[1].own
