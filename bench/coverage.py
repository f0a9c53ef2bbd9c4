"""Measure the coverage of intervals from few run seeds: how often they contain the true value of drawn samples.

    python -m bench.coverage

Prints the tables of docs/floor.md, in per cent: of so many series the share whose interval holds the median, the mean
or the ratio of two medians of what they were drawn from; and how often a series has a value that is named an outlier
although all were drawn alike.
"""

from collections.abc import Callable, Mapping

import numpy as np

from agelab.model.seeds import Seeds
from agelab.stats.bootstrap import Floats, means, medians, percentile_interval, ratio_intervals
from agelab.stats.order_statistics import exact, interval_rank
from agelab.stats.outliers import outliers
from agelab.stats.series import Series, SeriesPair

SERIES = 10_000
PAIRS = 2_000
SEEDS = (5, 7, 10, 20)
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def clusters(random: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Three of five values near 10, two near 12."""
    return random.normal(10, 0.1, size) + 2 * (random.random(size) < 0.4)


SHAPES: Mapping[str, tuple[Draw, float, float]] = {
    "normal": (lambda random, size: random.normal(10, 1, size), 10, 10),
    "lognormal": (lambda random, size: random.lognormal(0, 1, size), 1, float(np.exp(0.5))),
    "two clusters": (clusters, 10.0967422, 10.8),
}
"""Distributions to draw values from, each with its median and mean."""


def share(low: Floats, high: Floats, truth: float) -> str:
    """Return the percentage of intervals that contain the true value."""
    return f"{100 * np.mean((low <= truth) & (truth <= high)):.1f}"


def one_series(values: Floats) -> Series:
    """Make a series of drawn values, as if they had been measured."""
    numbers = ((Seeds(1, seed), exact(round(float(value), 6))) for seed, value in enumerate(values, start=1))
    return Series("step", 1, "elapsed", "s", tuple(numbers), ())


def main() -> None:
    print(
        "| values | seeds | median, order statistics | median, bootstrap | mean, bootstrap "
        "| ratio of medians | outlier |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, (draw, middle, mean) in SHAPES.items():
        for n in SEEDS:
            random = np.random.default_rng(n)
            values = draw(random, (SERIES, n))
            ordered, k = np.sort(values, axis=1), interval_rank(n)
            cells = [share(ordered[:, k - 1], ordered[:, n - k], middle)]
            cells.append(share(*percentile_interval(*medians(values)), middle))
            parts = [percentile_interval(*means(part)) for part in np.array_split(values, 20)]
            low, high = (np.concatenate(side) for side in zip(*parts, strict=True))
            cells.append(share(low, high, mean))
            sides = [[one_series(row) for row in draw(random, (PAIRS, n))] for _ in "AB"]
            found = [
                one for one in ratio_intervals([SeriesPair(a, b) for a, b in zip(*sides, strict=True)]) if one
            ]
            cells.append(
                share(np.array([one.low for one in found]), np.array([one.high for one in found]), 1)
            )
            cells.append(f"{100 * np.mean([bool(outliers(one)) for one in sides[0]]):.1f}")
            print(f"| {name} | {n} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
