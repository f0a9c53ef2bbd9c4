"""How often the judge is right: simulated, for docs/chance.md.

    .venv/bin/python -m bench.decide [--write]

Draws results of twelve filesystems whose truth is known, and lets the code's own ranking and judge look at them: how
often one is named the worst although none is, and how often the worst one is found. The same tables for everybody: the
generators are fixed.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import e, exp, sqrt
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from agelab.analysis.cells import RunResult, SeedGroup
from agelab.analysis.host_noise import HostNoise
from agelab.analysis.judge import judge
from agelab.analysis.ranking import rank_by_median
from agelab.model.seeds import Seeds
from agelab.stats.series import Series, SeriesPair
from agelab.stats.verdict import DifferenceVerdict
from bench.page import line, print_report

FILESYSTEMS = 12
RUN_SEEDS, CORPORA, LEADS = (3, 5, 10, 15), (1, 2, 3), (1, 2, 3)
TIMES, TIMES_EXACTLY = 100, 2000
"""Simulations of a cell of the large table, and of the row that the rule must reach."""
SUBJECT = SeedGroup("", cast(RunResult, None), ())
"""A group without cells: ranking looks at its host, which has no noise in the virtual clock."""

Floats: TypeAlias = NDArray[np.float64]
Size: TypeAlias = tuple[int, int, int]
"""Filesystems, corpora, run seeds."""
Draw = Callable[[np.random.Generator, Size], Floats]


def skewed(random: np.random.Generator, size: Size) -> Floats:
    """Lognormal values of standard deviation 1 and mean 0."""
    return (random.lognormal(0, 1, size) - exp(0.5)) / sqrt((e - 1) * e)


def unequal(random: np.random.Generator, size: Size) -> Floats:
    """Spreads from 0.3 to 2, neighbours far apart: of two that are tied the one has 6.7 times the other's."""
    scale: Floats = np.array([0.3 if at % 2 else 2.0 for at in range(size[0])])
    found: Floats = random.normal(0, 1, size) * scale[:, None, None]
    return found


def common(random: np.random.Generator, size: Size) -> Floats:
    """Half of the variance is the corpus's, the same on every filesystem."""
    return sqrt(0.5) * (random.normal(0, 1, (1, size[1], 1)) + random.normal(0, 1, size))


def interacting(random: np.random.Generator, size: Size) -> Floats:
    """Half of the variance is what a corpus does to one filesystem and not to another."""
    return sqrt(0.5) * (random.normal(0, 1, (*size[:2], 1)) + random.normal(0, 1, size))


SHAPES: Mapping[str, Draw] = {
    "normal": lambda random, size: random.normal(0, 1, size),
    "ties: whole standard deviations": lambda random, size: np.round(random.normal(0, 1, size)),
    "skewed: lognormal": skewed,
    "spreads 6.7 times apart": unequal,
    "half of it common to a corpus": common,
    "half of it a corpus on one filesystem": interacting,
}
"""Populations of standard deviation 1 (but where they differ in it), around 0."""


def series_of(values: Floats) -> Series:
    """Make a series of drawn values: corpora by run seeds, with three decimals."""
    thousandths = np.rint(values * 1000).astype(int)
    found = tuple(
        (Seeds(corpus, run), Fraction(int(value), 1000))
        for corpus, row in enumerate(thousandths, start=1)
        for run, value in enumerate(row, start=1)
    )
    return Series("read", 1, "slowdown", "1", found, ())


def named(
    shape: Draw, leads: Sequence[float], size: tuple[int, int], random: np.random.Generator
) -> int | None:
    """Draw all filesystems, the first of them moved by the leads, and return which is named the worst."""
    corpora, runs = size
    drawn = shape(random, (FILESYSTEMS, corpora, runs))
    for at, lead in enumerate(leads):
        drawn[at] += lead
    # At 100 with a standard deviation of 2: ratios near 1, as measured ones are.
    found = [series_of(100 + 2 * one) for one in drawn]
    order = rank_by_median([(SUBJECT, one) for one in found])
    return next(at for at, one in enumerate(found) if one is order.series[0]) if order.clear else None


def share_named(shape: Draw, leads: Sequence[float], size: tuple[int, int], times: int, wrong: bool) -> float:
    """Return in per cent how often the first is named; with ``wrong`` how often any is."""
    random = np.random.default_rng(1)
    found = [named(shape, leads, size, random) for _ in range(times)]
    return 100 * sum(one is not None if wrong else one == 0 for one in found) / times


