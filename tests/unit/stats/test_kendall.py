"""Tau-b against values worked out by hand, and its chance against every order."""

from fractions import Fraction
from itertools import permutations
from math import sqrt
from random import Random

import pytest

from agelab.stats.kendall import competition_ranks, tau_b, tau_b_chance


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1),
        ([1, 2, 3, 4], [1, 2, 4, 3], 4 / 6),  # five pairs agree, one does not
        ([1, 2, 3], [1, 1, 2], 2 / sqrt(3 * 2)),  # two agree, one is tied in the other
        ([1, 1, 2, 3], [2, 1, 1, 3], (3 - 1) / 5),  # a tie on either side: five pairs untied on each
        ([1, 1, 2, 2], [1, 2, 1, 2], 0),
        ([1], [1], None),
        ([1, 1, 1], [1, 2, 3], None),
        ([1, 2, 3], [1, 1, 1], None),
    ],
)
def test_tau_b(one: list[int], other: list[int], expected: float | None) -> None:
    found = tau_b([Fraction(value) for value in one], [Fraction(value) for value in other])
    assert found == (None if expected is None else pytest.approx(expected))


def test_tau_b_tells_apart_what_no_float_can() -> None:
    near = [Fraction(1), Fraction(1) + Fraction(1, 10**20), Fraction(2)]
    assert tau_b(near, [Fraction(2), Fraction(1), Fraction(3)]) == pytest.approx(1 / 3)


def test_equal_values_have_equal_ranks() -> None:
    assert competition_ranks([Fraction(v) for v in (3, 1, 3, 2)]) == [3, 1, 3, 2]
    assert competition_ranks([Fraction(v) for v in (1, 2, 2, 4)]) == [1, 2, 2, 4]


def numbers(*values: int) -> list[Fraction]:
    return [Fraction(value) for value in values]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], Fraction(1, 24)),
        ([1, 2, 3, 4], [10, 20, 40, 30], Fraction(4, 24)),  # itself, two like it, and the same order
        ([1, 2, 3, 4], [4, 3, 2, 1], 1),
        ([1, 2], [1, 2], Fraction(1, 2)),
        ([1, 1, 2], [5, 6, 7], Fraction(2, 6)),
        ([1, 1, 2, 2], [1, 1, 2, 2], Fraction(4, 24)),
        ([1, 1], [1, 2], None),
        ([1], [1], None),
    ],
)
def test_the_chance_is_the_share_of_orders_that_agree_as_well(
    one: list[int], other: list[int], expected: Fraction | None
) -> None:
    assert tau_b_chance(numbers(*one), numbers(*other)) == expected


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_the_chance_is_that_of_every_order_gone_through(count: int) -> None:
    random = Random(count)
    for _ in range(10):
        one, other = (numbers(*(random.randint(1, 4) for _ in range(count))) for _ in range(2))
        found = tau_b(one, other)
        if found is None:
            assert tau_b_chance(one, other) is None
            continue
        every = [tau_b(one, order) or 0 for order in permutations(other)]
        assert tau_b_chance(one, other) == Fraction(sum(tau >= found - 1e-9 for tau in every), len(every))


def test_nine_filesystems_take_no_time() -> None:
    """362,880 orders; scipy has the same for rankings without ties."""
    from scipy.stats import kendalltau

    one, other = list(range(9)), [at * 4 % 9 for at in range(9)]
    expected = kendalltau(one, other, method="exact", alternative="greater").pvalue
    assert float(tau_b_chance(numbers(*one), numbers(*other)) or 0) == pytest.approx(expected)
