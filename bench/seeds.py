"""Look for planted faults with many seeds, on one processor that is shaken and on two in turns; in the wall clock too.

    .venv/bin/python -m bench.seeds [--seeds 30] [--most 1000] [--replays 20] [--jobs 2] [--write]

The suite is tests/vm/planted: a lost update, two locks in two orders, a use after free. Each test gets so many seeds,
and one that none of them fails as many more, up to --most. The first that fails is replayed so often. In the
wall clock an emulated guest of this host runs the test as often.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from agelab import kernel as kernels
from agelab.base.errors import HostError
from agelab.cli.options import open_store, say
from agelab.machine.drive import module
from agelab.machine.image import tools
from agelab.results import run_lookup
from agelab.store.artefacts import Store
from docs.make import command
from docs.make.command import Answer, at_least
from docs.make.page import grid, line

PLANTED = Path(__file__).parents[1] / "tests/vm/planted"
TESTS = ("error-path", "lock-order", "lost-update")
PROCESSORS = {"one, shaken": (), "two, in turns": ("--vcpus", "2")}
WALL = ("--clock", "wall", "--schedule", "0")
ASKED = ("--filesystem", "ext4", "--mib", "64", "--timeout", "20", "--kernel", "debian:6.1", "--fresh")
HEAD = ("test", "processors", "failed", "in the wall clock", "first seed", "its replays alike")


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
class Bench:
    """The suite, and how often its tests are run."""

    suite: Path
    seeds: int
    most: int
    replays: int
    jobs: int

    def rows(self) -> Iterator[list[str]]:
        """Look for each fault, on one processor and on two."""
        for name in TESTS:
            for processors, words in PROCESSORS.items():
                tried, failing = 0, list[int]()
                while not failing and tried < self.most:
                    _, failing, _ = self.test(name, f"{tried + 1}-{tried + self.seeds}", *words)
                    tried += self.seeds
                _, beside, begun = self.test(name, f"1-{tried}", *words, *WALL)
                row = [name, processors, f"{len(failing)} of {tried}", f"{len(beside)} of {begun}"]
                for seed in failing[:1]:
                    row += [str(seed), f"{self.alike(name, seed, *words)} of {self.replays}"]
                say(line(row))
                yield row if failing else [*row, "", ""]

    def test(self, name: str, seeds: str, *words: str) -> tuple[str, list[int], int]:
        """Run a test as a user does. Returns the run's name, the failing seeds, and how many guests ran the test.

        In the wall clock QEMU may hang before the kernel runs. Raises HostError where another guest could not run it.
        """
        agelab = Path(sys.executable).with_name("agelab")
        with tempfile.TemporaryDirectory() as directory:
            junit = Path(directory) / "junit.xml"
            which = ["--only", name, "--seeds", seeds, "--jobs", str(self.jobs)]
            argv = [str(agelab), "test", str(self.suite), *ASKED, *which, *words, "--junit", str(junit)]
            done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
            if not junit.exists():
                raise HostError(f"agelab test ended with {done.returncode}: {done.stdout}")
            cases = [*ElementTree.parse(junit).getroot().iter("testcase")]
        begun = sum(case.find("error") is None for case in cases)
        if begun < len(cases) and "wall" not in words:
            raise HostError(f"not every guest could run its test: {done.stdout}")
        failing = [int(case.attrib["name"].split()[-1]) for case in cases if case.find("failure") is not None]
        return done.stdout.rsplit("agelab show ", 1)[1].split()[0], sorted(failing), begun

    def alike(self, name: str, seed: int, *words: str) -> int:
        """Return how many replays of a failing seed have one key, digest and reason."""

        def replay(number: int) -> object:
            say(f"{name}, seed {seed}: replay {number} of {self.replays}")
            run, failing, _ = self.test(name, f"{seed}", *words)
            end = run_lookup.find(open_store().runs, run).end(0)
            return (end.inputs_key, end.digest, end.reason) if end and failing else None

        with ThreadPoolExecutor(self.jobs) as pool:
            ends = [*pool.map(replay, range(1, self.replays + 1))]
        return max((ends.count(end) for end in ends if end), default=0)


def measured(options: argparse.Namespace) -> Answer:
    """Run the suite each way."""
    with tempfile.TemporaryDirectory() as directory:
        suite = planted(Path(directory) / "planted", open_store())
        rows = Bench(suite, options.seeds, options.most, options.replays, options.jobs).rows()
        text = "\n".join(grid(HEAD, rows, ["---", "---", *["---:"] * (len(HEAD) - 2)]))
    return Answer({"tests-seeds": text})


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    for name, usual in (("--seeds", 30), ("--most", 1000), ("--replays", 20), ("--jobs", 2)):
        parser.add_argument(name, type=at_least(1), default=usual)
    return command.run(parser, measured)


if __name__ == "__main__":
    sys.exit(main())
