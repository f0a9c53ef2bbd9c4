"""The rank test over corpora and its interval, against enumeration of all orders and against scipy."""

from fractions import Fraction
from itertools import combinations, product
from math import comb
from random import Random

import pytest
import scipy.stats

from agelab.stats import rank_test
from agelab.stats.rank_test import (
    RankTest,
    Ties,
    can_be_distinguishable,
    critical_rank,
    seeds_needed,
    smallest_p,
    tails,
    two_sided,
)
from agelab.stats.series import Block, SeriesPair, exact
from agelab.stats.shift import Interval, Shift, shift_of
from tests.build.judged_series import Values, of, row

ONE = (1.0, 1.1, 1.2, 1.3, 1.4)
TWO = (2.0, 2.1, 2.2, 2.3, 2.4)


def ranked(*rows: SeriesPair, correct: bool = True) -> list[RankTest | None]:
    return rank_test.rank_tests([one.blocks for one in rows], correct=correct)


def shift(*blocks: tuple[Values, Values]) -> Shift:
    left, right = zip(*blocks, strict=True)
    found = shift_of(SeriesPair(of(*left), of(*right)).blocks)
    assert found
    return found


def test_the_rank_test_of_one_corpus_is_scipys() -> None:
    random = Random(1)
    rows = [
        row([random.gauss(0, 1) for _ in range(n)], [random.gauss(0.5, 1) for _ in range(m)])
        for n, m in ((5, 5), (3, 8), (5, 7), (12, 9)) for _ in range(20)
    ]  # fmt: skip
    found = ranked(*rows)
    for one, test in zip(rows, found, strict=True):
        a, b = ([float(v) for _, v in side.values] for side in (one.left, one.right))
        said = scipy.stats.mannwhitneyu(b, a, method="exact")
        assert test and test.p == pytest.approx(said.pvalue)
        assert float(test.delta) == pytest.approx(2 * said.statistic / (len(a) * len(b)) - 1)
    family = [test for test in found if test and test.family]
    fair = scipy.stats.false_discovery_control([test.p for test in family], method="bh")
    assert [test.corrected for test in family] == pytest.approx(list(fair))
    assert [test.corrected for test in ranked(*rows, correct=False) if test] == [test.p for test in found if test]


def every_order(blocks: list[tuple[Values, Values]]) -> list[int]:
    """Twice U of all ways to deal each block's values to A and B."""
    sums = []
    for a, b in blocks:
        values = [*a, *b]
        of_block = []
        for chosen in combinations(range(len(values)), len(b)):
            ours = [values[at] for at in chosen]
            theirs = [values[at] for at in range(len(values)) if at not in chosen]
            of_block.append(sum(2 * (y > x) + (y == x) for x in theirs for y in ours))
        sums.append(of_block)
    return [sum(one) for one in product(*sums)]


@pytest.mark.parametrize(
    "blocks",
    [
        [((1, 1, 2), (2, 3, 3))],
        [((3,) * 5, (7,) * 5)],
        [((1, 2, 3), (4, 5, 6)), ((1, 3, 5), (2, 4, 6))],
        [((1, 1, 2), (1, 2, 2)), ((5,), (4, 4)), ((0, 1), (1, 1))],
        [((1, 2), (3, 4, 5)), ((9, 8, 7), (6,))],
    ],
)
def test_p_is_the_share_of_all_orders_within_the_corpora(blocks: list[tuple[Values, Values]]) -> None:
    every = every_order(blocks)
    twice = sum(2 * (y > x) + (y == x) for a, b in blocks for x in a for y in b)
    low, high = (sum(one <= twice for one in every), sum(one >= twice for one in every))
    left, right = zip(*blocks, strict=True)
    [found] = ranked(SeriesPair(of(*left), of(*right)))
    assert found and found.p == pytest.approx(min(1, 2 * min(low, high) / len(every)))
    pairs = sum(len(a) * len(b) for a, b in blocks)
    assert found and found.delta == Fraction(twice, pairs) - 1


