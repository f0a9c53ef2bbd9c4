"""The program that bench.history starts for each engine."""

import json
import subprocess
import sys
from pathlib import Path

from bench.history import MAKE, figure


def test_it_makes_a_history_and_says_what_that_took(tmp_path: Path) -> None:
    figures = {"overwrites": figure(2), "freed": figure(0.3), "fullness": figure(0.5)}
    wanted = json.dumps({"engine": "churn", "name": "bench", "points": 2, **figures})
    argv = [sys.executable, "-c", MAKE, wanted, str(64_000_000), str(tmp_path / "home")]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    operations, seconds, mib = map(float, said.split())
    assert operations > 100 and seconds > 0 and mib > 10
