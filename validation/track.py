"""How often a track sees what is there, and what is not: simulated, and over a planted tree in real guests.

    .venv/bin/python -m validation.track [--otava PYTHON] [--write]
    .venv/bin/python -m validation.track --plant DIRECTORY

Draws lines of single values whose truth is known, with a few points of five run seeds, and counts change points; with
--otava the same lines are given to Otava, which the named Python has (pip install apache-otava==0.8.0 in an environment
of its own). Then works on the planted tree of 72 commits with drawn values: three are guilty. --plant makes that tree,
a program's, with a track for real guests, and prints its command. The generators are fixed: the same for everybody.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from agelab.base import git
from agelab.base.errors import silent
from agelab.bisect.track.journal import Journal, Measured, PassedOver
from agelab.bisect.track.night import Night
from agelab.bisect.track.points import Point, Rank
from agelab.bisect.track.question import Track, Watch
from agelab.bisect.track.runs import Doors, TrackRuns
from agelab.stats import segments
from agelab.store.artefacts import Store
from docs.make import command
from docs.make.command import Answer
from docs.make.page import line

LINES, POINTS = 200, (20, 50, 100, 300)
CHANCE, STEP = 0.01, 0.03
REPEATS, SEEDS = 2, 5
OFF = 2
"""Points by which a step may seem to be off."""
SHAPES = ("normal", "t, 4 degrees")
Values = NDArray[np.float64]

OTAVA = """
import json, sys
from otava.analysis import compute_change_points
print(json.dumps([[int(c.index) for c in compute_change_points(line)[0]] for line in json.load(sys.stdin)]))
"""


def drawn(random: np.random.Generator, shape: str, size: tuple[int, ...]) -> Values:
    """Draw chance of standard deviation 1."""
    return random.normal(0, 1, size) if shape == SHAPES[0] else random.standard_t(4, size) / 2**0.5


def ours(values: Values, repeats: Values) -> list[int]:
    """Return the change points of a line as a track sees them."""
    logs, seeds = np.log(values).tolist(), np.log(repeats).tolist()
    return segments.change_points([[value] for value in logs], segments.noise(logs, seeds))


def theirs(lines: Sequence[Values], python: str) -> list[list[int]]:
    """Return the change points of lines as Otava sees them, with its own settings."""
    asked = json.dumps([values.tolist() for values in lines])
    done = subprocess.run([python, "-c", OTAVA], input=asked, capture_output=True, text=True, check=True)
    found: list[list[int]] = json.loads(done.stdout)
    return found


def line_rows(python: str | None) -> Iterator[str]:
    """Yield a row for each kind of line: how many have a change point that have none, and how many steps are found."""
    who = ["a track", *(["Otava 0.8.0"] if python else [])]
    yield line(["chance", "points", *(f"{name}: {what}, %" for name in who for what in ("false", "found"))])
    yield line(["---"] * (2 + 2 * len(who)))
    random = np.random.default_rng(1)
    for shape in SHAPES:
        for points in POINTS:
            still = 1 + CHANCE * drawn(random, shape, (LINES, points))
            at = random.integers(points // 4, points - points // 4, LINES)
            stepped = 1 + CHANCE * drawn(random, shape, (LINES, points))
            stepped *= 1 + STEP * (np.arange(points) >= at[:, None])
            repeats = 1 + CHANCE * drawn(random, shape, (LINES, REPEATS, SEEDS))
            answers = [[[ours(*pair) for pair in zip(some, repeats, strict=True)] for some in (still, stepped)]]
            if python:
                answers.append([theirs([*some], python) for some in (still, stepped)])
            shares = []
            for false, found in answers:
                hits = sum(
                    any(abs(place - where) <= OFF for place in places) for places, where in zip(found, at, strict=True)
                )
                shares += [sum(map(bool, false)), hits]
            yield line([shape, str(points), *(f"{100 * share / LINES:.1f}" for share in shares)])


# ---- the planted tree ----

COMMITS, TREES = 72, range(1000, 1200)
GUILTY: Mapping[int, tuple[str, float]] = {
    23: ("elapsed", 1.05),
    47: ("elapsed", 1.10),
    61: ("latency", 1.08),
}
"""The number of a commit to the metric that it makes larger, and how many times."""
METRICS = {"elapsed": "work:elapsed", "latency": "work:work_latency"}


def planted_track(**more: object) -> Track:
    """Return the track of the planted tree."""
    watch = {"scenario": "./planted-work.toml", "metrics": [*METRICS.values()]}
    program = {"path": "tree", "since": "base", "build": "gcc -O1 -static -o work work.c", "makes": "work"}
    made = {"name": "planted-work", "minutes": 120, "page": "site", "program": program, "watch": [watch]}
    return Track.model_validate({**made, **more})


def _never(*_: object) -> NoReturn:
    raise AssertionError("what is drawn needs no part of agelab")


NO_DOORS = Doors(_never, _never)


class DrawnRuns(TrackRuns):
    """Draws the values of the planted tree's cells."""

    def __init__(self, track: Track, points: Sequence[Point], tree: int, chance: float) -> None:
        super().__init__(track, points, Store(Path("/nowhere")), NO_DOORS, silent)
        self._tree, self._chance = tree, chance
        self.cells: set[tuple[str, int]] = set()

    def measure(self, point: Point, watch: Watch, seeds: Sequence[int]) -> list[Measured | PassedOver]:
        self.cells |= {(point.id, seed) for seed in seeds}
        return [self._cell(point, watch, seed) for seed in seeds]

    def _cell(self, point: Point, watch: Watch, seed: int) -> Measured:
        values, place = {}, self._order.index(point.id)
        for name, metric in METRICS.items():
            value = 1 + self._chance * Random(f"{self._tree}:{place}:{seed}:{name}").gauss(0, 1)
            for number, (what, times) in GUILTY.items():
                value *= times if what == name and place >= number else 1
            values[metric] = value
        units = dict.fromkeys(values, "s")
        return Measured(
            point=point.id, watch=watch.key, label="ext4", seed=seed, values=values, units=units,
            run="drawn", under="", seconds=1,
        )  # fmt: skip

    def _pack(self, run: str) -> str:
        return ""


