"""Write amplification of the modelled solid-state drive, against what is known of greedy garbage collection.

    .venv/bin/python -m validation.solid_state [--write]    # --write also draws docs/solid-state.svg

Writes single units uniformly at random to a used drive through the C files, compiled for the host: no guest. The known
result is that of P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012: of lines of n units, with
alpha = all units that are not kept free / mapped units,

    A = n / (n - (X - 1)),  X = 1/2 - n / alpha W(-(1 + 1/2n) alpha exp(-(1 + 1/2n) alpha))

where W is Lambert's function. For large n it is that of L. Xiang and B. Kurkoski, "An Improved Analytic Expression for
Write Amplification in NAND Flash", ICNC 2012. More than 5 % off is an error.

The second table is of the drives of scenarios/drives: figures of validation/solid_state.csv, which no profile is made
of, and what the model does. As many requests are always in the drive as the figure says.
"""

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from itertools import pairwise
from math import exp
from pathlib import Path
from random import Random

from agelab.machine.drive import geometry
from agelab.machine.drive.translation import Mapped
from agelab.scenario import selection
from agelab.scenario.drive import SECTOR
from docs.make import command
from docs.make.command import Answer
from docs.make.page import DOCS, columns, grid
from tests.model.native import Library, Native, compiled
from tests.model.streams import number, ssd
from validation import figures

PERCENTS = (7, 12, 20, 28, 50)
LINE_UNITS = 96
LINES = 3000
"""Lines that the mapped units fill."""
CAPACITIES, PARTS = 12, 60
"""What is written to a new drive, and the points of its line."""
KEPT = 5
"""Lines that are free or open, and hold no garbage: the reserve, the host's line, and that of moved units."""
MOST_OFF = 0.05


def lambert(x: float) -> float:
    """Return the upper branch of Lambert's function for -1/e < x < 0, by Newton's method."""
    w = -0.5
    for _ in range(100):
        w -= (w * exp(w) - x) / (exp(w) * (w + 1))
    return w


def greedy(alpha: float, units: int) -> float:
    """Return the write amplification of random writes, with lines of so many units."""
    beta = alpha * (1 + 1 / (2 * units))
    left = 0.5 - units / alpha * lambert(-beta * exp(-beta))
    return units / (units - (left - 1))


def modelled(library: Library, percent: int, begin: int, lines: int, capacities: int, parts: int) -> list[float]:
    """Return that of the model, over each part of random writes of so many of its capacities."""
    units = lines * LINE_UNITS
    all_lines = lines * (100 + percent) // 100 + KEPT
    text = ssd(units=units, lines=all_lines, line_units=LINE_UNITS, sectors=units * 8 + 2048, begin=begin)
    drive, random, now = library.drive(text), Random(percent), 0
    programmed, each = [0], capacities * units // parts
    for _ in range(parts):
        for _ in range(each):
            now = drive.write(number(text, "base") + random.randrange(units) * 8, 8, now)
        programmed.append(drive.get("units_programmed"))
    return [(after - before) / each for before, after in pairwise(programmed)]


def steady(library: Library, percent: int) -> float:
    """Return that of a used drive."""
    return modelled(library, percent, 2, LINES, 2, 1)[0]


