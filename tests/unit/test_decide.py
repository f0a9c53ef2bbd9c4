"""The judge and the ranking, by simulation with known truth: power does not fall with seeds, errors stay below 5 %."""

from itertools import pairwise

import pytest

from bench.decide import SHAPES, TIED, seconds_for, share_named

TIMES = 120
NOISE = 2 * 100 * (0.05 * 0.95 / TIMES) ** 0.5
"""Two standard deviations of a share of 5 % of so many, in per cent."""
EQUAL_SPREADS = (
    "normal",
    "ties: whole standard deviations",
    "skewed: lognormal",
    "half of it common to a corpus",
)


@pytest.mark.parametrize(("corpora", "lead"), [(1, 2.0), (2, 2.0), (3, 3.0)])
def test_power_does_not_fall_with_the_seeds(corpora: int, lead: float) -> None:
    sizes = [(corpora, runs) for runs in (3, 5, 10, 15)]
    found = [share_named(SHAPES["normal"], (lead,), size, TIMES, wrong=False) for size in sizes]
    assert found[-1] >= 95
    assert all(more >= less - 4 for less, more in pairwise(found)), found


@pytest.mark.parametrize("shape", EQUAL_SPREADS)
@pytest.mark.parametrize("leads", [(), (TIED, TIED)], ids=["all are tied", "two are tied at the top"])
def test_whoever_does_not_lead_is_named_in_one_of_twenty_cases_at_most(
    shape: str, leads: tuple[float, ...]
) -> None:
    assert share_named(SHAPES[shape], leads, (2, 5), TIMES, wrong=True) <= 5 + NOISE


def test_of_five_by_two_a_lead_of_two_standard_deviations_is_found() -> None:
    assert share_named(SHAPES["normal"], (2.0,), (2, 5), TIMES, wrong=False) >= 75


def test_ten_thousand_samples_are_judged_in_two_seconds() -> None:
    assert seconds_for(10_000) < 2
