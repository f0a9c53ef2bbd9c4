"""The program that bench.history starts for each engine."""

import json
import subprocess
import sys
from pathlib import Path

from bench.history import MAKE, figure


def test_it_makes_a_history_and_says_what_that_took(tmp_path: Path) -> None:
    wanted = {"engine": "churn", "name": "bench", "overwrites": figure(2), "freed": figure(0.3)}
    wanted |= {"fullness": figure(0.5), "points": 2}
    argv = [sys.executable, "-c", MAKE, json.dumps(wanted), str(64_000_000), str(tmp_path / "home")]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    operations, seconds, mib = map(float, said.split())
    assert operations > 100 and seconds > 0 and mib > 10
