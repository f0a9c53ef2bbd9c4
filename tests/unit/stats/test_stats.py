"""Order statistics, against exact enumeration: what is promised holds for every order of the values."""

from fractions import Fraction
from itertools import permutations, product

import pytest

from agelab.stats.series import LEVEL, Summary, coverage, exact, interval_rank, summary


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
    if n < 5:
        assert k == 1 and coverage(n, k) < LEVEL
    else:
        assert coverage(n, k) >= LEVEL > coverage(n, k + 1)
    found = summary([Fraction(value) for value in range(n)])
    assert (found.interval.low, found.interval.high) == (Fraction(k - 1), Fraction(n - k))
    assert found.interval.low <= found.median <= found.interval.high


@pytest.mark.parametrize("n", range(1, 60))
def test_another_level_has_another_rank(n: int) -> None:
    k = interval_rank(n, Fraction(95, 100))
    assert (coverage(n, k) >= Fraction(95, 100) > coverage(n, k + 1)) == (n >= 6)


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


def test_the_order_of_the_values_does_not_matter() -> None:
    assert len({of(*values) for values in permutations((3, 1, 4, 1, 5))}) == 1