TIED = 6.0
"""The lead of two that are tied at the top, in standard deviations: the others do not come into question."""


def table() -> Iterator[str]:
    """A row for each population and number of corpora; in each cell the four numbers of run seeds."""
    yield from head(
        "values", "corpora", "all tied", "two tied at the top", *(f"lead {one} sd" for one in LEADS)
    )
    for name, shape in SHAPES.items():
        for corpora in CORPORA:
            sizes = [(corpora, runs) for runs in RUN_SEEDS]
            cells = [
                " / ".join(f"{share_named(shape, leads, size, TIMES, wrong):.0f}" for size in sizes)
                for leads, wrong in (
                    ((), True),
                    ((TIED, TIED), True),
                    *(((float(one),), False) for one in LEADS),
                )
            ]
            yield line([name, str(corpora), *cells])


def reached() -> Iterator[str]:
    """The design that the rule is made for, with more simulations."""
    yield from head("run seeds x corpora", "all tied", "two tied at the top", "lead 2 sd found")
    shape, size = SHAPES["normal"], (2, 5)
    shares = (
        share_named(shape, leads, size, TIMES_EXACTLY, wrong)
        for leads, wrong in (((), True), ((TIED, TIED), True), ((2.0,), False))
    )
    yield line(["5 x 2", *(f"{one:.1f}" for one in shares)])


def compared() -> Iterator[str]:
    """Tables of comparisons: eleven filesystems against the first, with the correction."""
    yield from head("run seeds x corpora", "any of eleven called different, none is", "the same, of equal ones",
                    "the same, of ones 5 % apart", "not known, of equal ones")  # fmt: skip
    for spread in (1, 2, 5):
        for runs, corpora in ((5, 1), (5, 2), (10, 2), (15, 3)):
            yield line([f"{runs} x {corpora}, spread {spread} %", *_compared(runs, corpora, spread)])


def _compared(runs: int, corpora: int, spread: float) -> list[str]:
    random, times = np.random.default_rng(1), 100
    wrong, said = 0, dict.fromkeys(DifferenceVerdict, 0)
    apart = 0
    for _ in range(times):
        drawn = 100 + spread * random.normal(0, 1, (FILESYSTEMS, corpora, runs))
        base, *others = map(series_of, drawn)
        found = judge([SeriesPair(base, one) for one in others], HostNoise())
        wrong += any(one.differs for one in found)
        for one in found:
            said[one.verdict] += 1
        [far] = judge([SeriesPair(base, series_of(drawn[1] * 1.05))], HostNoise())
        apart += far.verdict is DifferenceVerdict.SAME
    pairs = times * (FILESYSTEMS - 1)
    shares = (
        wrong / times, said[DifferenceVerdict.SAME] / pairs, apart / times, said[DifferenceVerdict.UNKNOWN] / pairs,
    )  # fmt: skip
    return [f"{100 * one:.1f}" for one in shares]


def head(*columns: str) -> Iterator[str]:
    """Write the head of a table."""
    yield from (line(columns), line(["---"] * len(columns)))


def seconds_for(samples: int) -> float:
    """Return the seconds of processor time that the judge takes for so many samples: pairs of five run seeds each."""
    random = np.random.default_rng(1)
    drawn = [series_of(100 + random.normal(0, 1, (1, 5))) for _ in range(samples // 5)]
    pairs = [SeriesPair(*two) for two in zip(drawn[::2], drawn[1::2], strict=True)]
    began = time.process_time()
    for one in judge(pairs, HostNoise()):
        assert one.verdict
    return time.process_time() - began


def report() -> str:
    """Write all tables in Markdown."""
    runs = ", ".join(map(str, RUN_SEEDS))
    return "\n".join(
        [
            f"Which of {FILESYSTEMS} aged worst, in per cent of {TIMES_EXACTLY} simulations:",
            "",
            *reached(),
            "",
            f"The same in per cent of {TIMES}, with {runs} run seeds of each corpus:",
            "",
            *table(),
            "",
            "Tables of comparisons, in per cent:",
            "",
            *compared(),
            "",
        ]
    )


def main() -> int:
    """The command line."""
    status = print_report(__doc__, "decide", report)
    print(f"judge, 10,000 samples: {seconds_for(10_000):.2f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
