"""A cell stopped at a moment, in gdb: the same instruction again, and guests that cannot be stopped."""

import re
from pathlib import Path

import pytest

from agelab.cli.options import open_store
from bench import seeds
from tests.vm.cells import agelab

pytestmark = [pytest.mark.vm, pytest.mark.full]
WHERE = re.compile(r"^rip +(0x\w+)", re.MULTILINE)


def of_planted(directory: Path, *words: str) -> str:
    """Run a planted test; the run's name."""
    suite = seeds.planted(directory / "planted", open_store())
    done = agelab("test", str(suite), "--only", "error-path", "--filesystem", "ext4", "--mib", "64", *words)
    assert done.stdout, done.stderr
    return done.stdout.rsplit("agelab show ", 1)[1].split()[0]


def test_a_failure_is_stopped_at_its_message_and_before_it_and_each_again(tmp_path: Path) -> None:
    run = of_planted(tmp_path, "--seeds", "1-6")
    script = tmp_path / "look.gdb"
    script.write_text("info registers rip\nbt 2\n")
    for moment in ("general protection fault", "error-path+0.01"):
        first, again = (agelab("debug", run, "--at", moment, "--script", str(script)) for _ in range(2))
        assert WHERE.search(first.stdout), first.stderr
        assert again.stdout == first.stdout
    done = agelab("debug", run, "--at", "nothing says so", "--script", str(script))
    assert done.returncode == 2
    assert "the cell ended without that moment" in done.stderr


def test_a_guest_of_two_processors_is_refused(tmp_path: Path) -> None:
    run = of_planted(tmp_path, "--vcpus", "2")
    done = agelab("debug", run, "--at", "error-path")
    assert done.returncode == 2
    assert f"{run} has 2 processors" in done.stderr
