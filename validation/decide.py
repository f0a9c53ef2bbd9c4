"""How often the judge is right: simulated, for docs/chance.md.

    .venv/bin/python -m validation.decide [--write]

Draws results of twelve filesystems whose truth is known, and lets the judge's rule look at them: how often one is named
the worst although it is not, and how often the worst one is found. What is said of these files is held against the
means of the drawn corpora, what is said of other files against the population's. The rule here is a twin of the code's
that judges all draws at once; tests/unit/validation/test_decide.py holds the two together. The same tables for
everybody: the generators are fixed.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import e, exp, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from agelab.analysis.calibration import HostNoise
from agelab.analysis.judge import judge
from agelab.scenario.seeds import Seeds
from agelab.stats.phrasing import THREE
from agelab.stats.rank_test import LATTICE, LEVEL, Ties, critical_rank, two_sided
from agelab.stats.series import Series, SeriesPair
from agelab.stats.shift import CORPUS_LEVEL
from agelab.stats.verdict import MARGIN
from docs.make import command
from docs.make.command import Answer
from docs.make.page import line

FILESYSTEMS = 12
RUN_SEEDS, CORPORA, SHARES = (3, 5, 10, 15), (1, 2, 3, 6), (0.0, 0.17, 0.57, 0.8)
"""SHARES: the corpus' part of the variance of one filesystem's values; of the rows of docs/example-report.html the
median is 0.17, the upper quartile 0.57."""
TIMES = 2000
"""Simulations of a cell of a table."""
TIED = 6.0
"""The lead of two that are tied at the top, in standard deviations: the others do not come into question."""
LEAD = 2.0
"""The lead that is to be found."""

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Size: TypeAlias = tuple[int, int, int, int]
"""Draws, filesystems, corpora, run seeds."""
Draw = Callable[[np.random.Generator, Size], tuple[Floats, Floats]]
"""Returns values of standard deviation 1 around 0, and the mean of each corpus on each filesystem."""


def _alike(values: Callable[[np.random.Generator, Size], Floats]) -> Draw:
    """Draw values that have no part of the corpus."""
    return lambda random, size: (values(random, size), np.zeros(size[:3]))


def skewed(random: np.random.Generator, size: Size) -> Floats:
    """Lognormal values."""
    return (random.lognormal(0, 1, size) - exp(0.5)) / sqrt((e - 1) * e)


def unequal(random: np.random.Generator, size: Size) -> Floats:
    """Spreads from 0.3 to 2, neighbours far apart: of two that are tied the one has 6.7 times the other's."""
    scale = np.array([0.3 if at % 2 else 2.0 for at in range(size[1])])
    return np.asarray(random.normal(0, 1, size) * scale[:, None, None])


def common(random: np.random.Generator, size: Size) -> Floats:
    """Half of the variance is the corpus', the same on every filesystem."""
    return sqrt(0.5) * (random.normal(0, 1, (size[0], 1, size[2], 1)) + random.normal(0, 1, size))


def interacting(random: np.random.Generator, size: Size, share: float) -> tuple[Floats, Floats]:
    """A share of the variance is what a corpus does to one filesystem and not to another."""
    means = sqrt(share) * random.normal(0, 1, size[:3])
    return means[..., None] + sqrt(1 - share) * random.normal(0, 1, size), means


SHAPES: Mapping[str, Draw] = {
    "skewed: lognormal": _alike(skewed),
    "spreads 6.7 times apart": _alike(unequal),
    "half of it common to a corpus": _alike(common),
}
"""Populations that a corpus does not order otherwise."""


class Judged(NamedTuple):
    """What the judge says of pairs, B seen from A: an array for each figure, with an entry for each pair."""

    p: Floats
    higher: Bools
    opposed: Bools
    """It depends on the files."""
    low: Floats
    high: Floats
    general: Floats
    """p for other files; 1 with fewer than three corpora."""
    general_higher: Bools
    general_low: Floats
    general_high: Floats


