"""The fuzzer's targets: their seeds, and three hundred inputs made from them; `make fuzz` makes 100,000 of each."""

import os
import re
import subprocess
import sys
from pathlib import Path

TARGETS = sorted(path.stem for path in (Path(__file__).parents[2] / "fuzz").glob("[!_]*.py"))
RUNS = 300


ALL = """
import sys
from tests.fuzz import __main__ as fuzz
for target in sys.argv[2:]:
    print(target, fuzz.fuzz(target, int(sys.argv[1]), 1), flush=True)
"""
"""All targets in one process: each has one of its own anyway, and what they read with is compiled once."""


def test_no_made_up_input_raises_or_hangs() -> None:
    words = [sys.executable, "-c", ALL, str(RUNS), *TARGETS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    ended = [line for line in done.stdout.splitlines() if ": what fails is kept in " not in line]
    assert set(ended) >= {f"{target} 0" for target in TARGETS}, done.stdout[-2000:] + done.stderr[-3000:]
    assert len(re.findall(rf"Done {RUNS} runs|number_of_executed_units", done.stderr)) >= len(TARGETS)


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
