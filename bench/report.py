"""Measure the cost of a report of 10,000 samples: ``python -m bench.report``.

The run is made, with real pictures of disks; the page is made by ``agelab report`` in a process of its own, as a user
has it: the start of Python and of the library that draws is in its time.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agelab.results.run_directory import RunDirectory
from tests.unit import aging_runs

PROJECT = Path(__file__).resolve().parents[1]
SAMPLES = 10_000
VARIANTS = (
    "btrfs",
    "ext2",
    "ext3",
    "ext3-journal",
    "ext4",
    "reiserfs",
    "reiserfs-journal",
    "jfs",
    "xfs",
    "vfat",
    "ntfs",
)
RUNS = 3
"""Pages to make of each run: the quickest says what the work costs, the slowest what else the host did."""


def main() -> None:
    """Make the pages and say how long it took, in seconds of host time and of the processor's, and MB."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for seeds in ((1,), (1, 2, 3, 4, 5)):
            slowdowns = {name: 1.2 + 0.1 * number for number, name in enumerate(VARIANTS)}
            one = _samples(aging_runs.make(home, {"ext4": 1.2}), home)
            while len(slowdowns) > 1 and (len(slowdowns) - 1) * len(seeds) * one >= SAMPLES:
                slowdowns.popitem()
            name = aging_runs.make(home, slowdowns, seeds=seeds, pictures=PROJECT / "docs" / "aging")
            page = home / "report.html"
            took = [_make(name, home, page) for _ in range(RUNS)]
            host, processor = (f"{min(one):.1f} to {max(one):.1f} s" for one in zip(*took, strict=True))
            print(
                f"{_samples(name, home)} samples, {len(slowdowns)} filesystems, {len(seeds)} run seeds: {host}, "
                f"{processor} of a processor, {page.stat().st_size / 1e6:.2f} MB"
            )


def _samples(name: str, home: Path) -> int:
    return sum(map(len, RunDirectory(home / "runs" / name).samples().values()))


def _make(name: str, home: Path, page: Path) -> tuple[float, float]:
    begun, used = time.monotonic(), os.times()
    subprocess.run(
        [sys.executable, "-c", "from agelab.cli import main; main()", "report", name, "-o", str(page)],
        env={**os.environ, "AGELAB_HOME": str(home)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    now = os.times()
    own = now.children_user + now.children_system - used.children_user - used.children_system
    return time.monotonic() - begun, own


if __name__ == "__main__":
    main()
