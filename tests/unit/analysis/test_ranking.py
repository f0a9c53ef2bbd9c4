"""Who is first: distinguishable from each of the others, and in the order in which their medians stand."""

from collections.abc import Sequence
from typing import cast

from agelab.analysis.cells import RunResult, SeedGroup
from agelab.analysis.judge import Ranked, rank_by_median
from tests.build.judged_series import Values, of

FIVE = (1.0, 1.01, 1.02, 1.03, 1.04)


def ranked(*sides: Sequence[Values], highest: bool = True) -> Ranked:
    """Rank sides, each with its values corpus by corpus; they are named a, b, ..."""
    groups = [SeedGroup(name, cast(RunResult, None), ()) for name in "abcdefghijklmn"[: len(sides)]]
    return rank_by_median([*zip(groups, (of(*one) for one in sides), strict=True)], highest=highest)


def times(by: float) -> Values:
    return [round(by * value, 6) for value in FIVE]


def test_the_first_is_told_from_each_of_thirteen_others_without_a_correction() -> None:
    """Two of 252 orders, thirteen times: corrected none would be told by five seeds."""
    order = ranked([times(2)], *([FIVE] for _ in range(13)))
    assert order.clear and order.first[0].name == "a" and order.why_tied == []
    assert [round(one.test.p * 252) for one in order.compared if one.test] == [2] * 13


def test_one_that_is_not_told_is_enough_to_name_nobody() -> None:
    order = ranked([[2, 2.1, 2.2, 2.3, 2.4]], [[1.95, 2.05, 2.15, 2.25, 2.35]], [FIVE])
    assert not order.clear and [one.name for one, _ in order.tied] == ["b"]
    [why] = order.why_tied
    assert why.startswith("b: not known: no difference found (p 0.")


def test_one_that_is_the_same_is_not_told_and_says_so() -> None:
    order = ranked([[100, 100.1, 100.2, 100.3, 100.4]], [[100.1, 100.2, 100.3, 100.35, 100.25]])
    assert not order.clear and order.why_tied == ["a: the same"]


def test_a_reason_that_several_share_is_said_once() -> None:
    order = ranked([[3.0]], [[2.0]], [[1.0]])
    few = "1 seed cannot exclude chance, four of one corpus can, or three of each of two"
    assert order.why_tied == [f"b, c: not known: {few}"]


def test_the_lowest_is_first_where_lower_is_asked_for() -> None:
    order = ranked([times(2)], [FIVE], [times(3)], highest=False)
    assert order.clear and [one.name for one, _ in order.order] == ["b", "a", "c"]


def test_a_first_that_leads_on_one_corpus_alone_is_not_named() -> None:
    order = ranked([times(2), FIVE], [times(1.2), times(1.2)])
    assert not order.clear
    assert order.why_tied == [
        "b: not known: it depends on the files: slower on corpus 1 (1.667), faster on corpus 2 (0.833)"
    ]


def test_a_median_of_other_corpora_makes_nobody_first() -> None:
    """a has the higher median, for its corpora are others; on the one that both have it is lower."""
    order = ranked([times(1), times(9), times(9)], [times(2)])
    assert order.first[0].name == "a" and order.lead.differs
    assert (not order.clear and order.why_tied == ["b: faster"]) or order.why_tied == ["b: lower"]


def test_those_with_too_few_seeds_stand_apart() -> None:
    order, few = ranked([times(2)], [FIVE], [times(9)[:3]]).split_by_seeds()
    assert [one.name for one, _ in few] == ["c"] and order.clear
    whole = ranked([times(2)[:3]], [FIVE[:3]])
    assert whole.split_by_seeds() == (whole, []) and not whole.enough and not whole.clear
    assert whole.why_too_few.startswith("3 seeds cannot exclude chance, four of one corpus can")
