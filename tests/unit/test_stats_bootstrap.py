"""Bootstrap intervals against every resample gone through one by one, against scipy, and by hand."""

import time
from collections import Counter
from fractions import Fraction
from itertools import product
from statistics import mean, median
from typing import Any

import numpy as np
import pytest
import scipy.stats

from agelab.model.result import Sample
from agelab.model.seeds import Seeds
from agelab.stats.bootstrap import (
    Interval,
    estimate_all,
    means,
    median_ranks,
    medians,
    percentile_interval,
    ratio_intervals,
    resamples,
)
from agelab.stats.order_statistics import exact, summary
from agelab.stats.series import MEAN, Place, Series, SeriesPair, by_step, series

AT: Place = ("copy", 1, "elapsed")


def of(*values: float) -> Series:
    return Series(
        *AT, "s", tuple((Seeds(1, seed), exact(value)) for seed, value in enumerate(values, start=1)), ()
    )


def by_hand(law: Counter[float], share: float = 0.025) -> Interval:
    """The two values that leave out that share of a distribution on each side, at most."""
    total, below, found = sum(law.values()), 0, []
    ordered = sorted(law)
    low = next(v for v in ordered if (below := below + law[v]) > share * total)
    above = 0
    high = next(v for v in reversed(ordered) if (above := above + law[v]) > share * total)
    found = [low, high]
    return Interval(*found)


@pytest.mark.parametrize(
    "values", [(3, 1), (5, 1, 2), (7, 1, 4, 2), (1, 2, 4, 8, 16), (1, 1, 1, 2, 9), (2, 4, 6, 7, 9, 11)]
)
@pytest.mark.parametrize(("law", "statistic"), [(medians, median), (means, mean)])
def test_every_resample_of_few_runs_is_in_its_law(values: tuple[int, ...], law: Any, statistic: Any) -> None:
    """All n**n ways to draw n runs from n, equally likely."""
    n = len(values)
    counted = Counter(round(float(statistic(drawn)), 9) for drawn in product(values, repeat=n))
    found, weights = law(np.array([values], float))
    ours: Counter[float] = Counter()
    for value, weight in zip(found[0], weights, strict=True):
        ours[round(float(value), 9)] += weight
    assert {v: pytest.approx(w / n**n) for v, w in counted.items()} == ours
    [low], [high] = percentile_interval(found, weights)
    assert Interval(round(float(low), 9), round(float(high), 9)) == by_hand(counted)


def test_of_five_runs_the_interval_of_the_median_is_their_range() -> None:
    """The median of five drawn is the smallest with P(Bin(5, 1/5) >= 3) = 181/3125, more than half of 5 %."""
    low, high, weights = median_ranks(5)
    assert list(low) == list(high) == [0, 1, 2, 3, 4]
    assert weights == pytest.approx([181 / 3125, 811 / 3125, 1141 / 3125, 811 / 3125, 181 / 3125])
    found = estimate_all({AT: of(1, 2, 3, 4, 100)})[AT]
    order = summary([exact(v) for v in (1, 2, 3, 4, 100)]).interval
    assert found.median_interval == Interval(1, 100) == Interval(float(order.low), float(order.high))
    assert found.mean == 22


@pytest.mark.parametrize("n", [9, 10, 12, 15, 20, 31])
def test_the_law_of_the_median_is_scipys(n: int) -> None:
    drawn = np.random.default_rng(n).normal(10, 1, n)
    theirs = scipy.stats.bootstrap(
        (drawn,), np.median, n_resamples=20_000, method="percentile", rng=np.random.default_rng(7)
    ).confidence_interval
    ours = estimate_all({AT: of(*map(float, drawn))})[AT].median_interval
    assert ours and [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=0.12)
    assert median_ranks(n)[2].sum() == pytest.approx(1)


def test_the_interval_of_a_mean_of_many_runs_is_scipys() -> None:
    drawn = np.random.default_rng(3).normal(10, 1, 20)
    theirs = scipy.stats.bootstrap(
        (drawn,), np.mean, n_resamples=20_000, method="percentile", rng=1
    ).confidence_interval
    ours = estimate_all({AT: of(*map(float, drawn))})[AT].mean_interval
    assert ours and [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=0.05)


def test_resamples_are_the_same_each_time() -> None:
    resamples.cache_clear()
    first = resamples(20)[0].tobytes()
    resamples.cache_clear()
    assert resamples(20)[0].tobytes() == first
    assert len(resamples(20)[0]) == 2000 and len(resamples(5)[0]) == 126


def test_one_run_has_no_interval_and_none_has_no_estimate() -> None:
    found = estimate_all({AT: of(7), ("read", 1, "elapsed"): of()})
    assert list(found) == [AT]
    assert found[AT].mean == 7 and found[AT].median_interval is found[AT].mean_interval is None


def test_the_interval_of_a_ratio_draws_both_sides() -> None:
    a, b = (1, 2, 3), (10, 20, 60)
    counted = Counter(
        round(median(y) / median(x), 9) for x in product(a, repeat=3) for y in product(b, repeat=3)
    )
    [found] = ratio_intervals([SeriesPair(of(*a), of(*b))])
    assert found and [found.low, found.high] == pytest.approx([*vars(by_hand(counted)).values()])
    assert (
        ratio_intervals(
            [SeriesPair(of(*a), of(*a[:1])), SeriesPair(of(0, 1, 2), of(1, 2, 3)), SeriesPair(of(), of(1, 2))]
        )
        == [None] * 3
    )


def test_series_of_unlike_sizes_come_back_in_their_order() -> None:
    found = estimate_all({("s", n, "elapsed"): of(*range(1, n + 1)) for n in (5, 2, 9, 5, 1)})
    assert [place[1] for place in found] == [5, 2, 9, 1]
    assert [one.mean for one in found.values()] == [3, Fraction(3, 2), 5, 1]


def test_repetitions_of_a_run_are_one_number_of_it() -> None:
    """A run is drawn whole: what it did three times is its mean, and not three values."""

    def sample(repetition: int, value: float | None) -> Sample:
        why = None if value is not None else "lost"
        return Sample(
            step="copy", metric="elapsed", value=value, unit="s", repetition=repetition, not_measured=why
        )

    once = Sample(step="read", metric="elapsed", value=4, unit="s")
    found = by_step(
        series(
            [
                (Seeds(1, 1), [sample(1, 1.0), sample(2, 2.0), sample(3, 6.0), once]),
                (Seeds(1, 2), [sample(1, 2.0), sample(2, 3.0), sample(3, 7.0)]),
                (Seeds(1, 3), [sample(1, 2.0), sample(2, None), sample(3, 7.0)]),
            ]
        )
    )
    assert list(found) == [("copy", MEAN, "elapsed"), ("read", 1, "elapsed")]
    copy = found["copy", MEAN, "elapsed"]
    assert copy.values == ((Seeds(1, 1), Fraction(3)), (Seeds(1, 2), Fraction(4)))
    assert copy.missing == ((Seeds(1, 3), "lost"),)


def test_two_and_a_half_thousand_series_are_quick() -> None:
    drawn = np.random.default_rng(1).normal(10, 1, (2500, 5))
    found = {("s", at, "elapsed"): of(*map(float, row)) for at, row in enumerate(drawn)}
    rows = [SeriesPair(one, one) for one in found.values()]
    begun = time.process_time()
    assert len(estimate_all(found)) == len(ratio_intervals(rows)) == 2500
    assert time.process_time() - begun < 5