def test_many_values_have_the_normal_law() -> None:
    a, b = tuple(range(40)), tuple(range(9, 49))
    [found] = ranked(row(a, b))
    assert found and found.p == pytest.approx(scipy.stats.mannwhitneyu(b, a, method="asymptotic").pvalue)
    large = [Ties.none((31, 30))]
    exact_tail = tails([Ties.none((30, 30))], 2 * 330)
    assert tails(large, 2 * 341)[0] == pytest.approx(exact_tail[0], rel=0.1)


def test_the_correction_by_hand() -> None:
    """The k-th smallest p of m comparisons is multiplied by m/k, and the adjusted values keep their order."""
    shifted = [tuple(v + by for v in ONE) for by in (1.0, 0.35, 0.25, 0.25, 0.15)]
    found = [one for one in ranked(*(row(ONE, other) for other in shifted)) if one]
    assert [one.p * 252 for one in found] == pytest.approx([2, 4, 14, 14, 56])
    # 5/1 * 2, 5/2 * 4; of two with 14 the third counts 5/3 times and the fourth 5/4: the smaller holds for both.
    assert [one.corrected * 252 for one in found] == pytest.approx([10, 10, 17.5, 17.5, 56])


def test_what_can_never_be_told_is_in_no_family() -> None:
    found = ranked(row(ONE, TWO), row(ONE, ()), row(ONE[:3], TWO[:3]), row((7,) * 5, (7,) * 5), row(ONE, ONE))
    assert [one and one.family for one in found] == [2, None, 0, 0, 2]
    assert [one.corrected for one in (found[2], found[3]) if one] == [1, 1]
    assert ranked(row((), ())) == [None]


def test_the_least_p_and_the_seeds_that_reach_the_level() -> None:
    assert smallest_p(((5, 5),)) == pytest.approx(2 / 252) and smallest_p(((3, 3),)) == pytest.approx(0.1)
    assert smallest_p(((1, 1),)) == 1 and smallest_p(((3, 3), (3, 3))) == pytest.approx(2 / 400)
    assert [seeds_needed(family) for family in (1, 6, 7, 45, 1000)] == [4, 5, 6, 7, 9]
    assert [seeds_needed(1, corpora) for corpora in (1, 2, 3, 4, 5, 6)] == [4, 3, 2, 2, 2, 1]
    four_of_one, three_of_two = of(ONE[:4]), of(ONE[:3], ONE[:3])
    for one, told in ((four_of_one, True), (three_of_two, True), (of(ONE[:3]), False), (of(ONE[:2], ONE[:2]), False)):
        assert can_be_distinguishable(seeds for seeds, _ in one.values) is told


def test_a_p_of_exactly_five_per_cent_excludes_chance() -> None:
    """One value above thirty-nine others: two of forty orders are as one-sided."""
    [found] = ranked(row([float(n) for n in range(39)], [99.0]))
    assert found and found.p == pytest.approx(0.05) and found.distinguishable


@pytest.mark.parametrize("sizes", [((5, 5),), ((4, 4),), ((3, 3), (3, 3)), ((5, 3), (2, 6)), ((3, 3),), ((10, 9),)])
def test_the_intervals_rank_is_the_tests_critical_value(sizes: tuple[tuple[int, int], ...]) -> None:
    blocks, k = [Ties.none(size) for size in sizes], critical_rank(sizes, 0.05)
    assert k == -1 or two_sided(blocks, 2 * k) <= 0.05
    assert two_sided(blocks, 2 * (k + 1)) > 0.05


