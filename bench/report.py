"""Measure the cost of a report of 10,000 samples, or with ``--cells`` of 1,000 cells: ``python -m bench.report``.

The run is made, with real pictures of disks; the page is made by ``agelab report`` in a process of its own, as a user
has it: the start of Python and of the library that draws is in its time.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agelab.results.run_directory import RunDirectory
from docs.make import command
from docs.make.command import Answer
from docs.make.page import DOCS, grid
from tests.build import aging_runs

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
HEAD = ("samples", "filesystems", "run seeds", "s", "s of a processor", "MB")
RUNS = 3
"""Pages to make of each run: the quickest says what the work costs, the slowest what else the host did."""


def main() -> int:
    """Make the pages and say what each took."""
    parser = command.parser(__doc__)
    parser.add_argument(
        "--cells", action="store_true", help="of 1,000 cells (limits: 5 s, 2 MB), not of 10,000 samples"
    )
    return command.run(
        parser,
        lambda asked: (
            Answer(printed="\n".join(grid(HEAD, _many())))
            if asked.cells
            else Answer({"report-cost": "\n".join(grid(HEAD, _rows()))})
        ),
    )


def _rows() -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for seeds in ((1,), (1, 2, 3, 4, 5)):
            slowdowns = {name: 1.2 + 0.1 * number for number, name in enumerate(VARIANTS)}
            per_cell = _samples(aging_runs.make(home, {"ext4": 1.2}), home)
            while len(slowdowns) > 1 and (len(slowdowns) - 1) * len(seeds) * per_cell >= SAMPLES:
                slowdowns.popitem()
            yield _row(home, slowdowns, seeds)


def _many() -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as directory:
        slowdowns = {name: 1.2 + 0.1 * number for number, name in enumerate(VARIANTS[:10])}
        yield _row(Path(directory), slowdowns, range(1, 101))


def _row(home: Path, slowdowns: Mapping[str, float], seeds: Sequence[int]) -> list[str]:
    name = aging_runs.make(home, slowdowns, seeds=seeds, pictures=DOCS / "aging")
    page = home / "report.html"
    took = [_make(name, home, page) for _ in range(RUNS)]
    host, processor = (f"{min(times):.1f} to {max(times):.1f}" for times in zip(*took, strict=True))
    size = f"{page.stat().st_size / 1e6:.2f}"
    return [f"{_samples(name, home):,}", str(len(slowdowns)), str(len(seeds)), host, processor, size]


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
    sys.exit(main())