def picture(library: Library, found: Mapping[int, float]) -> str:
    """Draw what was ``found`` of used drives beside what is known, and how a new one comes to it."""
    known = [(percent, greedy(1 + percent / 100, LINE_UNITS)) for percent in range(5, 61)]
    middles = [CAPACITIES / PARTS * (part + 0.5) for part in range(PARTS)]
    new = {
        percent: [*zip(middles, modelled(library, percent, 0, LINES // 4, CAPACITIES, PARTS), strict=True)]
        for percent in PERCENTS
    }
    return figures.amplification(known, found.items(), new)


SIMULATED, SPAN = 1024 * 2048, 256 * 2048
"""Sectors of each drive, and those that are moved one behind the other."""
LARGE, SMALL = 256, 8
"""Sectors of a request."""
REQUESTS = 20_000
MAPPED_BY_PAGE = 1024
"""Units whose places one page of the map holds (harness/drive/ftl.c): sheets are of a span that is at hand."""
PAUSE = 10**11
"""Nanoseconds after what prepares a measurement."""
MEASURED = Path(__file__).with_suffix(".csv")
Requests = Iterator[tuple[str, int, int]]


def pace(drive: Native, requests: Requests, depth: int, begins: int) -> tuple[float, int]:
    """Return the requests a second with so many always in the drive, and when the last ends."""
    ends: list[int] = []
    now, count = begins, 0
    for kind, first, sectors in requests:
        if len(ends) == depth:
            now = heappop(ends)
        heappush(ends, (drive.read if kind == "read" else drive.write)(first, sectors, now))
        count += 1
    return count * 1e9 / (max(ends) - begins), max(ends)


def through(kind: str, first: int, end: int) -> Requests:
    """Large requests one behind the other."""
    return ((kind, at, LARGE) for at in range(first, end, LARGE))


def modelled_figure(library: Library, name: str, figure: str) -> float:
    """Return what the model of a drive does, in MB/s or requests a second."""
    profile, part = selection.drive(name), Mapped(2048, 2048 + SIMULATED)
    text = geometry.module_parameters(profile, name="drive0", run_seed=1, index=0, mapped=part)
    drive, random = library.drive(text), Random(1)
    kind = "read" if "read" in figure else "write"
    words = dict(word.split("=", 1) for word in text.split())
    fast = int(words.get("fast_lines", 0)) * int(words["line_units"]) // int(words["cell_bits"])
    if figure.startswith("random"):
        ends, count = 0, REQUESTS
        if kind == "read":
            _, ends = pace(drive, through("write", part.base, part.end), 4, 0)
        elif fast:
            count = fast  # as sheets do: a burst on an empty drive
        span = min(part.units, int(words.get("map_pages", part.units)) * MAPPED_BY_PAGE)
        places = ((kind, part.base + random.randrange(span) * 8, SMALL) for _ in range(count))
        return pace(drive, places, int(figure.rsplit(" ", 1)[1]), ends + PAUSE)[0]
    fast *= 8
    first, ends = part.base, 0
    if kind == "read":
        _, ends = pace(drive, through("write", first, first + SPAN), 4, 0)
        ends += PAUSE
    elif "behind the fast part" in figure:
        _, ends = pace(drive, through("write", first, first + fast), 4, 0)
        first += fast
    span = fast if fast and figure == "write one behind the other" else SPAN
    return pace(drive, through(kind, first, first + span), 32, ends)[0] * LARGE * SECTOR / 1e6


def against_measurements(library: Library) -> Iterator[list[str]]:
    """Yield a row for each figure that somebody measured or stated."""
    with MEASURED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            stated = float(row["value"])
            ours = modelled_figure(library, row["drive"], row["figure"])
            off = f"{(ours / stated - 1) * 100:+.0f}"
            yield [
                f"`{row['drive']}`",
                f"{row['figure']}, {row['unit']}",
                f"{stated:,g}",
                f"{ours:,.0f}",
                off,
                row["by"],
            ]


HEAD = ("over-provisioning, %", "known", "model", "off, %")


FIGURES = ("drive", "figure", "stated", "model", "off, %", "by")


def measure(options: argparse.Namespace) -> Answer:
    """Make both tables; 1 where write amplification is beyond the limit."""
    rows, worst, found = [], 0.0, dict[int, float]()
    with tempfile.TemporaryDirectory() as directory:
        library = Library(compiled(Path(directory) / "drive.so", "-O2", "-shared", "-fPIC"))
        for percent in PERCENTS:
            known = greedy(1 + percent / 100, LINE_UNITS)
            ours = found[percent] = steady(library, percent)
            worst = max(worst, abs(ours / known - 1))
            rows.append([str(percent), f"{known:.3f}", f"{ours:.3f}", f"{(ours / known - 1) * 100:+.1f}"])
        if options.write:
            (DOCS / "solid-state.svg").write_text(picture(library, found), encoding="utf-8")
        compared = list(against_measurements(library))
    tables = {
        "write-amplification": "\n".join(grid(HEAD, rows, ["---:"] * len(HEAD))) + "\n",
        "solid-state": "\n".join(grid(FIGURES, compared, ["---", "---", *["---:"] * 3, "---"])) + "\n",
    }
    printed = f"{columns(HEAD, rows)}\n\n{columns(FIGURES, compared)}"
    return Answer(tables if options.write else {}, printed, status=1 if worst > MOST_OFF else 0)


def main() -> int:
    """Return the exit code."""
    return command.run(command.parser(__doc__), measure)


if __name__ == "__main__":
    sys.exit(main())
