"""The rank test, its correction, outliers, and the verdict that floor and test give together."""

from fractions import Fraction
from itertools import combinations
from random import Random

import pytest
import scipy.stats

from agelab.analysis.host_noise import HostNoise
from agelab.analysis.judge import judge
from agelab.model.metrics import METRICS
from agelab.model.seeds import Seeds
from agelab.stats import rank_test
from agelab.stats.noise_floor import FloorVerdict as Floored
from agelab.stats.noise_floor import MedianDifference
from agelab.stats.order_statistics import exact, summary
from agelab.stats.outliers import grubbs_limit, outliers
from agelab.stats.rank_test import seeds_needed, smallest_p
from agelab.stats.series import Series, SeriesPair
from agelab.stats.verdict import ComparedSeries, DifferenceVerdict


def of(*values: float, metric: str = "elapsed", step: str = "copy") -> Series:
    return Series(
        step, 1, metric, "s", tuple((Seeds(1, n), exact(v)) for n, v in enumerate(values, start=1)), ()
    )


def row(a: tuple[float, ...], b: tuple[float, ...], metric: str = "elapsed") -> SeriesPair:
    return SeriesPair(of(*a, metric=metric), of(*b, metric=metric))


ONE = (1.0, 1.1, 1.2, 1.3, 1.4)
TWO = (2.0, 2.1, 2.2, 2.3, 2.4)


def test_the_rank_test_is_scipys() -> None:
    random = Random(1)
    rows = [
        row(tuple(random.gauss(0, 1) for _ in range(n)), tuple(random.gauss(0.5, 1) for _ in range(m)))
        for n, m in ((5, 5), (3, 8), (5, 7), (12, 9)) for _ in range(20)
    ]  # fmt: skip
    found = rank_test.rank_tests(rows)
    for one, test in zip(rows, found, strict=True):
        a, b = ([float(v) for _, v in side.values] for side in (one.left, one.right))
        said = scipy.stats.mannwhitneyu(b, a, method="exact")
        assert test and test.p == pytest.approx(said.pvalue)
        assert float(test.delta) == pytest.approx(2 * said.statistic / (len(a) * len(b)) - 1)
    family = [test for test in found if test and test.family]
    fair = scipy.stats.false_discovery_control([test.p for test in family], method="bh")
    assert [test.corrected for test in family] == pytest.approx(list(fair))
    assert {test.family for test in family} == {60} == {len(family)}, "three values have no floor"


def test_p_by_hand() -> None:
    """Two of the 252 orders of five and five are as one-sided as separated samples; delta counts pairs."""
    [test] = rank_test.rank_tests([row(ONE, TWO)])
    assert test and test.delta == 1 and test.p == pytest.approx(2 / 252)
    [test] = rank_test.rank_tests([row((1, 2, 3, 4, 10), (5, 6, 7, 8, 9))])  # 20 of 25 pairs are won: U = 20
    won = sum(sum(range(1, 11)) - sum(c) - 15 >= 20 for c in combinations(range(1, 11), 5))
    assert test and test.delta == Fraction(3, 5)
    assert test.p == pytest.approx(2 * won / 252)


def test_tied_values_of_few_runs_go_through_every_order() -> None:
    """The normal approximation would say 0.004 of five and five, which no order of ten values can give."""
    [apart, same] = rank_test.rank_tests([row((3,) * 5, (7,) * 5), row((3,) * 5, (3,) * 5)])
    assert apart and apart.delta == 1 and apart.p == pytest.approx(2 / 252)
    assert same and same.p == 1 and same.delta == 0
    [found] = rank_test.rank_tests(
        [row((1, 1, 2), (2, 3, 3))]
    )  # of 20 orders 2 and their mirrors have a rank sum of 14.5 and more
    assert found and found.p == pytest.approx(2 * 2 / 20)


@pytest.mark.parametrize(("n", "m"), [(1, 5), (5, 5), (4, 7), (7, 7), (5, 8)])
def test_with_ties_p_is_the_share_of_all_orders(n: int, m: int) -> None:
    """Counted one by one, in halves of ranks. The normal approximation says 0.028 where it is 0.070, of seven runs."""
    random = Random(n)
    for _ in range(12):
        a = [random.randrange(3) for _ in range(n)]
        b = [random.randrange(3) + random.choice((0, 1, 3)) for _ in range(m)]
        every = sorted([*a, *b])
        twice = {v: 2 * every.index(v) + every.count(v) + 1 for v in every}
        ours, sums = (
            sum(twice[v] for v in b),
            [sum(twice[v] for v in c) for c in combinations(every, m)],
        )
        tail = min(sum(one <= ours for one in sums), sum(one >= ours for one in sums))
        [found] = rank_test.rank_tests([row(tuple(a), tuple(b))])
        assert found and found.p == pytest.approx(min(1, 2 * tail / len(sums)))
        won = sum((y > x) - (y < x) for x in a for y in b)
        assert found.delta == Fraction(won, n * m)