@pytest.mark.parametrize("corpora", [1, 2, 3])
def test_interval_and_test_agree_whatever_the_values(corpora: int) -> None:
    """The interval leaves out a ratio exactly if the test rejects it: B's values divided by it, against A's."""
    random = Random(corpora)
    for _ in range(40):
        blocks = [
            Block(
                corpus,
                tuple(exact(round(random.gauss(10, 1), 3)) for _ in range(5)),
                tuple(exact(round(random.gauss(11, 1), 3)) for _ in range(4)),
            )
            for corpus in range(corpora)
        ]
        found = shift_of(blocks)
        assert found and found.is_ratio and found.interval
        if found.depends:
            continue
        for by in (Fraction(9, 10), Fraction(1), Fraction(11, 10), Fraction(12, 10), Fraction(13, 10)):
            moved = [Block(one.corpus, one.left, tuple(b / by for b in one.right)) for one in blocks]
            [test] = rank_test.rank_tests([moved])
            if any(b == a for one in moved for a in one.left for b in one.right):
                continue  # a tie stands on the edge
            assert test and test.distinguishable is not (found.interval.low <= by <= found.interval.high)


def test_the_shift_is_the_median_of_all_pairs_of_one_corpus() -> None:
    found = shift(((1, 2), (3, 8)), ((10, 10, 10), (30,)))
    assert found.value == 3  # of 3, 8, 1.5, 4 and three times 3
    assert found.interval is None, "so few values have none"
    found = shift((ONE, TWO))
    every = sorted(exact(b) / exact(a) for a in ONE for b in TWO)
    assert (found.value, found.interval) == (every[12], Interval(every[2], every[22]))


def test_where_a_value_is_not_above_zero_the_shift_is_a_difference() -> None:
    found = shift(((0, 1, 2, 3), (0.3, 1.3, 2.3, 3.3)))
    assert not found.is_ratio and found.none == 0 and found.value == Fraction(3, 10)


def test_a_tenth_is_a_tenth() -> None:
    """In floats 0.3 - 0.2 is less than 0.1, and 1.1 - 1.0 more."""
    found = shift(((0, 0.2, 1.0), (0.1, 0.3, 1.1)))
    assert found.value == Fraction(1, 10)


def test_very_many_pairs_have_the_same_shift() -> None:
    random = Random(4)
    for low in (1.0, -0.5):  # ratios, differences
        a, b = ([round(low + random.random(), 6) for _ in range(120)] for _ in "AB")
        found, block = shift((a, b)), SeriesPair(of(a), of(b)).blocks[0]
        every = sorted(y / x if found.is_ratio else y - x for x in block.left for y in block.right)
        assert len(every) > 10_000 and found.is_ratio is (low > 0)
        assert float(found.value) == pytest.approx(float((every[7199] + every[7200]) / 2))
        k = critical_rank(((120, 120),), 0.05)
        assert found.interval and float(found.interval.low) == pytest.approx(float(every[k]))
        assert float(found.interval.high) == pytest.approx(float(every[-1 - k]))


def test_where_corpora_differ_in_the_shift_the_interval_holds_that_of_each() -> None:
    up, down = (ONE, tuple(v * 2 for v in ONE)), (ONE, tuple(v / 2 for v in ONE))
    found = shift(up, down)
    above, below = (one.interval for one in found.corpora)
    assert found.depends and above and below and found.interval == Interval(below.low, above.high)
    assert found.sides == (1, -1)
    rights = [tuple(round(v * by, 6) for v in ONE) for by in (1.9, 2.0, 2.5, 3.0, 3.5, 6.0)]
    found = shift(*((ONE, one) for one in rights))
    assert found.depends and found.value == Fraction(11, 4) and found.sides == (1,) * 6


def test_values_of_another_corpus_are_never_compared() -> None:
    """Each corpus twice as large as the one before, B a little above A in each: all together they mix."""
    lefts = [[by * v for v in (1.0, 1.01, 1.02)] for by in (1, 2, 4)]
    rights = [[by * v for v in (1.03, 1.04, 1.05)] for by in (1, 2, 4)]
    [found] = ranked(SeriesPair(of(*lefts), of(*rights)))
    assert found and found.delta == 1 and found.p == pytest.approx(2 / comb(6, 3) ** 3)
