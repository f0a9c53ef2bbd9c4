"""Progress of a running run, on a terminal and in a pipe."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agelab.present.view.progress import step_text
from tests.build.study_runs import make, printed

GOING = [sys.executable, "-m", "tests.build.live_run"]
PROJECT = Path(__file__).parents[3]
PLAIN = ("NO_COLOR", "FORCE_COLOR", "CI", "COLUMNS", "TTY_COMPATIBLE")
SAID = ("ready of both", "mkfs 1 of both", "copy 1 of both", "aged/random-read 1 of both")
QUIET = [
    "kernel debian:6.1",
    *("cell 3/6: xfs, seed 1", "cell 4/6: xfs, seed 2", *SAID),
    *("cell 3/6: xfs, seed 1: ok in 202 s", "cell 4/6: xfs, seed 2: ok in 203 s"),
    *("cell 5/6: reiserfs-journal, seed 1", "cell 6/6: reiserfs-journal, seed 2", *SAID),
    "cell 5/6: reiserfs-journal, seed 1: ok in 204 s",
    "cell 6/6: reiserfs-journal, seed 2: unsupported in 205 s: this kernel has none",
]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in PLAIN}
    return {**kept, "TERM": "xterm-256color", **more}


def watched(home: Path, *words: str, **more: str) -> str:
    """All that a terminal of 80 columns gets of a run that goes on."""
    return on_a_terminal([*GOING, str(home), *words], **more)


def on_a_terminal(command: Sequence[str], **more: str) -> str:
    """All that a terminal of 80 columns gets."""
    ours, theirs = pty.openpty()
    environ = environment(COLUMNS="80", **more)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=PROJECT) as child:
        os.close(theirs)
        found = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                found += chunk
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert child.returncode == 0, found
    return found.decode()


def drawn(text: str) -> list[str]:
    """Each line as it was drawn at some moment."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "\n", text).split("\n")]


def test_a_terminal_has_the_steps_the_cells_done_and_the_time_left(tmp_path: Path) -> None:
    text = watched(tmp_path)
    assert "\x1b[2K" in text and "\x1b[1A" in text
    lines = drawn(re.sub(r"\x1b\[[0-9;]*m", "", text))
    assert max(map(len, lines)) <= 80
    assert any(re.match(r"cell 2/6: ext4, seed 2: copy 1/12 .* 1/45 0:00:0\d$", line) for line in lines)
    assert "0 of 6 cells done; time left: not known before a cell has ended" in lines
    assert "2 of 6 cells done; time left: about 7 min" in lines
    assert "4 of 6 cells done; time left: about 3 min" in lines
    assert "6 of 6 cells done" in lines
    assert "  cell 1/6: ext4, seed 1: ok in 200 s" in lines
    assert "  cell 1/6: ext4, seed 1" not in lines


def test_a_run_that_is_gone_on_with_has_its_ended_cells_done_and_knows_what_they_took(tmp_path: Path) -> None:
    lines = drawn(watched(tmp_path, "2"))
    # Two cells had ended, in a second each: that is all that is known.
    assert "2 of 6 cells done; time left: about 10 s" in lines
    assert any(line.startswith("cell 3/6: xfs, seed 1: ") for line in lines)


@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, {"CI": "true"}])
def test_where_nobody_watches_each_cell_has_a_line_at_its_begin_and_its_end(
    tmp_path: Path, more: dict[str, str]
) -> None:
    done = subprocess.run(
        [*GOING, str(tmp_path), "2"], capture_output=True, text=True, env=environment(**more), cwd=PROJECT
    )
    assert (done.stdout, done.stderr) == ("", "".join(f"  {line}\n" for line in QUIET))


@pytest.mark.parametrize("more", [{"TERM": "dumb"}, {"CI": "true", "NO_COLOR": "1"}])
def test_a_terminal_that_obeys_nothing_or_keeps_a_log_gets_the_same(tmp_path: Path, more: dict[str, str]) -> None:
    assert watched(tmp_path, "2", **more) == "".join(f"  {line}\r\n" for line in QUIET)


def test_no_color_leaves_the_movement_and_takes_the_colours(tmp_path: Path) -> None:
    text = watched(tmp_path, "2", NO_COLOR="1")
    assert "\x1b[2K" in text and not re.search(r"\x1b\[[0-9;]*m", text)


@pytest.mark.parametrize(("more", "obeyed"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_tables_and_titles_are_plain_where_that_is_wanted(tmp_path: Path, more: dict[str, str], obeyed: bool) -> None:
    make(tmp_path, "tum-2005", printed("tum-2005"))
    command = [sys.executable, "-c", "import sys; from agelab.cli import main; sys.exit(main())", "replicate", "latest"]
    text = on_a_terminal(command, AGELAB_HOME=str(tmp_path), **more)
    [head] = [line for line in text.split("\n") if "filesystem" in line and "rank" in line]
    assert ("\x1b[1m" in head) is obeyed and ("\x1b" in text) is obeyed


def test_a_step_is_counted_as_the_tables_count_it() -> None:
    known = {"copy": 12, "fill": 1}
    said = ("copy 7", "fill 1", "aged/mkfs 1", "ready", "replay 3", "copy 2: power cut")
    told = ["copy 7/12", "fill", "aged/mkfs", "ready", "replay 3", "copy 2: power cut"]
    assert [step_text(one, known) for one in said] == told
