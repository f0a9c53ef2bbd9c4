"""Nights of a track that are killed: ``python -m tests.build.killed_nights FILE ASKED``.

Ten nights over drawn values are killed at moments made by chance; for each it prints the measurement that ran, which
is the last line of ASKED by then. One more night comes to its end.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agelab.bisect.track import runs
from agelab.bisect.track.journal import Measured, PassedOver
from agelab.bisect.track.points import Point
from agelab.bisect.track.question import Track, Watch
from agelab.cli import main
from tests.build.waiting import until
from validation import track as planted

KILLS = 10
RAN = "killed: "
"""Before each of its lines, between those of the nights."""


class SlowRuns(planted.DrawnRuns):
    """Writes down what is asked of it, and takes a moment for it."""

    def __init__(self, asked: Path, track: Track, points: Sequence[Point], *_: object) -> None:
        super().__init__(track, points, 1, 0.005)
        self._asked = asked

    def measure(self, point: Point, watch: Watch, seeds: Sequence[int]) -> list[Measured | PassedOver]:
        with self._asked.open("a") as log:
            print(point.id, *seeds, file=log)
        time.sleep(0.01)
        return super().measure(point, watch, seeds)


def killed(file: str, asked: Path, moments: random.Random) -> str:
    """Kill a night; return what ran."""
    enough = len(asked.read_text().splitlines()) + moments.randrange(1, 9)
    if not (night := os.fork()):
        os._exit(main(["track", file]))
    until(lambda: len(asked.read_text().splitlines()) >= enough)
    time.sleep(moments.random() / 50)
    os.kill(night, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(night, 0)[1]) == -signal.SIGKILL
    return asked.read_text().splitlines()[-1]


if __name__ == "__main__":
    file, name = sys.argv[1:]
    asked, moments = Path(name), random.Random(3)
    asked.touch()
    runs.TrackRuns = partial(SlowRuns, asked)  # type: ignore[assignment, misc]
    for _ in range(KILLS):
        print(f"{RAN}{killed(file, asked, moments)}", flush=True)
    sys.exit(main(["track", file]))
