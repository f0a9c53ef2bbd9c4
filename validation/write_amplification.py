"""Write amplification of the modelled solid-state drive, against what is known of greedy garbage collection.

    .venv/bin/python -m validation.write_amplification [--write]

Writes single units uniformly at random to a used drive through the C files, compiled for the host: no guest. The known
result is that of P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012: of lines of n units, with
alpha = all units that are not kept free / mapped units,

    A = n / (n - (X - 1)),  X = 1/2 - n / alpha W(-(1 + 1/2n) alpha exp(-(1 + 1/2n) alpha))

where W is Lambert's function. For large n it is that of L. Xiang and B. Kurkoski, "An Improved Analytic Expression for
Write Amplification in NAND Flash", ICNC 2012. More than 5 % off is an error.
"""

import argparse
import sys
import tempfile
from math import exp
from pathlib import Path
from random import Random

from docs.make import command
from docs.make.command import Answer
from docs.make.page import columns, grid
from tests.model.native import Library, compiled
from tests.model.streams import number, ssd

PERCENTS = (7, 12, 20, 28, 50)
LINE_UNITS = 96
LINES = 3000
"""Lines that the mapped units fill."""
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


def modelled(library: Library, percent: int) -> float:
    """Return that of the model, over writes of twice its capacity."""
    units = LINES * LINE_UNITS
    lines = LINES * (100 + percent) // 100 + KEPT
    text = ssd(units=units, lines=lines, line_units=LINE_UNITS, sectors=units * 8 + 2048, begin=2)
    drive, random, now = library.drive(text), Random(percent), 0
    for _ in range(2 * units):
        now = drive.write(number(text, "base") + random.randrange(units) * 8, 8, now)
    return drive.get("units_programmed") / (2 * units)


HEAD = ("over-provisioning, %", "known", "model", "off, %")


def measure(options: argparse.Namespace) -> Answer:
    """Compare at each over-provisioning."""
    rows, worst = [], 0.0
    with tempfile.TemporaryDirectory() as directory:
        library = Library(compiled(Path(directory) / "drive.so", "-O2", "-shared", "-fPIC"))
        for percent in PERCENTS:
            known, ours = greedy(1 + percent / 100, LINE_UNITS), modelled(library, percent)
            worst = max(worst, abs(ours / known - 1))
            rows.append([str(percent), f"{known:.3f}", f"{ours:.3f}", f"{(ours / known - 1) * 100:+.1f}"])
    table = "\n".join(grid(HEAD, rows, ["---:"] * len(HEAD))) + "\n"
    answer = Answer({"write-amplification": table} if options.write else {}, columns(HEAD, rows))
    if worst > MOST_OFF:
        raise SystemExit(f"{answer.printed}\nmore than {MOST_OFF:.0%} off")
    return answer


def main() -> int:
    """Return the exit code."""
    return command.run(command.parser(__doc__), measure)


if __name__ == "__main__":
    sys.exit(main())
