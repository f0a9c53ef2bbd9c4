"""When the figures of one job are all on the host, by agelab's table and by a script's lines."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.base.errors import HostError
from agelab.scenario import selection
from bench import peer
from bench.common import time_until

LINES = b"mkfs 0.513220\ncopy 4.696959\nsync 0.294785\nread 6.325969\nremove 1.171917\n"
TABLE = b"""\
  cell 1/1: ext4, seed 1: ok in 32 s

         elapsed    %   %    %    %   MB      MB   MB
 step          s user sys wait idle read written used seeks
 mkfs   0.432773    0   7   93    0  0.0    17.2    -    13
 mount  0.045362    0  40   60    0  0.0     0.0  0.0     2
 copy   0.867889    1  97    2    0  0.0    41.5 51.3     5
 sync   0.330615    0  15   85    0  0.0    10.4 51.3     5
 read   1.823144    1  12   88    0 50.7     2.0 51.3   102
 remove 0.108311    9  73   18    0  0.0     0.2  0.0     1
"""


def test_a_step_is_read_from_a_line_and_from_a_table_alike() -> None:
    assert peer.figures(LINES)["read"] == 6.325969
    assert peer.figures(TABLE) == {
        "mkfs": 0.432773, "copy": 0.867889, "sync": 0.330615, "read": 1.823144, "remove": 0.108311,
    }  # fmt: skip


@pytest.mark.parametrize("said", [LINES, TABLE])
def test_the_figures_are_there_with_the_end_of_the_last_line(said: bytes) -> None:
    assert peer.is_complete(said)
    assert not peer.is_complete(said[:-1])
    assert not peer.is_complete(said.replace(b"sync", b"sunk"))


def test_both_do_the_same_steps() -> None:
    scenario = selection.select(str(peer.SCENARIO)).scenario
    assert ("mkfs", *(step.name for step in scenario.actions())) == peer.STEPS
    assert [line.split()[1] for line in peer.SCRIPT.splitlines() if line.startswith("figure ")] == list(peer.STEPS)
    assert scenario.corpus and scenario.corpus.mib.value * (1 << 20) == peer.TREE_BYTES
    assert scenario.disk.mib.value * (1 << 20) == peer.DISK_BYTES


def has_figure(said: bytes) -> bool:
    return b"figure\n" in said


def say(directory: Path, code: str, is_complete: Callable[[bytes], bool] = has_figure) -> tuple[float, bytes]:
    argv = [sys.executable, "-uc", f"import time\n{code}"]
    return time_until(argv, os.environ, directory / "log", is_complete, 20.0)


def test_the_time_is_that_of_the_figures_and_not_of_the_end(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"""
import pathlib
time.sleep(0.5); print('figure')
while not pathlib.Path({str(seen)!r}).exists(): time.sleep(0.01)
time.sleep(1); print('more')
"""

    def is_complete(said: bytes) -> bool:
        if has_figure(said):
            seen.touch()
        return has_figure(said)

    began = time.monotonic()
    seconds, said = say(tmp_path, code, is_complete)
    assert 0.5 <= seconds <= time.monotonic() - began - 0.5
    assert said == b"figure\nmore\n"


def test_a_command_that_gives_no_figures_is_an_error_that_names_its_output(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=str(tmp_path / "log")):
        say(tmp_path, "print('alas')")
    assert (tmp_path / "log").read_text() == "alas\n"
