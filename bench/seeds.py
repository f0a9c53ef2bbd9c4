"""Look for planted faults with many seeds: with one processor shaken, with two in turns, in the wall clock as often.

    .venv/bin/python -m bench.seeds [--seeds 1-100] [--write]

The suite is tests/vm/planted: a lost update, two locks in two orders, a use after free. In the wall clock an emulated
guest of this host runs each test as often, with one processor and with two. The first failing seed of each test in the
virtual clock is replayed, and the table says how many replays failed alike.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from agelab import kernel as kernels
from agelab.cli.options import open_store, say
from agelab.machine.drive import module
from agelab.machine.image import tools
from agelab.results import run_lookup
from agelab.store.artefacts import Store
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid

PLANTED = Path(__file__).parents[1] / "tests/vm/planted"
WAYS = {
    "one processor, shaken": (),
    "two processors, in turns": ("--vcpus", "2"),
    "wall clock, one processor": ("--clock", "wall", "--schedule", "0"),
    "wall clock, two processors": ("--clock", "wall", "--schedule", "0", "--vcpus", "2"),
}
ASKED = ("--filesystem", "ext4", "--mib", "64", "--timeout", "20", "--kernel", "debian:6.1")
HEAD = ("way", "test", "failed", "of", "first with seed", "replays alike", "seconds a test")


def planted(place: Path, store: Store) -> Path:
    """Make the suite of the planted filesystem, with its module for the kernel of the guests."""
    shutil.copytree(PLANTED, place, ignore=shutil.ignore_patterns("*.c", "Kbuild", "hammer"))
    (place / "bin").mkdir()
    kernel = kernels.resolve("debian:6.1", store)
    shutil.copy(module.obtain(kernel, store, sources=PLANTED), place / "bin/planted.ko")
    hammer = tools.obtain(store, sources=PLANTED / "hammer", flags=("-O1", "-static", "-s"))["hammer"]
    shutil.copy(hammer, place / "bin/hammer")
    return place


@dataclass(frozen=True)
class Found:
    """What ``agelab test`` found."""

    run: str
    failed: dict[str, list[int]]
    """The failing seeds of each test; of one that never failed none."""
    seconds: float


def test(suite: Path, *words: str) -> Found:
    """Run the suite as a user does."""
    program = Path(sys.executable).with_name("agelab")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        junit = Path(directory) / "junit.xml"
        argv = [str(program), "test", str(suite), *ASKED, "--fresh", "--junit", str(junit), *words]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
        cases = ElementTree.parse(junit).getroot().iter("testcase")
    failed: dict[str, list[int]] = {}
    for case in cases:
        name, _, seed = case.attrib["name"].rpartition(", seed ")
        seeds = failed.setdefault(name, [])
        if case.find("failure") is not None:
            seeds.append(int(seed))
    return Found(done.stdout.rsplit("agelab show ", 1)[1].split()[0], failed, time.monotonic() - began)


def replays(suite: Path, name: str, seed: int, times: int, *words: str) -> int:
    """Return how many replays of a failing seed have one key, digest and reason."""
    ends = []
    for _ in range(times):
        found = test(suite, "--only", name, "--seeds", str(seed), *words)
        end = run_lookup.find(open_store().runs, found.run).end(0)
        ends.append((end.inputs_key, end.digest, end.reason) if end and found.failed[name] else None)
    return max((ends.count(end) for end in ends if end), default=0)


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("--seeds", default="1-100")
    parser.add_argument("--replays", type=int, default=20)
    parser.add_argument("--jobs", default="2")
    return command.run(parser, lambda options: compared(options.seeds, options.jobs, options.replays))


def compared(seeds: str, jobs: str, times: int) -> Answer:
    """Run the suite each way."""
    with tempfile.TemporaryDirectory() as directory:
        suite = planted(Path(directory) / "planted", open_store())
        rows = [row for way, words in WAYS.items() for row in _rows(suite, way, words, seeds, jobs, times)]
    text = "\n".join(grid(HEAD, rows, ["---", "---", *["---:"] * (len(HEAD) - 2)]))
    return Answer({"tests-seeds": text})


def _rows(suite: Path, way: str, words: Sequence[str], seeds: str, jobs: str, times: int) -> list[list[str]]:
    say(way)
    found = test(suite, "--seeds", seeds, "--jobs", jobs, *words)
    count = len(run_lookup.find(open_store().runs, found.run).plan().cells) // len(found.failed)
    each = f"{found.seconds / (count * len(found.failed)):.1f}"
    rows = []
    for name, failing in sorted(found.failed.items()):
        first = str(min(failing)) if failing else ""
        alike = ""
        if failing and "wall" not in words:
            alike = f"{replays(suite, name, min(failing), times, *words)} of {times}"
        rows.append([way, name, str(len(failing)), str(count), first, alike, each])
    return rows


if __name__ == "__main__":
    sys.exit(main())