def tree_rows() -> Iterator[str]:
    """Yield a row for each size of chance: how many trees have all three found, and the cells that it takes."""
    yield line(
        [
            "chance, %",
            "all three found",
            "an innocent one accused",
            "cells, mean",
            "most",
            "five seeds a commit",
        ]
    )
    yield line(["---"] * 6)
    track = planted_track()
    points = [
        Point(str(number), str(number), rank=Rank.TOUCHES if 0 < number < COMMITS else Rank.END)
        for number in range(COMMITS + 1)
    ]
    for chance in (0.005, 0.01):
        whole = accused = 0
        cells = []
        for tree in TREES:
            with tempfile.TemporaryDirectory() as directory:
                runs = DrawnRuns(track, points, tree, chance)
                night = Night(track, points, Journal(Path(directory)), runs, silent)
                night.work()
            found = {int(row.culprit) for row in night.known.followed if row.culprit}
            whole += found >= GUILTY.keys()
            accused += bool(found - GUILTY.keys())
            cells.append(len(runs.cells))
        shares = [f"{number} of {len(TREES)}" for number in (whole, accused)]
        yield line([f"{100 * chance:g}", *shares, f"{np.mean(cells):.0f}", str(max(cells)), str(SEEDS * len(points))])


SCENARIO, PROGRAM = Path(__file__).with_name("planted-work.toml"), Path(__file__).with_name("planted_work.c")
FIRST = 1_700_000_000
"""When the first commit was made (seconds since 1970); an hour later the next."""
WORK, SLOW = 100_000, 300_000
"""Turns of a usual operation and of each twentieth."""


def program_at(number: int) -> str:
    """Return the program's source at a commit."""
    work, slow = float(WORK), float(SLOW)
    for at, (what, times) in GUILTY.items():
        if number >= at and what == "elapsed":
            work, slow = work * times, slow * times
        elif number >= at:
            work -= slow * (times - 1) / 19
            slow *= times
    innocent = {"number": number, "pad": 64 * (number * 37 % 11)}
    text = PROGRAM.read_text()
    for name, value in {**innocent, "work": round(work), "slow": round(slow)}.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def plant(directory: Path) -> str:
    """Make the tree with its scenario and its track's file in a new directory; return the command."""
    tree = directory / "tree"
    tree.mkdir(parents=True)
    run = partial(git_in, tree)
    run("init", "--quiet")
    for number in range(COMMITS + 1):
        (tree / "work.c").write_text(program_at(number))
        run("add", "work.c")
        subject = GUILTY[number][0] if number in GUILTY else "nothing"
        run(
            "commit",
            "--quiet",
            "-m",
            f"work: change {subject}, revision {number}",
            when=FIRST + 3600 * number,
        )
        if number == 0:
            run("tag", "base")
    shutil.copy(SCENARIO, directory)
    (directory / "work").touch(mode=0o755)  # each night brings the one that it has built
    track = planted_track().model_dump(exclude_defaults=True)
    rows = [f"{name} = {json.dumps(value)}" for name, value in track.items() if not isinstance(value, dict | tuple)]
    rows += ["[program]", *(f"{name} = {json.dumps(value)}" for name, value in track["program"].items())]
    for watch in track["watch"]:
        rows += ["[[watch]]", *(f"{name} = {json.dumps(value)}" for name, value in watch.items())]
    (directory / "track.toml").write_text("\n".join(rows) + "\n")
    return shlex.join([".venv/bin/agelab", "track", str(directory / "track.toml")])


def git_in(tree: Path, *argv: str, when: int = FIRST) -> None:
    """Run git in a work tree of ours, as one author."""
    who = {"NAME": "A. Developer", "EMAIL": "developer@example.org", "DATE": f"{when} +0000"}
    env = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in who.items()}
    subprocess.run(["git", *argv], cwd=tree, check=True, env={**git.ENVIRONMENT, **env, "PATH": "/usr/bin:/bin"})


def measure(options: argparse.Namespace) -> Answer:
    if options.plant:
        return Answer(printed=plant(options.plant.absolute()))
    head = f"{LINES} lines a row, chance of 1 %; found: of steps of 3 %, at most {OFF} points off:"
    trees = f"{len(TREES)} planted trees of {COMMITS} commits a row"
    tree = f"{trees}, of which three are guilty (5 %, 10 %, a latency by 8 %):"
    return Answer({"track": "\n".join([head, "", *line_rows(options.otava), "", tree, "", *tree_rows(), ""])})


def main() -> int:
    """The command line."""
    parser = command.parser(__doc__)
    parser.add_argument("--otava", metavar="PYTHON", help="a Python that has Otava")
    parser.add_argument("--plant", type=Path, metavar="DIRECTORY", help="make the planted tree there")
    return command.run(parser, measure)


if __name__ == "__main__":
    sys.exit(main())
