"""Make series of given values, corpus by corpus, and judge pairs of them."""

from collections.abc import Sequence

from agelab.analysis.calibration import HostNoise
from agelab.analysis.judge import judge
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series, SeriesPair, exact
from agelab.stats.verdict import ComparedSeries

Values = Sequence[float]


def of(*corpora: Values, metric: str = "elapsed", step: str = "copy") -> Series:
    """Make a series of the values of each corpus, with run seeds from 1 on."""
    values = tuple(
        (Seeds(corpus, run), exact(value))
        for corpus, those in enumerate(corpora, start=1)
        for run, value in enumerate(those, start=1)
    )
    return Series(step, 1, metric, "s", values, ())


def row(a: Values, b: Values, metric: str = "elapsed") -> SeriesPair:
    """Pair the values of A and B on one corpus."""
    return SeriesPair(of(a, metric=metric), of(b, metric=metric))


def judged(*rows: SeriesPair) -> list[ComparedSeries]:
    """Judge rows of the virtual clock."""
    return judge(rows, HostNoise())


def judged_over(a: Sequence[Values], b: Sequence[Values]) -> ComparedSeries:
    """Judge one pair over corpora."""
    [found] = judged(SeriesPair(of(*a), of(*b)))
    return found