def test_ties_among_very_many_runs_are_scipys_approximation() -> None:
    a, b = tuple(range(40)), tuple(range(9, 49))
    [found] = rank_test.rank_tests([row(a, b)])
    assert found and found.p == pytest.approx(scipy.stats.mannwhitneyu(b, a, method="asymptotic").pvalue)


def test_the_correction_by_hand() -> None:
    """The k-th smallest p of m comparisons is multiplied by m/k, and the adjusted values keep their order."""
    shifted = [tuple(v + by for v in ONE) for by in (1.0, 0.35, 0.25, 0.25, 0.15)]
    found = [one for one in rank_test.rank_tests([row(ONE, other) for other in shifted]) if one]
    assert [one.p * 252 for one in found] == pytest.approx([2, 4, 14, 14, 56])
    # 5/1 * 2, 5/2 * 4; of two with 14 the third counts 5/3 times and the fourth 5/4: the smaller holds for both.
    assert [one.corrected * 252 for one in found] == pytest.approx([10, 10, 17.5, 17.5, 56])


def test_what_was_not_measured_is_in_no_family() -> None:
    found = rank_test.rank_tests([row(ONE, TWO), row(ONE, ())])
    assert found[1] is None and found[0] and found[0].family == 1
    assert rank_test.rank_tests([row((), ())]) == [None]


def test_the_least_p_and_the_seeds_that_reach_the_level() -> None:
    assert [smallest_p(5, 5), smallest_p(3, 3), smallest_p(1, 1)] == [Fraction(2, 252), Fraction(1, 10), 1]
    assert [seeds_needed(family) for family in (1, 6, 7, 45, 1000)] == [4, 5, 6, 7, 9]
    for family in (1, 6, 7, 45, 1000):
        n = seeds_needed(family)
        assert smallest_p(n, n) * family <= Fraction(1, 20) < smallest_p(n - 1, n - 1) * family


def drawn(random: Random, middle: float) -> tuple[float, ...]:
    return tuple(round(random.gauss(middle, 1), 2) for _ in range(5))


def judged(*rows: SeriesPair) -> list[ComparedSeries]:
    return judge(rows, HostNoise())


@pytest.mark.parametrize(
    ("metric", "word"),
    [
        ("elapsed", "slower"),
        ("throughput", "faster"),
        ("layout_score", "higher"),
        ("slowdown", "higher"),
        ("x", "higher"),
    ],
)
def test_the_word_is_the_metrics(metric: str, word: str) -> None:
    opposite = {"slower": "faster", "faster": "slower", "higher": "lower"}[word]
    [up] = judged(row(ONE, TWO, metric))
    [down] = judged(row(TWO, ONE, metric))
    assert (up.verdict, up.word, down.verdict, down.word) == (
        DifferenceVerdict.HIGHER,
        word,
        DifferenceVerdict.LOWER,
        opposite,
    )
    assert up.differs and up.reason is None
    better = {
        "elapsed": "left",
        "throughput": "right",
        "layout_score": "right",
        "slowdown": "left",
        "x": None,
    }
    assert up.better == better[metric] and (down.better == up.better) is (metric == "x")
    assert up.ratio == Fraction(22, 12) and up.interval and up.interval.low <= up.ratio <= up.interval.high


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        ((1.4, 1.5, 1.6, 1.7, 1.8), DifferenceVerdict.BELOW),  # p = 0.016, yet no more than seeds make
        (ONE, DifferenceVerdict.EQUAL),
        ((9.0,) * 4, DifferenceVerdict.NO_FLOOR),
        ((), DifferenceVerdict.NOT_MEASURED),
    ],
)
def test_without_a_floor_below_it_nobody_is_slower(
    other: tuple[float, ...], verdict: DifferenceVerdict
) -> None:
    [found] = judged(row(ONE, other))
    assert (found.verdict, found.word, found.differs) == (verdict, verdict.value, False)
    assert found.better is None


def test_above_the_floor_but_one_of_many_comparisons_may_be_chance() -> None:
    """2/252 is below the level for six comparisons, and not for seven: seven rows of which one differs."""
    same = [row(ONE, ONE) for _ in range(5)]
    assert judged(row(ONE, TWO), *same)[0].word == "slower"
    [found, *_] = judged(row(ONE, TWO), *same, row(ONE, ONE))
    assert found.difference and found.difference.verdict is Floored.B_HIGHER
    assert (found.verdict, found.word) == (DifferenceVerdict.CHANCE, "maybe chance")
    assert found.reason == (
        "above the floor, but chance is not excluded (p 0.056 of 7 comparisons): 6 seeds on each side could"
    )
    # Another metric is another family.
    assert judged(row(ONE, TWO), *same, row(ONE, ONE, "seeks"))[0].word == "slower"


