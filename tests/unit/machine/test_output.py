"""A guest's output is taken in bounded pieces, whatever it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from agelab.machine.vm import guest_output
from agelab.machine.vm.guest_output import MAX_LINE_BYTES, GuestOutput, LineReader, console_text

FLOOD = 200 * guest_output.MIB


def heard(path: Path, *chunks: bytes, most: int = guest_output.MAX_EVENT_BYTES) -> list[str]:
    """The lines of a file that grows by these chunks."""
    found: list[str] = []
    path.touch()
    with path.open("rb") as file, path.open("ab", buffering=0) as grows:
        lines = LineReader(file, found.append, most)
        for chunk in chunks:
            grows.write(chunk)
            lines.drain()
    return found


def test_lines_are_whole_however_they_come(tmp_path: Path) -> None:
    assert heard(tmp_path / "events", b"on", b"e\ntwo\nth", b"ree", b"\nfour") == ["one", "two", "three"]


def test_a_line_that_is_too_long_is_dropped_and_the_next_is_not(tmp_path: Path) -> None:
    long = b"x" * (3 * MAX_LINE_BYTES)
    assert heard(tmp_path / "events", b"one\n" + long, long + b"\ntwo\n") == ["one", "two"]
    just = b"y" * MAX_LINE_BYTES
    assert heard(tmp_path / "other", just + b"\n" + just + b"y\nz\n") == [just.decode(), "z"]


def test_garbage_is_a_line_like_any_other(tmp_path: Path) -> None:
    assert heard(tmp_path / "events", b"\xff\xfe\x00\x1b[2J\ngood\n") == ["\ufffd\ufffd\x00\x1b[2J", "good"]


def test_a_hearer_that_raises_hears_whole_lines_afterwards(tmp_path: Path) -> None:
    found: list[str] = []

    def hear(line: str) -> None:
        found.append(line)
        if line == "one":
            raise KeyboardInterrupt

    path = tmp_path / "events"
    path.write_bytes(b"one\ntwo\nthr")
    with path.open("rb") as file, path.open("ab", buffering=0) as grows:
        lines = LineReader(file, hear)
        with pytest.raises(KeyboardInterrupt):
            lines.drain()
        grows.write(b"ee\n")
        lines.drain()
    assert found == ["one", "three"]


def test_no_more_is_read_than_a_guest_may_say(tmp_path: Path) -> None:
    assert heard(tmp_path / "events", b"a\n" * 100, most=20) == ["a"] * 10


@pytest.mark.parametrize("file", ["events", "console"])
def test_a_flood_is_seen(tmp_path: Path, file: str) -> None:
    (tmp_path / "events").touch()
    (tmp_path / "console").touch()
    found = GuestOutput(tmp_path / "events", tmp_path / "console", max_event_bytes=100)
    assert not found.is_flooded()
    with (tmp_path / file).open("wb") as flood:
        flood.truncate(guest_output.MAX_CONSOLE_BYTES + 1 if file == "console" else 101)
    assert found.is_flooded()


def test_of_a_long_console_beginning_and_end_are_looked_at(tmp_path: Path) -> None:
    console = tmp_path / "console"
    console.write_bytes(b"first" + b"\n" * 5 * guest_output.MIB + b"last")
    text = console_text(console)
    assert text.startswith("first") and text.endswith("last") and len(text) < 3 * guest_output.MIB
    console.write_bytes(b"all\xff of it")
    assert console_text(console) == "all\ufffd of it"


@pytest.mark.parametrize("line", [b"x" * 99 + b"\n", b"x" * 100], ids=["lines", "one line"])
def test_hundreds_of_megabytes_take_no_memory(tmp_path: Path, line: bytes) -> None:
    """In a process of its own, whose peak is its own."""
    flood = tmp_path / "flood"
    with flood.open("wb") as file:
        for _ in range(FLOOD // guest_output.MIB):
            file.write(line * (guest_output.MIB // len(line)))
    program = (
        "import sys, resource\n"
        "from pathlib import Path\n"
        "from agelab.machine.vm.guest_output import LineReader, console_text\n"
        "path = Path(sys.argv[1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"LineReader(path.open('rb'), lambda line: None, {FLOOD}).drain()\n"
        "console_text(path)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(flood)], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 32 * guest_output.MIB