def judged(a: Floats, b: Floats) -> Judged:
    """Judge pairs as the code does: draws by corpora by run seeds, continuous values above zero."""
    draws, corpora, runs = a.shape
    size, count = ((runs, runs),), runs * runs
    ratios = np.sort((b[..., :, None] / a[..., None, :]).reshape(draws, corpora, count), axis=2)
    u = (ratios > 1).sum(axis=2)
    blocks = [Ties.none(size[0])] * corpora
    p = np.array([two_sided(blocks, 2 * at) for at in range(corpora * count + 1)])[u.sum(axis=1)]
    delta = np.sign(2 * u.sum(axis=1) - corpora * count)
    low, high = _ends(np.sort(ratios.reshape(draws, -1), axis=1), size * corpora, float(LEVEL))
    opposed = np.zeros(draws, bool)
    if corpora > 1:
        lows, highs = _ends(ratios, size, float(CORPUS_LEVEL))
        up, down = (lows > 1).any(axis=1), (highs < 1).any(axis=1)
        opposed = (up & down) | (up & (delta < 0)) | (down & (delta > 0))
        depends = lows.max(axis=1) > highs.min(axis=1)
        low, high = np.where(depends, lows.min(axis=1), low), np.where(depends, highs.max(axis=1), high)
    shifts = np.log((ratios[..., (count - 1) // 2] + ratios[..., count // 2]) / 2)
    mean, error = shifts.mean(axis=1), np.ones(draws)
    general, half = np.ones(draws), np.full(draws, np.inf)
    if corpora >= THREE:
        error = shifts.std(axis=1, ddof=1) / sqrt(corpora)
        general = 2 * stdtr(corpora - 1, -np.abs(mean) / error)
        half = stdtrit(corpora - 1, 1 - float(LEVEL) / 2) * error
    return Judged(p, delta > 0, opposed, low, high, general, mean > 0, np.exp(mean - half), np.exp(mean + half))


def _ends(ordered: Floats, sizes: tuple[tuple[int, int], ...], level: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval of ordered ratios; none leave all out."""
    k = critical_rank(sizes, level)
    if k < 0:
        return np.zeros(ordered.shape[:-1]), np.full(ordered.shape[:-1], np.inf)
    return ordered[..., k], ordered[..., -1 - k]


class Named(NamedTuple):
    """The first of each draw's filesystems by its median, and what is said of it."""

    first: NDArray[np.int64]
    named: Bools
    """It is called the worst on these files."""
    depends: Bools
    """It is not, and against some other it depends on the files."""
    general: Bools
    """It is called the worst on other files, whatever is said of these."""


def named(values: Floats) -> Named:
    """Return which filesystem of each draw is named the worst: draws by filesystems by corpora by run seeds."""
    draws, others = np.arange(len(values)), values.shape[1] - 1
    first = np.median(values.reshape(*values.shape[:2], -1), axis=2).argmax(axis=1)
    clear, depends, general = (
        np.ones(len(values), bool),
        np.zeros(len(values), bool),
        np.ones(len(values), bool),
    )
    for step in range(1, others + 1):
        comparison = judged(values[draws, (first + step) % (others + 1)], values[draws, first])
        clear &= (comparison.p <= float(LEVEL) * (1 + LATTICE)) & comparison.higher & ~comparison.opposed
        depends |= comparison.opposed
        general &= (comparison.general <= float(LEVEL)) & comparison.general_higher
    return Named(first, clear, depends & ~clear, general)


class Rates(NamedTuple):
    """How often, in per cent."""

    wrong: float
    """One is named that is not the worst by the means of the drawn corpora."""
    found: float
    """The leader is named, of the draws in which it leads on each drawn corpus."""
    hidden: float
    """One is named that is not the worst on each drawn corpus."""
    depends: float
    """It is said that it depends on the files."""
    general_wrong: float
    """One is named for other files that does not lead the population."""
    general_found: float
    """The leader is named for other files."""


def drawn(
    shape: Draw, leads: Sequence[float], size: tuple[int, int], times: int, filesystems: int = FILESYSTEMS
) -> tuple[Floats, Floats]:
    """Draw all filesystems, the first of them moved by the leads; return the values and the corpora's own means."""
    values, means = shape(np.random.default_rng(1), (times, filesystems, *size))
    moved = np.zeros(filesystems)
    moved[: len(leads)] = leads
    # At 100 with a standard deviation of 2: ratios near 1, as measured ones are.
    return 100 + 2 * (values + moved[:, None, None]), means + moved[:, None]


def rates(shape: Draw, leads: Sequence[float], size: tuple[int, int], times: int = TIMES) -> Rates:
    """Return how often the first of corpora by run seeds is named, rightly and wrongly."""
    values, means = drawn(shape, leads, size, times)
    naming, at = named(values), np.arange(times)
    over_all = means.mean(axis=2)
    is_worst = (over_all[at, naming.first][:, None] > over_all).sum(axis=1) == FILESYSTEMS - 1
    on_each = (means[at, naming.first][:, None] > means).all(axis=2).sum(axis=1) == FILESYSTEMS - 1
    leads_on_each = (means[:, :1] > means[:, 1:]).all(axis=(1, 2))
    one_leads = len(leads) == 1
    rightly = naming.named & leads_on_each & (naming.first == 0)
    shares = (
        (naming.named & ~is_worst).mean(),
        rightly.sum() / max(1, leads_on_each.sum()),
        (naming.named & ~on_each).mean(),
        naming.depends.mean(),
        (naming.general & ~((naming.first == 0) & one_leads)).mean(),
        (naming.general & (naming.first == 0) & one_leads).mean(),
    )
    return Rates(*(float(100 * share) for share in shares))


def by_share() -> Iterator[str]:
    """A row for each share of the corpus and number of corpora; in each cell the four numbers of run seeds."""
    yield from head("corpus' share", "corpora", "wrong", "found", "not on each, unseen", "it depends",
                    "others: wrong", "others: found")  # fmt: skip
    for share in SHARES:
        shape = partial(interacting, share=share)
        for corpora in CORPORA:
            tied, lead = (
                [rates(shape, leads, (corpora, runs)) for runs in RUN_SEEDS] for leads in ((TIED, TIED), (LEAD,))
            )
            columns = [
                [rate.wrong for rate in tied], [rate.found for rate in lead], [rate.hidden for rate in lead],
                [rate.depends for rate in lead],
            ]  # fmt: skip
            general = [[rate.general_wrong for rate in tied], [rate.general_found for rate in lead]]
            shown = [*map(_seeds, columns), *(map(_seeds, general) if corpora >= THREE else ("–", "–"))]
            yield line([f"{100 * share:.0f} %", str(corpora), *shown])


def _seeds(shares: Sequence[float]) -> str:
    return "/".join(f"{share:.0f}" for share in shares)


def by_shape() -> Iterator[str]:
    """A row for each population and number of corpora; in each cell the four numbers of run seeds."""
    yield from head("values", "corpora", "all tied", "two tied at the top", "found")
    for name, shape in SHAPES.items():
        for corpora in CORPORA[:3]:
            sizes = [(corpora, runs) for runs in RUN_SEEDS]
            cells = [
                _seeds([getattr(rates(shape, leads, size), what) for size in sizes])
                for leads, what in (
                    ((), "wrong"),
                    ((TIED, TIED), "wrong"),
                    ((LEAD,), "found"),
                )
            ]
            yield line([name, str(corpora), *cells])


def covered() -> Iterator[str]:
    """How often an interval of 95 % holds the ratio of two filesystems on files in general."""
    yield from head("corpus' share", "rank interval of 1 corpus, 5 seeds", "of 1 corpus, 15 seeds",
                    "t interval of 3 corpora, 5 seeds", "of 6 corpora, 5 seeds")  # fmt: skip
    for share in SHARES:
        cells = []
        for corpora, runs in ((1, 5), (1, 15), (3, 5), (6, 5)):
            values, _ = drawn(partial(interacting, share=share), (), (corpora, runs), 5 * TIMES, 2)
            comparison = judged(values[:, 0], values[:, 1])
            low, high = comparison.low, comparison.high
            if corpora > 1:
                low, high = comparison.general_low, comparison.general_high
            cells.append(f"{100 * float(((low <= 1) & (high >= 1)).mean()):.1f}")
        yield line([f"{100 * share:.0f} %", *cells])


def compared() -> Iterator[str]:
    """Tables of comparisons: eleven filesystems against the first, with the correction."""
    yield from head("run seeds x corpora, spread", "any of eleven called different, none is", "the same, of equal ones",
                    "the same, of ones 5 % apart", "not known, of equal ones")  # fmt: skip
    for spread in (2, 5):
        for runs, corpora in ((5, 1), (5, 2), (15, 3)):
            yield line([f"{runs} x {corpora}, {spread} %", *_compared(runs, corpora, spread)])


def _compared(runs: int, corpora: int, spread: float) -> list[str]:
    values = 100 + spread * np.random.default_rng(1).normal(0, 1, (TIMES, FILESYSTEMS, corpora, runs))
    comparisons = [judged(values[:, 0], values[:, at]) for at in range(1, FILESYSTEMS)]
    ordered = np.sort(np.array([comparison.p for comparison in comparisons]), axis=0)
    # Benjamini and Hochberg: the largest of the ordered p that is below its own part of the level, and all before it.
    parts = float(LEVEL) * (1 + LATTICE) * np.arange(1, FILESYSTEMS)[:, None] / (FILESYSTEMS - 1)
    limit = np.where(ordered <= parts, ordered, -1).max(axis=0)
    differs = np.array([(comparison.p <= limit) & ~comparison.opposed for comparison in comparisons])
    same = np.array([_within_margin(comparison) for comparison in comparisons]) & ~differs
    [far] = [judged(values[:, 0], values[:, 1] * 1.05)]
    apart = _within_margin(far) & (far.p > float(LEVEL) * (1 + LATTICE))
    shares = (differs.any(axis=0).mean(), same.mean(), apart.mean(), (~(same | differs)).mean())
    return [f"{100 * float(share):.1f}" for share in shares]


def _within_margin(comparison: Judged) -> Bools:
    most = float(1 + MARGIN)
    return (comparison.low * most >= 1) & (comparison.high <= most)


def head(*columns: str) -> Iterator[str]:
    """Write the head of a table."""
    yield from (line(columns), f"|{'---|' * len(columns)}")


def series_of(values: Floats) -> Series:
    """Make a series of drawn values, corpora by run seeds, as if they had been measured."""
    by_seeds = tuple(
        (Seeds(corpus, run), Fraction(float(value)))
        for corpus, row in enumerate(values, start=1)
        for run, value in enumerate(row, start=1)
    )
    return Series("read", 1, "slowdown", "1", by_seeds, ())


def seconds_for(samples: int) -> float:
    """Return the seconds of processor time that the judge takes for so many samples: pairs of five run seeds each."""
    random = np.random.default_rng(1)
    sides = [series_of(np.round(100 + random.normal(0, 1, (1, 5)), 3)) for _ in range(samples // 5)]
    pairs = [SeriesPair(*two) for two in zip(sides[::2], sides[1::2], strict=True)]
    began = time.process_time()
    for comparison in judge(pairs, HostNoise()):
        assert comparison.verdict
    return time.process_time() - began


def report() -> str:
    """Write all tables in Markdown."""
    runs = ", ".join(map(str, RUN_SEEDS))
    return "\n".join(
        [
            f"Which of {FILESYSTEMS} aged worst, in per cent of {TIMES} simulations, with {runs} run seeds of each "
            "corpus, by the share of the variance that is what a corpus does to one filesystem:",
            "",
            *by_share(),
            "",
            "The same where no corpus orders the filesystems otherwise; all tied, and two tied at the top: any that is "
            "named is wrong:",
            "",
            *by_shape(),
            "",
            f"How often an interval of 95 % holds the ratio on files in general, in per cent of {5 * TIMES}:",
            "",
            *covered(),
            "",
            f"Tables of comparisons, in per cent of {TIMES}:",
            "",
            *compared(),
            "",
        ]
    )


def main() -> int:
    """The command line."""
    status = command.run(command.parser(__doc__), lambda _: Answer({"decide": report()}))
    print(f"judge, 10,000 samples: {seconds_for(10_000):.2f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
