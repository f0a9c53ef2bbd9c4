"""Order statistics and the floor, against exact enumeration: what is promised holds for every order of the values."""

from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb

import pytest

from agelab.stats.noise_floor import (
    SEEDS_NEEDED,
    FloorVerdict,
    MedianDifference,
    too_few_seeds,
)
from agelab.stats.order_statistics import LEVEL, Summary, coverage, exact, interval_rank, summary


def of(*values: int | float) -> Summary:
    return summary([exact(value) for value in values])


def test_five_values_cover_the_median_with_fifteen_sixteenths() -> None:
    five = of(5, 3, 1, 4, 2)
    assert (five.n, five.median, five.spread) == (5, Fraction(3), Fraction(4))
    assert (five.interval.low, five.interval.high) == (Fraction(1), Fraction(5))
    assert five.interval.coverage == Fraction(15, 16) == LEVEL


@pytest.mark.parametrize("n", range(1, 13))
def test_the_coverage_is_that_of_every_way_to_fall_about_the_median(n: int) -> None:
    """Each value is below or above the population's median, all 2**n ways equally likely: count those enclosed."""
    for k in range(1, (n + 1) // 2 + 1):
        enclosed = sum(k <= sum(sides) <= n - k for sides in product((0, 1), repeat=n))
        assert coverage(n, k) == Fraction(enclosed, 2**n)


@pytest.mark.parametrize("n", range(1, 60))
def test_the_interval_is_the_narrowest_that_covers_or_the_widest_there_is(n: int) -> None:
    k = interval_rank(n)
    if n < SEEDS_NEEDED:
        assert k == 1 and coverage(n, k) < LEVEL
    else:
        assert coverage(n, k) >= LEVEL > coverage(n, k + 1)
    found = summary([Fraction(value) for value in range(n)])
    assert (found.interval.low, found.interval.high) == (Fraction(k - 1), Fraction(n - k))
    assert found.interval.low <= found.median <= found.interval.high


def test_tied_values_are_covered_at_least_as_often() -> None:
    """Draws from three equal chances of 0, 1, 2, whose median is 1: all 3**5 samples of five."""
    drawn = [of(*values).interval for values in product((0, 1, 2), repeat=5)]
    assert sum(one.low <= 1 <= one.high for one in drawn) / len(drawn) >= LEVEL


def test_an_even_number_of_values_has_its_median_between_two() -> None:
    assert of(1, 2, 4, 100).median == 3
    assert of(0.1, 0.2).median == Fraction(15, 100)


def test_one_value_has_no_spread_and_covers_nothing() -> None:
    one, nothing = of(7), Fraction(0)
    assert (one.median, one.spread, one.interval.coverage) == (Fraction(7), nothing, nothing)
    with pytest.raises(ValueError, match="empty sample"):
        summary([])


def test_numbers_are_what_their_digits_say() -> None:
    assert exact(0.3) - exact(0.2) == exact(0.1) != 0.3 - 0.2
    assert exact(1e-06) == Fraction(1, 10**6)
    assert exact(2**63) == 2**63
    with pytest.raises(ValueError):
        exact(float("nan"))


@pytest.mark.parametrize("n", range(1, SEEDS_NEEDED))
def test_fewer_than_five_seeds_have_no_floor_and_no_verdict(n: int) -> None:
    few, five = of(*range(n)), of(100, 100, 100, 100, 100)
    for difference in (MedianDifference(few, five), MedianDifference(five, few), MedianDifference(few, few)):
        assert (difference.floor, difference.verdict) == (None, FloorVerdict.NO_FLOOR)
        word = "seed" if n == 1 else "seeds"
        assert difference.why_no_floor == f"no floor: {n} {word}, five are needed"
    assert too_few_seeds(9, n) == too_few_seeds(n, 9)


@pytest.mark.parametrize(
    ("right", "verdict"),
    [
        ((1, 2, 3, 4, 5), FloorVerdict.EQUAL),
        ((3, 3, 3, 3, 3), FloorVerdict.EQUAL),
        ((7, 7, 7, 7, 7), FloorVerdict.BELOW),  # the floor itself is not above it
        ((7.000001,) * 5, FloorVerdict.B_HIGHER),
        ((-1,) * 5, FloorVerdict.BELOW),
        ((-1.000001,) * 5, FloorVerdict.A_HIGHER),
        ((0, 10, 10, 10, 10), FloorVerdict.BELOW),  # its own spread is the larger one
    ],
)
def test_a_difference_counts_above_the_larger_spread(right: tuple[float, ...], verdict: FloorVerdict) -> None:
    a, b = of(1, 2, 3, 4, 5), of(*right)
    mirrored = {FloorVerdict.A_HIGHER: FloorVerdict.B_HIGHER, FloorVerdict.B_HIGHER: FloorVerdict.A_HIGHER}
    assert MedianDifference(a, b).verdict is verdict
    assert MedianDifference(b, a).verdict is mirrored.get(verdict, verdict)
    assert MedianDifference(a, b).floor == max(a.spread, b.spread) == MedianDifference(b, a).floor


def test_a_tenth_is_not_above_a_tenth() -> None:
    """In floats 0.3 - 0.2 is less than 0.1, and 1.1 - 1.0 more: the verdict must not hang on that."""
    a = of(1.0, 1.0, 1.0, 1.0, 1.1)
    assert MedianDifference(a, of(*[1.1] * 5)).verdict is FloorVerdict.BELOW


def test_without_spread_any_difference_is_one() -> None:
    a, b = of(*[1.5] * 5), of(*[1.500001] * 5)
    assert (MedianDifference(a, b).floor, MedianDifference(a, b).verdict) == (
        Fraction(0),
        FloorVerdict.B_HIGHER,
    )
    assert MedianDifference(a, b).difference == Fraction(1, 10**6)
    assert MedianDifference(a, b).relative == Fraction(1, 1_500_000)


def test_shares_of_nothing_are_none() -> None:
    assert of(-1, 0, 1).relative_spread is None
    assert MedianDifference(of(0), of(1)).relative is None
    assert of(-4, -2, -2).relative_spread == 1


def false_alarm_bound(n: int, m: int) -> Fraction:
    """Return a bound of the chance that n and m values of the same population differ by more than the floor.

    Whatever the population. If B's median is above A's by more than either spread, all of A lies below B's median and
    all of B above A's: in rank order the values begin with at least half of A and end with at least half of B. Of the
    C(n+m, n) orders, all equally likely, C(floor(n/2) + floor(m/2), floor(n/2)) are like that, and as many the other
    way round.
    """
    return Fraction(2 * comb(n // 2 + m // 2, n // 2), comb(n + m, n))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (4, 4), (5, 5), (5, 6), (6, 6), (5, 7)])
def test_the_bound_of_false_alarms_counts_the_rank_orders_it_says(n: int, m: int) -> None:
    """Every way in which n of n + m ranks are A's: how often is all of one beyond the other's median, both ways?"""
    found = 0
    for chosen in combinations(range(n + m), n):
        a, b = sorted(chosen), sorted(set(range(n + m)) - set(chosen))
        for low, high in ((a, b), (b, a)):
            above = sum(value > low[-1] for value in high) >= (len(high) + 1) // 2
            below = sum(value < high[0] for value in low) >= (len(low) + 1) // 2
            found += above and below
    assert false_alarm_bound(n, m) == Fraction(found, comb(n + m, n))


def test_five_and_five_are_one_in_twentyone() -> None:
    assert false_alarm_bound(5, 5) == Fraction(1, 21)


@pytest.mark.parametrize(
    "population",
    [
        range(10),  # even steps
        [2**n for n in range(10)],  # each twice the one before
        [0, 0, 0, 1, 1, 1, 1, 1, 2, 2],  # ties
        [0, 1, 2, 3, 4, 1000, 1001, 1002, 1003, 1004],  # two heaps far apart: the bound is reached or nearly
    ],
)
def test_splitting_one_population_at_random_is_above_the_floor_no_more_often_than_the_bound(
    population: list[int],
) -> None:
    """All 252 ways to deal ten values to A and B, whatever the values are."""
    above = 0
    for chosen in combinations(range(10), 5):
        a = of(*(population[place] for place in chosen))
        b = of(*(population[place] for place in range(10) if place not in chosen))
        above += MedianDifference(a, b).verdict in (FloorVerdict.A_HIGHER, FloorVerdict.B_HIGHER)
    assert Fraction(above, 252) <= false_alarm_bound(5, 5)


def test_the_bound_is_no_mere_zero() -> None:
    """Two heaps of five: dealt apart, they are above the floor."""
    assert (
        MedianDifference(of(0, 1, 2, 3, 4), of(1000, 1001, 1002, 1003, 1004)).verdict is FloorVerdict.B_HIGHER
    )


def test_the_order_of_the_values_does_not_matter() -> None:
    assert len({of(*values) for values in permutations((3, 1, 4, 1, 5))}) == 1
