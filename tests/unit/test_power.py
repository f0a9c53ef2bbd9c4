"""The difference that so many seeds find, before they are run: held against made-up values."""

from itertools import pairwise
from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm

from agelab.stats import power
from agelab.stats.power import critical_value, smallest_difference

DRAWN = 4000


def found_share(shift: float, n: int, blocks: int) -> float:
    """The share of made-up comparisons with that shift in which U reaches the critical value, of either side."""
    drawn = np.random.default_rng(1)
    a = drawn.normal(size=(DRAWN, blocks, n, 1))
    b = drawn.normal(shift, size=(DRAWN, blocks, 1, n))
    u = (b > a).sum(axis=(1, 2, 3))
    needed = critical_value(n, blocks)
    assert needed is not None
    return float(np.mean((u >= needed) | (u <= blocks * n * n - needed)))


@pytest.mark.parametrize(
    ("n", "blocks"), [(4, 1), (5, 1), (10, 1), (3, 2), (5, 2), (10, 2), (2, 3), (1, 6), (1, 12)]
)
def test_the_smallest_difference_is_found_in_four_of_five_cases(n: int, blocks: int) -> None:
    shift = smallest_difference(n, blocks)
    assert shift is not None
    assert 0.77 < found_share(shift, n, blocks) < (0.95 if n * blocks < 5 else 0.85)
    assert found_share(0, n, blocks) < 0.06


@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (3, 1), (2, 2), (1, 5)])
def test_too_few_values_find_nothing_however_large_it_is(n: int, blocks: int) -> None:
    assert smallest_difference(n, blocks) is None
    assert power.power(50, n, blocks) == 0


def test_the_critical_value_of_one_block_is_mann_and_whitneys() -> None:
    for n in (4, 5, 8):
        needed = critical_value(n)
        assert needed is not None
        a = list(range(n))
        every = {}
        for above in range(n * n + 1):  # values of B so placed that U is ``above``
            whole, rest = divmod(above, n)
            b = [n + 1.0] * whole + ([rest - 0.5] if whole < n else []) + [-1.0] * (n - whole - 1)
            b = [value + at / 100 for at, value in enumerate(sorted(b))]
            every[above] = mannwhitneyu(b, a, method="exact").pvalue
        assert every[needed] <= 0.05 < every[needed - 1]


def test_more_seeds_and_more_corpora_find_smaller_differences() -> None:
    for blocks in (1, 2, 3):
        shifts = [smallest_difference(n, blocks) for n in (4, 5, 7, 10, 15, 20)]
        assert all(one and two and two < one for one, two in pairwise(shifts))
    assert smallest_difference(5, 2) < smallest_difference(5, 1)  # type: ignore[operator]


def test_many_values_find_what_a_t_test_of_three_over_pi_times_as_many_does() -> None:
    n = 200
    wanted = (norm.ppf(0.975) + norm.ppf(0.8)) * sqrt(2 / (n * 3 / pi))
    assert smallest_difference(n) == pytest.approx(wanted, rel=0.02)


def test_the_pages_table_is_what_is_computed() -> None:
    text = (Path(__file__).parents[2] / "docs" / "howto" / "plan.md").read_text()
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]
    seeds = [int(cell.split()[0]) for cell in head[1:]]
    for corpora, *cells in rows:
        known = [smallest_difference(n, int(corpora)) for n in seeds]
        assert cells == ["none" if one is None else f"{one:.2f}" for one in known]
