"""The fuzzer's targets: their seeds, and three hundred inputs made from them; `make fuzz` makes 100,000 of each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TARGETS = sorted(path.stem for path in (Path(__file__).parents[2] / "fuzz").glob("[!_]*.py"))
RUNS = 300


@pytest.mark.parametrize("target", TARGETS)
def test_no_made_up_input_raises_or_hangs(target: str) -> None:
    words = [sys.executable, "-m", "tests.fuzz", target, "--runs", str(RUNS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert f"Done {RUNS} runs" in done.stderr or "number_of_executed_units" in done.stderr


def test_a_target_that_raises_is_found_out(tmp_path: Path) -> None:
    """A failing input is named and kept, and fails again."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", FAULTY]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode != 0 and "agelab says no" in done.stdout + done.stderr
    assert len(list(tmp_path.glob("agelab-fuzz-event-*/crash-*"))) == 1


FAULTY = """
import sys
from tests.fuzz import __main__ as fuzz, event
def one(data):
    if len(data) > 3 and data[0] % 7 == 3:
        raise KeyError("agelab says no")
event.one = one
sys.argv = ["fuzz", "event", "--runs", "5000"]
fuzz.main()
"""