def test_no_word_stands_below_the_floor_whatever_the_values() -> None:
    random = Random(2)
    for _ in range(300):
        shifts = [random.choice((5, 8)) for _ in range(3)]
        rows = [row(drawn(random, 5), drawn(random, shift)) for shift in shifts]
        for found in judged(*rows):
            assert found.difference and found.test
            above = abs(found.difference.difference) > (found.difference.floor or 0)
            assert found.differs == (above and found.test.corrected <= 0.05)


def test_a_difference_that_is_none_is_called_one_as_rarely_as_the_level_says() -> None:
    """At most 5 % of families without any difference have a verdict (Benjamini and Hochberg, theorem 1)."""
    random = Random(3)
    wrong = 0
    for _ in range(400):
        rows = [
            row(tuple(random.random() for _ in range(5)), tuple(random.random() for _ in range(5)))
            for _ in range(4)
        ]
        wrong += any(one.differs for one in judged(*rows))
    assert wrong / 400 <= 0.05


def test_a_hosts_own_floor_raises_the_floor() -> None:
    a, b = summary([exact(v) for v in ONE]), summary([exact(v) for v in TWO])
    assert MedianDifference(a, b, Fraction(1, 10)).floor == exact(0.4)  # that of the seeds is the larger one
    assert (
        MedianDifference(a, b, Fraction(9, 10)).floor
        == MedianDifference(b, a, Fraction(9, 10)).floor
        == exact(1.98)
    )
    assert MedianDifference(a, b, Fraction(9, 10)).verdict is Floored.BELOW
    assert MedianDifference(b, a, Fraction(9, 10)).verdict is Floored.BELOW
    few = summary([exact(1)])
    assert MedianDifference(few, b, Fraction(9, 10)).floor is None
    [found] = judge([row(ONE, TWO)], lambda row: Fraction(9, 10))
    assert found.verdict is DifferenceVerdict.BELOW


def test_two_medians_of_what_a_host_has_shown_are_below_its_floor_either_way_round() -> None:
    """Whichever is called A, and however much faster the host has become since: the floor is a share of the larger."""
    seen = [exact(v) for v in (0.5, 0.8, 1, 1, 1.1, 1.4)]
    share = (max(seen) - min(seen)) / summary(seen).median
    for one, other in combinations(seen, 2):
        for times in (Fraction(1, 9), 1, 7):
            few, many = (summary([value * times] * 5) for value in (one, other))
            for a, b in ((few, many), (many, few)):
                assert MedianDifference(a, b, share).verdict in (Floored.BELOW, Floored.EQUAL)
    slow, fast = summary([exact(2)] * 5), summary([exact(1)] * 5)
    for share in (Fraction(4, 10), Fraction(6, 10)):
        said = [
            MedianDifference(*pair, share).verdict is Floored.BELOW for pair in ((slow, fast), (fast, slow))
        ]
        assert said == [share > Fraction(1, 2)] * 2


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((1, 2, 3, 4, 5), []),
        ((10, 11, 12, 13, 100), [5]),
        ((12, 11, -90, 13, 10), [3]),
        ((7, 7, 7, 7, 8), [5]),
        ((7, 7, 7, 7, 7), []),
        ((1, 1.1, 1.2, 9, 9.1), []),  # two that lie together are a cluster
        ((1, 2, 3, 100), []),  # four say nothing
        ((1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 80, 9), [8, 9]),
    ],
)
def test_outliers_are_named_with_their_seed(values: tuple[float, ...], named: list[int]) -> None:
    found = outliers(of(*values))
    assert [seeds.run for seeds, _ in found] == named
    assert all(value == exact(values[seeds.run - 1]) for seeds, value in found)


def test_the_limits_are_grubbs_own_table() -> None:
    """Two-sided, 5 %: the column of 2.5 % of his table I."""
    table = {5: 1.715, 6: 1.887, 7: 2.020, 8: 2.126, 9: 2.215, 10: 2.290, 20: 2.709}
    assert {n: grubbs_limit(n) for n in table} == pytest.approx(table, abs=0.001)


def test_of_series_of_normal_values_one_in_twenty_has_a_name() -> None:
    random = Random(5)
    named = sum(bool(outliers(of(*(round(random.gauss(9, 1), 6) for _ in range(5))))) for _ in range(2000))
    assert 0.035 < named / 2000 < 0.065


def test_which_way_is_better_is_said_of_what_has_a_speed() -> None:
    assert {name for name, metric in METRICS.items() if metric.speed} == {
        "elapsed", "sync_elapsed", "throughput", "recovery_time",
    }  # fmt: skip
    assert all(metric.better for metric in METRICS.values() if metric.speed)
