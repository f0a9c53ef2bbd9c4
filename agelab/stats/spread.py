"""How values of one series spread: which of them stand out, and whether it is the corpora or the run seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import log, sqrt
from statistics import NormalDist, fmean

from agelab.base.gathered import gathered
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series

LEAST = 5
"""Values of a series in which one can be named at all."""
LEVEL = 0.05
"""The share of series of normal values in which one is named although all were drawn alike."""


@cache
def grubbs_limit(n: int, *, least: bool = False) -> float:
    """Return the standard deviations from the mean beyond which one of n values is named.

    (n-1)/sqrt(n) * sqrt(t^2 / (n-2 + t^2)) with t the upper LEVEL/(2n) point of Student's distribution with n-2 degrees
    of freedom: of five values 1.715, of nine 2.215. F. E. Grubbs, "Procedures for detecting outlying observations in
    samples", Technometrics 11 (1969), 1-21. At ``least`` that of the normal law, which is lower.
    """
    if least:
        squared = NormalDist().inv_cdf(LEVEL / (2 * n)) ** 2
    else:
        from scipy.special import stdtrit

        squared = float(stdtrit(n - 2, LEVEL / (2 * n))) ** 2
    return (n - 1) / sqrt(n) * sqrt(squared / (n - 2 + squared))


def outliers(series: Series) -> tuple[tuple[Seeds, Fraction], ...]:
    """Return seeds and value of each outlier among its corpus, by Grubbs' test repeated while five are left.

    It is made for few values: three standard deviations see nothing in five (none of n is farther than (n-1)/sqrt(n)
    from the mean, of five 1.79), Tukey's fences stand on quartiles, which of five are values, and a limit for the
    median absolute deviation (3.5, Iglewicz and Hoaglin 1993) names one in each fifth series of five normal values.
    """
    by_corpus = gathered((seeds.corpus, (seeds, value)) for seeds, value in series.values)
    return tuple(outlier for values in by_corpus.values() for outlier in _of_one_corpus(values))


def _of_one_corpus(left: list[tuple[Seeds, Fraction]]) -> list[tuple[Seeds, Fraction]]:
    named: list[tuple[Seeds, Fraction]] = []
    while len(left) >= LEAST and _may_stand_out([float(value) for _, value in left]):
        middle = sum((value for _, value in left), Fraction()) / len(left)
        squares = sum(((value - middle) ** 2 for _, value in left), Fraction()) / (len(left) - 1)
        far = max(left, key=lambda pair: abs(pair[1] - middle))
        if not squares or float((far[1] - middle) ** 2 / squares) <= grubbs_limit(len(left)) ** 2:
            break
        named.append(far)
        left.remove(far)
    return named


def _may_stand_out(values: Sequence[float]) -> bool:
    """Return False where no value is as far as ``grubbs_limit`` at least, or as near as floats tell: most series."""
    middle = fmean(values)
    away = [abs(value - middle) for value in values]
    deviation = sqrt(sum(far * far for far in away) / (len(values) - 1))
    near = 0.999 * grubbs_limit(len(values), least=True) * deviation
    return max(away) >= near or max(away) < 1e-9 * abs(middle)


@dataclass(frozen=True)
class SpreadShares:
    """Shares of the variance of a value, of another corpus and another run seed; they add up to one."""

    corpus: float
    run: float | None
    """None where each corpus has run seeds of its own: then it is within ``rest``."""
    rest: float
    """What a run seed does on one corpus and not on another; with ``run`` None, all that run seeds do."""

    @property
    def named(self) -> Mapping[str, float]:
        """The shares by the names of their sources."""
        if self.run is None:
            return {"corpus_seed": self.corpus, "run_seed_and_both": self.rest}
        return {"corpus_seed": self.corpus, "run_seed": self.run, "both": self.rest}


def spread_shares(values: Sequence[tuple[Seeds, Fraction]]) -> SpreadShares | None:
    """Share the variance out among its sources; None where one source alone was varied, or nothing spreads.

    Crossed (every corpus with every run seed): two-way analysis of variance without replication. With c corpora and r
    run seeds the mean squares of corpora, run seeds and rest have the expectations e + rC, e + cR and e; a variance
    that comes out negative is zero. Otherwise one-way: corpora against what is within them. Of logarithms where all
    values are above zero. H. Scheffe, "The Analysis of Variance", 1959, sections 7.2 and 7.4.
    """
    logs = all(value > 0 for _, value in values)
    numbers = {seeds: log(value) if logs else float(value) for seeds, value in values}
    corpora, runs = sorted({seeds.corpus for seeds in numbers}), sorted({seeds.run for seeds in numbers})
    if len(corpora) < 2 or len(set(numbers.values())) < 2:
        return None
    if len(runs) > 1 and len(numbers) == len(corpora) * len(runs):
        return _crossed(numbers, corpora, runs)
    return _one_way(numbers, corpora)


def _crossed(numbers: Mapping[Seeds, float], corpora: Sequence[int], runs: Sequence[int]) -> SpreadShares | None:
    c, r = len(corpora), len(runs)
    middle = _mean([*numbers.values()])
    by_corpus = {corpus: _mean([numbers[Seeds(corpus, run)] for run in runs]) for corpus in corpora}
    by_run = {run: _mean([numbers[Seeds(corpus, run)] for corpus in corpora]) for run in runs}
    of_corpora = r * sum((mean - middle) ** 2 for mean in by_corpus.values()) / (c - 1)
    of_runs = c * sum((mean - middle) ** 2 for mean in by_run.values()) / (r - 1)
    rest = sum((value - by_corpus[at.corpus] - by_run[at.run] + middle) ** 2 for at, value in numbers.items())
    rest /= (c - 1) * (r - 1)
    return _shares(max(0.0, (of_corpora - rest) / r), max(0.0, (of_runs - rest) / c), rest)


def _one_way(numbers: Mapping[Seeds, float], corpora: Sequence[int]) -> SpreadShares | None:
    groups = [[value for at, value in numbers.items() if at.corpus == corpus] for corpus in corpora]
    count, c = len(numbers), len(corpora)
    if count == c:
        return None  # one value of each corpus: nothing says which of the two spreads
    middle = _mean([*numbers.values()])
    within = sum((value - _mean(group)) ** 2 for group in groups for value in group) / (count - c)
    between = sum(len(group) * (_mean(group) - middle) ** 2 for group in groups) / (c - 1)
    size = (count - sum(len(group) ** 2 for group in groups) / count) / (c - 1)
    return _shares(max(0.0, (between - within) / size), None, within)


def _shares(corpus: float, run: float | None, rest: float) -> SpreadShares | None:
    whole = corpus + (run or 0) + rest
    if not whole:
        return None
    return SpreadShares(corpus / whole, None if run is None else run / whole, rest / whole)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
