"""Samples of several seeds as series, and their digits."""

from collections.abc import Iterator
from fractions import Fraction

import pytest

from agelab.results.measure import MEAN
from agelab.results.result import Sample
from agelab.scenario.seeds import Seeds
from agelab.stats.formatting import (
    decimals_for_spread,
    format_decimal,
    format_median,
    format_ratio,
    json_number,
    unit_scale,
)
from agelab.stats.series import Block, by_step, pair_series, series, summary
from agelab.stats.verdict import left_out


def cells(*samples: list[Sample]) -> Iterator[tuple[Seeds, list[Sample]]]:
    """Give each list of samples a run seed of its own, from 1 on."""
    return ((Seeds(1, run), found) for run, found in enumerate(samples, start=1))


def sample(value: float | None, step: str = "copy", repetition: int = 1, metric: str = "elapsed") -> Sample:
    why = None if value is not None else "no way to know"
    return Sample(step=step, metric=metric, value=value, unit="s", repetition=repetition, not_measured=why)


def test_each_place_is_one_series_over_the_seeds() -> None:
    found = series(cells([sample(1.5), sample(2, "read")], [sample(2, "read"), sample(0.5)]))
    assert list(found) == [("copy", 1, "elapsed"), ("read", 1, "elapsed")]
    copy = found["copy", 1, "elapsed"]
    assert copy.values == ((Seeds(1, 1), Fraction(3, 2)), (Seeds(1, 2), Fraction(1, 2)))
    assert (copy.unit, copy.missing) == ("s", ())
    assert copy.summary and copy.summary.median == 1


def test_what_was_not_measured_is_no_value_and_keeps_its_reason() -> None:
    found = series(cells([sample(None)], [sample(3)], []))
    copy = found["copy", 1, "elapsed"]
    assert copy.values == ((Seeds(1, 2), Fraction(3)),)
    assert copy.missing == ((Seeds(1, 1), "no way to know"), (Seeds(1, 3), "not among this seed's samples"))
    assert series(cells([sample(None)]))["copy", 1, "elapsed"].summary is None


def test_what_one_side_never_measured_is_a_row_without_values() -> None:
    found = pair_series(series(cells([sample(1)])), series(cells([sample(1), sample(2, "read")])))
    assert [row.left.place for row in found] == [("copy", 1, "elapsed"), ("read", 1, "elapsed")]
    assert [len(row.blocks) for row in found] == [1, 0]
    assert found[1].left.unit == "s" and found[1].left.values == ()


def test_blocks_are_the_corpora_that_both_sides_have() -> None:
    here = [(Seeds(2, 1), [sample(1)]), (Seeds(1, 1), [sample(2)]), (Seeds(1, 2), [sample(3)])]
    there = [(Seeds(1, 7), [sample(4)]), (Seeds(3, 1), [sample(5)])]
    [row] = pair_series(series(here), series(there))
    assert row.blocks == (Block(1, (Fraction(2), Fraction(3)), (Fraction(4),)),)
    assert left_out(row) == [2, 3]


def test_a_repeated_step_is_its_mean_and_a_cell_that_lacks_a_repetition_has_none() -> None:
    rows: list[list[float | None]] = [[1.0, 2.0, 6.0], [2.0, 3.0, 7.0], [2.0, None, 7.0]]
    found = by_step(series(cells(*([sample(value, repetition=at) for at, value in enumerate(row, 1)] for row in rows))))
    copy = found["copy", MEAN, "elapsed"]
    assert copy.values == ((Seeds(1, 1), Fraction(3)), (Seeds(1, 2), Fraction(4)))
    assert copy.missing == ((Seeds(1, 3), "no way to know"),)


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        ("32.238019", "0.314159", "32.24"), ("32.238019", "4.2", "32.2"), ("32.238019", "42", "32"),
        ("32.238019", "0.000001", "32.238019"), ("32.238019", "0", "32.238019"),
        ("1073741824", "0", "1073741824"), ("1073741824", "4096", "1073741824"), ("1.5", "0", "1.500000"),
        ("754", "11", "754"), ("754.5", "11", "754"), ("754.5", "1", "754.5"), ("0", "0", "0"),
        ("-0.001", "0.1", "0.00"),
    ],
)  # fmt: skip
def test_a_number_has_the_digits_that_its_spread_leaves(value: str, spread: str, text: str) -> None:
    assert format_decimal(Fraction(value), decimals_for_spread(6, Fraction(spread), Fraction(value))) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["1.23456"], "1.2346"), (["0.0000197402"], "0.000020"), (["0.00012"], "0.00012"),
        (["0.00012", "0.00034"], "0.00023"), (["0.000000000001"], "0.000000000"), (["0"], "0"),
    ],
)  # fmt: skip
def test_a_median_of_few_decimals_shows_two_figures_all_the_same(values: list[str], text: str) -> None:
    assert format_median(summary([Fraction(one) for one in values]), "s", most=4) == text


def test_numbers_for_programs_are_whole_where_they_can_be() -> None:
    assert repr(json_number(Fraction(2**60 + 1))) == str(2**60 + 1)
    assert json_number(Fraction("1.361706")) == 1.361706


def test_bytes_are_shown_in_megabytes_and_seconds_as_they_are() -> None:
    assert (unit_scale("B").divisor, unit_scale("B").name, unit_scale("B").decimals) == (10**6, "MB", 3)
    assert (unit_scale("s").divisor, unit_scale("s").name, unit_scale("s").decimals) == (1, "s", 6)


@pytest.mark.parametrize(
    ("value", "ends", "apart", "texts"),
    [
        ("1.833", ("1.54", "2.2"), True, ["1.83", "1.54", "2.20"]),
        ("1.0443", ("1.0442", "1.0444"), True, ["1.0443", "1.0442", "1.0444"]),
        ("0.00792", ("0.00792", "0.00792"), True, ["0.0079", "0.0079", "0.0079"]),  # no spread: still a number
        ("2.5", ("2.5", "2.5"), True, ["2.5000", "2.5000", "2.5000"]),
        ("3", ("3", "3"), True, ["3.00", "3.00", "3.00"]),
        ("1", ("1", "1"), False, ["1.00", "1.00", "1.00"]),
        ("1.00001", ("1", "1.1"), True, ["1.00001", "1.00000", "1.10000"]),
        ("1.00001", ("1", "1.1"), False, ["1.00", "1.00", "1.10"]),
        ("17.04", ("16.8", "17.8"), True, ["17.0", "16.8", "17.8"]),
        ("1234.5", ("1200", "1300"), True, ["1234", "1200", "1300"]),
        ("0.0000004", (), True, ["0.00000040"]),
        ("123.4", (), False, ["123"]),
        ("0", (), False, ["0.000"]),
    ],
)
def test_a_ratio_has_the_digits_that_its_interval_leaves_and_tells_itself_from_one(
    value: str, ends: tuple[str, ...], apart: bool, texts: list[str]
) -> None:
    assert format_ratio(Fraction(value), [Fraction(end) for end in ends], apart) == texts
