"""Values of cells as series, one for each place that they measure; their medians; and two sides corpus by corpus."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from functools import cache, cached_property, lru_cache, reduce
from math import comb
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from agelab.base.gathered import gathered
from agelab.results.cell_samples import CellSamples, Place
from agelab.results.measure import MEAN, step_title
from agelab.results.result import Sample
from agelab.scenario.metrics import METRICS, Metric
from agelab.scenario.seeds import Seeds
from agelab.scenario.step import StepId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]


LEVEL = Fraction(15, 16)
"""The coverage an interval is to have: that of the range of five values. More values never weaken it."""


@dataclass(frozen=True)
class MedianInterval:
    """Two of the sample's own values, and the chance that such a pair holds the population's median."""

    low: Fraction
    high: Fraction
    coverage: Fraction
    """Exact for a continuous population, at least this much for any other; 0 for a sample of one."""


@dataclass(frozen=True)
class Summary:
    """A sample of one metric, in the metric's unit: its median, an interval for it, its spread.

    The interval is non-parametric: W. R. Thompson, "On confidence ranges for the median and other expectation
    distributions for populations of unknown distribution form", Annals of Mathematical Statistics 7 (1936), 122-128;
    H. A. David and H. N. Nagaraja, "Order Statistics", 3rd ed. 2003, section 7.1. All arithmetic is exact.
    """

    n: int
    median: Fraction
    interval: MedianInterval
    spread: Fraction
    """Largest less smallest."""

    @property
    def relative_spread(self) -> Fraction | None:
        """Spread / median, or None where the median is zero."""
        return self.spread / abs(self.median) if self.median else None


Number: TypeAlias = int | float | Fraction
_EXACT = Context(prec=1000, traps=[Inexact])
"""Has room for any sum of floats."""


@lru_cache(1 << 17)
def exact(value: Number) -> Fraction:
    """Return the number that the digits say: 0.1 is a tenth, as it was written, and not the float nearest to it.

    Raises ValueError for what is no finite number.
    """
    if not isinstance(value, float):
        return Fraction(value)
    try:
        return Fraction(Decimal(str(value)))
    except OverflowError as error:
        raise ValueError(f"{value} is no finite number") from error


def exact_sum(values: Sequence[Number]) -> Fraction:
    """Return the sum of the numbers that the digits say."""
    if Fraction in map(type, values):
        return sum(map(exact, values), Fraction())
    # One fraction instead of as many as there are values.
    return Fraction(reduce(_EXACT.add, map(Decimal, map(str, values)), Decimal()))


@cache
def coverage(n: int, k: int) -> Fraction:
    """Return the chance that the k-th smallest and the k-th largest of n values enclose the population's median.

    The median lies outside when fewer than k of the n fall on one side of it, and each falls there with chance 1/2:
    1 - 2 * sum(C(n, i), i < k) / 2**n.
    """
    return 1 - Fraction(2 * sum(comb(n, i) for i in range(k)), 2**n)


@cache
def interval_rank(n: int, level: Fraction = LEVEL) -> int:
    """Return the k of the narrowest symmetric interval that covers with ``level``; 1, the widest, where none does."""
    most, k, ways = (1 - level) * 2 ** (n - 1), 1, n  # ways: C(n, k)
    outside = 1  # 2**n times the chance that fewer than k values lie on one given side
    while k < (n + 1) // 2 and outside + ways <= most:
        outside, k = outside + ways, k + 1
        ways = ways * (n - k + 1) // k
    return k


def summary(values: Sequence[Number]) -> Summary:
    """Summarize a sample: median, interval and spread. Raises ValueError for an empty one."""
    if not values:
        raise ValueError("an empty sample has no median")
    if Fraction in map(type, values):
        ordered = sorted(values, key=lambda value: (float(value), value))  # floats are quick to compare
    else:
        ordered = sorted(values)
    n = len(ordered)
    k = interval_rank(n)
    return Summary(
        n=n,
        median=(exact(ordered[(n - 1) // 2]) + exact(ordered[n // 2])) / 2,
        interval=MedianInterval(exact(ordered[k - 1]), exact(ordered[n - k]), coverage(n, k)),
        spread=exact(ordered[-1]) - exact(ordered[0]),
    )


@dataclass(frozen=True)
class Block:
    """The values of A and of B on one corpus; neither is empty."""

    corpus: int
    left: tuple[Fraction, ...]
    right: tuple[Fraction, ...]

    @property
    def size(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    @cached_property
    def floats(self) -> "tuple[Floats, Floats]":
        """Both sides as floats, for their order alone: equal fractions are equal floats."""
        import numpy as np

        return np.array(self.left, float), np.array(self.right, float)


NO_METRICS: Mapping[str, Metric] = MappingProxyType({})


@dataclass(frozen=True)
class Series:
    """One measure, over the seeds of its cells."""

    step: str
    repetition: int
    metric: str
    unit: str
    numbers: tuple[tuple[Seeds, Number], ...]
    """Seeds and value as it was written, for each cell that has one."""
    missing: tuple[tuple[Seeds, str], ...]
    """Seeds and the reason, for each cell that has none."""
    own: Metric | None = None
    """What it measures, where the scenario or a program defines it."""
    repetitions: int = 1
    """How many repetitions its step has; of a mean those that it is of."""
    host: Fraction | None = None
    """The noise of the host that measured it, as a share of its median, where its claim is judged by one."""
    lead: Fraction = Fraction(0)
    """The share by which the higher of two must exceed the lower to be called so, with too few seeds for a test."""

    caveat: str = ""
    """Why its values say less than their name: an option was not honoured, or the data were not of the disk."""

    @property
    def definition(self) -> Metric | None:
        """What it measures; None for a metric that this agelab does not know."""
        return self.own or METRICS.get(self.metric)

    @property
    def title(self) -> str:
        """Its step and repetition, as tables name them."""
        return step_title(self.step, self.repetition, self.repetitions)

    @property
    def place(self) -> Place:
        return (self.step, self.repetition, self.metric)

    @cached_property
    def values(self) -> tuple[tuple[Seeds, Fraction], ...]:
        """Seeds and value."""
        return tuple((seeds, exact(number)) for seeds, number in self.numbers)

    @cached_property
    def summary(self) -> Summary | None:
        """Median, interval and spread, or None where nothing was measured."""
        return summary([number for _, number in self.numbers]) if self.numbers else None

    @property
    def median(self) -> Fraction:
        """Its median; there must be a value."""
        if len(self.numbers) == 1:
            return exact(self.numbers[0][1])
        assert self.summary is not None
        return self.summary.median

    @property
    def seeds(self) -> list[Seeds]:
        return [seeds for seeds, _ in self.numbers]

    @property
    def why_missing(self) -> str:
        """The first reason why it has no value."""
        return self.missing[0][1] if self.missing else "no sample"


def series(
    cells: Iterable[tuple[Seeds, Sequence[Sample]]], own: Mapping[str, Metric] = NO_METRICS
) -> dict[Place, Series]:
    """Sort the samples of each cell into series, in the order in which the first cell measured them.

    ``own`` are the metrics that the registry does not have.
    """
    rows = [(seed, CellSamples.of(samples)) for seed, samples in cells]
    kinds = list(dict.fromkeys(row.kinds for _, row in rows))
    places = list(dict.fromkeys(place for kind in kinds for place in kind.at))
    caveats = _caveats(kind.samples[at] for kind in kinds for at in kind.at.values())
    last: dict[tuple[str, str], int] = {}
    for step, repetition, metric in places:
        last[step, metric] = max(repetition, last.get((step, metric), 1))
    here = {kind: [kind.at.get(place) for place in places] for kind in kinds}
    table = [[None if at is None else row.values[at] for at in here[row.kinds]] for _, row in rows]
    seeds = [seed for seed, _ in rows]
    measured = {}
    for number, (place, values) in enumerate(zip(places, zip(*table, strict=True), strict=True)):
        pairs = zip(seeds, values, strict=True)
        numbers = tuple([pair for pair in pairs if pair[1] is not None])
        missing: tuple[tuple[Seeds, str], ...] = ()
        if len(numbers) < len(values):
            found = {kind: kind.samples[at] for kind in kinds if (at := here[kind][number]) is not None}
            missing = tuple(
                (seed, (sample and sample.not_measured) or "not among this seed's samples")
                for (seed, row), value in zip(rows, values, strict=True)
                if value is None
                for sample in [found.get(row.kinds)]
            )
        last_kind, at = next((kind, at) for kind in reversed(kinds) if (at := here[kind][number]) is not None)
        measured[place] = Series(
            *place,
            last_kind.samples[at].unit,
            numbers,
            missing,
            own.get(place[2]),
            last[place[0], place[2]],
            caveat=caveats.get(place, ""),
        )
    return measured


def _caveats(samples: Iterable[Sample]) -> dict[Place, str]:
    """Return the caveats of samples; the time of a step has that of what its program measured."""
    caveats: dict[Place, str] = {}
    for sample in samples:
        if sample.caveat:
            caveats.setdefault((sample.step, sample.repetition, sample.metric), sample.caveat)
            step = str(StepId(sample.step_id.plain_name, sample.step_id.within))
            caveats.setdefault((step, sample.repetition, "elapsed"), sample.caveat)
    return caveats


def by_step(measured: Mapping[Place, Series]) -> dict[Place, Series]:
    """Reduce to one series for each step and metric, with one number for each run: the mean of a repeated step.

    A run that lacks one of the repetitions has none. Their place has MEAN for a repetition, and what is done once
    keeps its own. For a cell is what chance draws, whole.
    """
    return {mean.place: mean for mean in StepMeans(measured.values()).values()}


class StepMeans(Mapping[tuple[str, str], "Series"]):
    """Step and metric to one series, each made when it is first asked for (``by_step``)."""

    def __init__(self, measured: Iterable[Series]) -> None:
        self._several: dict[tuple[str, str], list[Series]] = {}
        for measure in measured:
            self._several.setdefault((measure.step, measure.metric), []).append(measure)

    def __getitem__(self, at: tuple[str, str]) -> Series:
        several = self._several[at]
        if len(several) > 1:
            several[:] = [_mean(several)]
        return several[0]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._several)

    def __len__(self) -> int:
        return len(self._several)


def _mean(several: Sequence[Series]) -> Series:
    numbers = gathered(known for measure in several for known in measure.numbers)
    missing: dict[Seeds, str] = {}
    for seed, why in (lacking for measure in several for lacking in measure.missing):
        missing.setdefault(seed, why)
    whole = tuple((seed, exact_sum(own) / len(own)) for seed, own in numbers.items() if seed not in missing)
    first = several[0]
    return replace(
        first,
        repetition=MEAN,
        numbers=whole,
        missing=tuple(missing.items()),
        repetitions=len(several),
        caveat=next((measure.caveat for measure in several if measure.caveat), ""),
    )


@dataclass(frozen=True)
class SeriesPair:
    """The same metric of the same repetition in two groups of cells, A and B."""

    left: Series
    right: Series

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The values of both, corpus by corpus; a corpus that one side alone has is left out."""
        ours, theirs = (
            gathered((seeds.corpus, value) for seeds, value in side.values) for side in (self.left, self.right)
        )
        return tuple(
            Block(corpus, tuple(ours[corpus]), tuple(theirs[corpus])) for corpus in sorted(ours.keys() & theirs.keys())
        )


def pair_series(left: Mapping[Place, Series], right: Mapping[Place, Series]) -> list[SeriesPair]:
    """Pair the series of two groups; a place that one never measured has an empty series there."""

    def empty(like: Series) -> Series:
        return replace(like, numbers=(), missing=())

    return [
        SeriesPair(left.get(place) or empty(right[place]), right.get(place) or empty(left[place]))
        for place in dict.fromkeys([*left, *right])
    ]
