"""The rule of the judge, by simulation with known truth: more seeds and more corpora find more, errors stay at 5 %."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import SeedGroup
from agelab.analysis.judge import judge, rank_by_median
from agelab.stats.series import SeriesPair
from agelab.stats.verdict import DifferenceVerdict
from validation import decide
from validation.decide import SHAPES, SHARES, TIED, Draw, Rates, interacting, rates

TIMES = 400
NOISE = 2 * 100 * (0.05 * 0.95 / TIMES) ** 0.5
"""Two standard deviations of a share of 5 % of so many, in per cent."""


def of_share(share: float) -> Draw:
    return partial(interacting, share=share)


def of(share: float, runs: int, corpora: int, *leads: float) -> Rates:
    return rates(of_share(share), leads or (2.0,), (corpora, runs), TIMES)


@pytest.mark.parametrize("corpora", [1, 2, 3, 6])
@pytest.mark.parametrize("share", SHARES)
def test_what_is_true_on_these_files_is_found_the_more_often_the_more_seeds_there_are(
    share: float, corpora: int
) -> None:
    found = [of(share, runs, corpora).found for runs in (3, 5, 10, 15)]
    assert all(more >= less - 2 for less, more in pairwise(found)), found
    assert found[-1] >= 70


@pytest.mark.parametrize("runs", [5, 10])
@pytest.mark.parametrize("share", SHARES)
def test_and_the_more_often_the_more_corpora_there_are(share: float, runs: int) -> None:
    found = [of(share, runs, corpora).found for corpora in (1, 2, 3, 6)]
    assert all(more >= less - 4 for less, more in pairwise(found)), found
    assert found[-1] >= 95


@pytest.mark.parametrize("share", SHARES)
def test_what_holds_for_other_files_is_found_with_more_corpora_and_not_lost_with_more_seeds(share: float) -> None:
    three, six = of(share, 5, 3).general_found, of(share, 5, 6).general_found
    assert six >= three + 25
    assert of(share, 15, 6).general_found >= six - 2


@pytest.mark.parametrize("corpora", [1, 2, 3, 6])
@pytest.mark.parametrize("share", SHARES)
def test_whoever_does_not_lead_is_named_in_one_of_twenty_cases_at_most(share: float, corpora: int) -> None:
    said = of(share, 5, corpora, TIED, TIED)
    assert said.wrong <= 5 + NOISE and said.general_wrong <= 5 + NOISE


@pytest.mark.parametrize("shape", [name for name in SHAPES if "spreads" not in name])
@pytest.mark.parametrize("leads", [(), (TIED, TIED)], ids=["all are tied", "two are tied at the top"])
def test_nor_with_other_populations(shape: str, leads: tuple[float, ...]) -> None:
    assert rates(SHAPES[shape], leads, (2, 5), TIMES).wrong <= 5 + NOISE


def test_an_interval_of_one_corpus_is_about_that_one_and_the_t_interval_about_all() -> None:
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in decide.covered()}
    one, more, three, six = (float(rows["80 %"][at]) for at in range(4))
    assert one < 50 and more < 30, "the rank interval of one corpus does not hold the truth about others"
    assert three == pytest.approx(95, abs=1) and six == pytest.approx(95, abs=1)


@pytest.mark.parametrize(("corpora", "runs"), [(1, 3), (1, 5), (2, 3), (2, 5), (3, 5), (6, 4)])
@pytest.mark.parametrize("share", [0.0, 0.57])
def test_the_simulated_rule_is_the_codes(share: float, corpora: int, runs: int) -> None:
    values, _ = decide.drawn(of_share(share), (1.0,), (corpora, runs), 40, 4)
    said = decide.named(values)
    group = SeedGroup("", None, ())  # type: ignore[arg-type]
    for at, draw in enumerate(values):
        order = rank_by_median([(group, decide.series_of(one)) for one in draw])
        first = order.series[0].values[0][1]
        assert first == decide.series_of(draw[said.first[at]]).values[0][1]
        assert order.clear is bool(said.named[at])
        assert order.holds is bool(said.general[at])
        if order.enough:
            assert bool(said.depends[at]) is (bool(order.opposed) and not order.clear)
    a, b = values[:, 0], values[:, 1]
    twin = decide.judged(a, b)
    pairs = [SeriesPair(decide.series_of(x), decide.series_of(y)) for x, y in zip(a, b, strict=True)]
    for at, one in enumerate(judge(pairs, HostNoise(), correct=False)):
        assert one.test and twin.p[at] == pytest.approx(one.test.p)
        assert bool(twin.opposed[at]) is one.opposed
        if one.interval:
            ends = (float(one.interval.low), float(one.interval.high))
            assert (twin.low[at], twin.high[at]) == pytest.approx(ends)
        if one.general:
            assert twin.general[at] == pytest.approx(one.general.p)
            low, high = float(one.general.interval.low), float(one.general.interval.high)
            assert (twin.general_low[at], twin.general_high[at]) == pytest.approx((low, high))


def test_ties_name_nobody_wrongly() -> None:
    """Whole standard deviations: values that are equal, which the twin of the rule does not know."""
    random, wrong, times = np.random.default_rng(1), 0, 120
    for _ in range(times):
        drawn = 100 + 2 * np.round(random.normal(0, 1, (2, 2, 5)))
        pair = SeriesPair(*(decide.series_of(one) for one in drawn))
        [one] = judge([pair], HostNoise(), correct=False)
        wrong += one.verdict in (DifferenceVerdict.HIGHER, DifferenceVerdict.LOWER)
    assert 100 * wrong / times <= 5 + 2 * 100 * (0.05 * 0.95 / times) ** 0.5


def test_ten_thousand_samples_are_judged_in_two_seconds() -> None:
    assert decide.seconds_for(10_000) < 2
