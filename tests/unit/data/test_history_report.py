"""How well files fit a distribution: figures that can be worked out by hand."""

import math

import pytest

from agelab.data.history.report import fit_distribution


def test_distance_chi_squared_and_effect() -> None:
    found = fit_distribution((1, 2, 4), (0.5, 0.25, 0.25), {0: 60, 1: 20, 2: 20})
    # chi2 = 10^2/50 + 5^2/25 + 5^2/25 = 4, of two degrees of freedom: p = exp(-4/2)
    assert found.distance == pytest.approx(0.1)
    assert found.p == pytest.approx(math.exp(-2), rel=1e-5) and found.effect == pytest.approx(0.2)
    assert found.produced == (0.6, 0.2, 0.2)


def test_p_falls_with_the_number_of_files_and_the_effect_does_not() -> None:
    few, many = (fit_distribution((1, 2), (0.5, 0.5), {0: 51 * n, 1: 49 * n}) for n in (1, 1000))
    assert few.p and many.p is not None and few.p > 0.5 and many.p < 1e-6
    assert few.effect == many.effect == 0.02 and few.distance == many.distance


def test_classes_of_few_files_are_joined_with_their_neighbours() -> None:
    # Expected 1, 9 | 40 | 49, and 1 with them.
    found = fit_distribution((1, 2, 3, 4, 5), (0.01, 0.09, 0.4, 0.49, 0.01), {1: 10, 2: 40, 3: 48, 4: 2})
    assert found.p == pytest.approx(1) and found.effect == 0


@pytest.mark.parametrize("counts", [{}, {0: 4, 1: 4}])
def test_too_few_files_have_no_p(counts: dict[int, int]) -> None:
    found = fit_distribution((1, 2), (0.5, 0.5), counts)
    assert found.p is None and found.effect is None
