"""Measure the coverage of intervals of few seeds: how often they hold the truth of drawn samples.

    .venv/bin/python -m validation.coverage [--write]

Prints the table ``coverage`` of docs/chance.md, in per cent: of so many series the share whose interval holds the
median, or the ratio of two sides, of what they were drawn from; and how often a series has a value that is named an
outlier although all were drawn alike.
"""

import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agelab.analysis.calibration import HostNoise
from agelab.analysis.judge import judge
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series, SeriesPair, exact, interval_rank
from agelab.stats.spread import outliers
from docs.make import command
from docs.make.command import Answer

SERIES = 10_000
PAIRS = 2_000
SEEDS = (5, 7, 10, 20)
Floats: TypeAlias = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def clusters(random: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Three of five values near 10, two near 12."""
    return random.normal(10, 0.1, size) + 2 * (random.random(size) < 0.4)


SHAPES: Mapping[str, tuple[Draw, float]] = {
    "normal": (lambda random, size: random.normal(10, 1, size), 10),
    "lognormal": (lambda random, size: random.lognormal(0, 1, size), 1),
    "two clusters": (clusters, 10.0967422),
}
"""Distributions to draw values from, each with its median."""


def one_series(values: Floats) -> Series:
    """Make a series of drawn values, as if they had been measured."""
    numbers = ((Seeds(1, seed), exact(round(float(value), 6))) for seed, value in enumerate(values, start=1))
    return Series("step", 1, "elapsed", "s", tuple(numbers), ())


def report() -> str:
    """Make the table."""
    lines = [
        "| values | seeds | median | ratio of two sides | series with an outlier |",
        "|---|---|---|---|---|",
    ]
    for name, (draw, middle) in SHAPES.items():
        for n in SEEDS:
            random = np.random.default_rng(n)
            ordered, k = np.sort(draw(random, (SERIES, n)), axis=1), interval_rank(n)
            held = np.mean((ordered[:, k - 1] <= middle) & (middle <= ordered[:, n - k]))
            left, right = ([one_series(row) for row in draw(random, (PAIRS, n))] for _ in "AB")
            judged = judge([SeriesPair(*pair) for pair in zip(left, right, strict=True)], HostNoise())
            intervals = [comparison.interval for comparison in judged if comparison.interval]
            ratios = np.mean([interval.low <= 1 <= interval.high for interval in intervals])
            named = np.mean([bool(outliers(series)) for series in left])
            lines.append(f"| {name} | {n} | {100 * held:.1f} | {100 * ratios:.1f} | {100 * named:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(command.run(command.parser(__doc__), lambda _: Answer({"coverage": report()})))
