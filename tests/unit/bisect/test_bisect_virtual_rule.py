"""When a step is called good or bad: by cases, by exact counts of all orders, and by simulation with known truth."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from statistics import median

import pytest

from agelab.base.errors import InputError
from agelab.bisect.measurements import Decision
from agelab.bisect.rules import (
    ALPHA,
    EndReferences,
    EndsOrder,
    Round,
    compare_ends,
    decide_virtual,
    decide_wall,
    fewest_rounds,
    looks,
)
from agelab.stats.series import exact
from validation import bisect_rules as bench


def numbers(*values: int | float) -> list[Fraction]:
    return [exact(value) for value in values]


GOOD, BAD = numbers(10, 11, 12, 13, 14), numbers(30, 31, 32, 33, 34)
ENDS = EndReferences(GOOD, BAD)
"""Medians 12 and 32, floor 4, threshold 22."""


def mirrored(values: Sequence[Fraction]) -> list[Fraction]:
    return [-value for value in values]


@pytest.mark.parametrize(
    ("values", "decision"),
    [
        ((), Decision.MORE),
        ((12,), Decision.GOOD),  # one that is like good, and farther from 22 than 8
        ((32,), Decision.BAD),
        ((13.9,), Decision.GOOD),
        ((14,), Decision.MORE),
        ((7,), Decision.GOOD),
        ((6.9,), Decision.MORE),  # far away, but not like good: its spread is not known
        ((22,), Decision.MORE),
        ((14, 20), Decision.GOOD),  # two: 17 is half the way from 12 to 22, and farther from it than 4
        ((14, 20.1), Decision.MORE),
        ((17.1, 20), Decision.MORE),
        ((17.1, 20, 21.9), Decision.GOOD),  # three: the median of five is on that side
        ((17.1, 23), Decision.MORE),
        ((17.1, 23, 20), Decision.MORE),
        ((17.1, 23, 20, 21), Decision.MORE),
        ((17.1, 23, 20, 21, 21), Decision.GOOD),  # 4 : 1
        ((17.1, 23, 20, 24), Decision.UNDECIDED),  # 3 : 2 at best: no need of a fifth
        ((17.1, 23, 20, 22), Decision.UNDECIDED),
        ((12, 32, 12, 32), Decision.UNDECIDED),
        ((80, 81, 82), Decision.BAD),
    ],
)
def test_a_step_is_told_by_few_seeds_where_they_are_plain(values: tuple[float, ...], decision: Decision) -> None:
    here = numbers(*values)
    assert decide_virtual(ENDS, here).decision is decision
    assert decide_virtual(EndReferences(mirrored(GOOD), mirrored(BAD)), mirrored(here)).decision is decision


def test_a_verdict_of_a_lead_is_the_median_of_five_whatever_the_others_are() -> None:
    """Every way of five values between and beyond, none of which is plain by itself."""
    for five in product(numbers(5, 18, 21, 23, 40), repeat=5):
        for seen in range(1, 6):
            decision = decide_virtual(ENDS, five[:seen]).decision
            if decision is not Decision.MORE:
                break
        assert decision is not Decision.MORE
        if decision is not Decision.UNDECIDED and seen > 2:  # two may be plain, of 5 and 18 say
            assert ENDS.side(Fraction(median(five))) is decision


def test_seeds_that_spread_no_more_than_the_ends_never_belie_an_early_verdict() -> None:
    """All five values within the floor of 4, anywhere: what the first or two of them say, the median of five says."""
    early = 0
    for low in range(0, 45, 3):
        for five in product(numbers(low, low + 2, low + 4), repeat=5):
            for seen in (1, 2):
                decision = decide_virtual(ENDS, five[:seen]).decision
                if decision in bench.TRUTHS:
                    early += 1
                    assert ENDS.side(Fraction(median(five))) is decision
    assert early


def test_what_is_like_neither_end_is_judged_and_noted() -> None:
    assert decide_virtual(ENDS, numbers(20, 20, 20)).note == "neither good nor bad: 40 % of the way from good to bad"
    assert decide_virtual(ENDS, numbers(39, 39, 39)).note == "neither good nor bad: beyond bad by 5"
    assert decide_virtual(ENDS, numbers(5, 5, 5)).note == "neither good nor bad: beyond good by 5"
    assert not decide_virtual(ENDS, numbers(38, 38, 38)).note
    assert not decide_virtual(ENDS, numbers(18, 18, 18)).note


def test_the_reason_has_the_numbers() -> None:
    assert decide_virtual(ENDS, numbers(12)).reason == "12 (1 seed)"
    assert decide_virtual(ENDS, numbers(12, 32, 12, 32)).reason == (
        "22 (median of 4 seeds), 2 on good's side, 2 on bad's; a lead of 3 is needed"
    )


def test_where_seeds_shake_nothing_one_value_is_enough() -> None:
    still = EndReferences(numbers(*5 * [100]), numbers(*5 * [101]))
    assert decide_virtual(still, numbers(100)).decision is Decision.GOOD
    assert decide_virtual(still, numbers(101)).decision is Decision.BAD
    assert decide_virtual(ENDS, numbers(21, 23, 21)).decision is Decision.MORE
    assert decide_virtual(ENDS, numbers(21, 23, 21, 23, 23, 23, 23)).decision is Decision.BAD


@pytest.mark.parametrize(
    ("good", "bad", "threshold", "words"),
    [
        ((1, 2, 3, 4), (30, 31, 32, 33, 34), None,
         "good and bad are not known apart: 4 seeds, five are needed"),
        ((1, 2, 3, 4, 5), (3, 3, 3, 3, 3), None, "good and bad are equal: good 3, bad 3"),
        ((1, 2, 3, 4, 5), (5, 6, 7, 8, 9), None, "less than run seeds do: good 3, bad 7; floor 4"),
        ((1, 2, 3, 4, 5), (7, 8, 9, 9, 9), 9.5, "threshold 9.5 is not between the two ends: good 3, bad 9"),
        ((7, 8, 9, 9, 9), (1, 2, 3, 4, 5), 9, "threshold 9 is not between the two ends: good 9, bad 3"),
        ((1, 2, 3, 4, 5), (7, 8, 9, 9, 9), 3.5,
         "good itself would get no verdict: 3 of its 5 values are on its side"),
        ((1, 2, 3, 4, 5), (7, 8, 9, 9, 9), 8.5, "bad itself would get no verdict: 3 of its 5 values"),
    ],
)  # fmt: skip
def test_ends_that_tell_nothing_are_refused(
    good: tuple[float, ...], bad: tuple[float, ...], threshold: float | None, words: str
) -> None:
    with pytest.raises(InputError) as error:
        EndReferences(numbers(*good), numbers(*bad), None if threshold is None else exact(threshold))
    assert words in str(error.value)


def test_the_users_threshold_is_taken() -> None:
    early = EndReferences(GOOD, BAD, Fraction(16))
    assert decide_virtual(early, numbers(18, 18, 18)).decision is Decision.BAD
    assert decide_virtual(ENDS, numbers(18, 18, 18)).decision is Decision.GOOD


def ever(decided: Callable[[int, int], bool], rounds: int) -> Fraction:
    """The exact chance that a fair coin is called unfair at any of so many looks."""
    open_, said = {0: 1}, Fraction(0)
    for n in range(1, rounds + 1):
        after: dict[int, int] = {}
        for wins, ways in open_.items():
            for more in (wins, wins + 1):
                after[more] = after.get(more, 0) + ways
        said += Fraction(sum(ways for wins, ways in after.items() if decided(wins, n - wins)), 2**n)
        open_ = {wins: ways for wins, ways in after.items() if not decided(wins, n - wins)}
    return said


def test_however_often_one_looks_the_error_is_no_more_than_alpha() -> None:
    """The same count of all orders finds that looking again and again at a test of fixed length is far over it."""
    seen = looks(60)
    assert (seen[0], seen[-1], len(seen)) == (fewest_rounds(), 60, 6)
    least = {n: smallest_wins(n) for n in seen}
    ours = ever(lambda wins, losses: wins >= least.get(wins + losses, 100), 60)
    assert ALPHA / 8 < ours <= ALPHA
    # the one-sided normal test of 1 %, looked at after every round
    naive = ever(lambda wins, losses: wins - losses > 2.33 * (wins + losses) ** 0.5, 150)
    assert naive > 3 * ALPHA


def smallest_wins(count: int) -> int:
    """In how many of so many rounds the candidate must be above good to be told from it, half of them below bad."""

    def decision(wins: int) -> Decision:
        made = [Round(*numbers(10, 20 + 2 * (n % 2), 21 if n < wins else 9)) for n in range(count)]
        return decide_wall(made, EndsOrder.HIGHER, 60).decision

    return next(wins for wins in range(count // 2, count + 1) if decision(wins) is Decision.BAD)


def rounds(candidate: float, count: int) -> list[Round]:
    return [Round(*numbers(10 + drift, 20 + drift, candidate + drift)) for drift in range(count)]


def test_rounds_are_added_until_the_candidate_is_told() -> None:
    """Half of the rounds put a candidate like bad above bad, half below: nothing speaks against bad."""

    def like_bad(count: int) -> list[Round]:
        return [Round(*numbers(10, 20, 19 + 2 * (n % 2))) for n in range(count)]

    assert fewest_rounds() == 11
    assert decide_wall(like_bad(10), EndsOrder.HIGHER, 60).decision is Decision.MORE
    judged = decide_wall(like_bad(11), EndsOrder.HIGHER, 60)
    assert (judged.decision, judged.note) == (Decision.BAD, "")
    assert judged.reason == "worse than good in 11 of 11 rounds (p 0.00098), better than bad in 6 (p 1)"
    turned = [Round(one.bad, one.good, one.candidate) for one in like_bad(11)]
    assert decide_wall(turned, EndsOrder.LOWER, 60).decision is Decision.GOOD
    ended = decide_wall(like_bad(8), EndsOrder.HIGHER, 8)
    assert ended.decision is Decision.UNDECIDED
    assert "the budget of 8 rounds has ended" in ended.reason
    assert decide_wall(like_bad(11), EndsOrder.HIGHER, 60, alpha=Fraction(1, 1000)).decision is Decision.MORE
    with pytest.raises(ValueError, match="order is not known"):
        decide_wall(like_bad(11), EndsOrder.MORE, 60)


@pytest.mark.parametrize(
    ("candidate", "decision", "note"),
    [
        (14, Decision.GOOD, "neither good nor bad: between them"),
        (16, Decision.BAD, "neither good nor bad: between them"),
        (15, Decision.UNDECIDED, "neither good nor bad: between them"),
        (21, Decision.BAD, "worse than bad"),
        (9, Decision.GOOD, "better than good"),
        (10, Decision.GOOD, ""),  # a tie with good is no bet
    ],
)
def test_a_step_like_neither_end_is_noted_and_the_midpoint_decides(
    candidate: float, decision: Decision, note: str
) -> None:
    judged = decide_wall(rounds(candidate, 12), EndsOrder.HIGHER, 12)
    assert (judged.decision, judged.note) == (decision, note)


def test_ends_are_told_apart_in_either_order_or_not_at_all() -> None:
    pairs = [(Fraction(1), Fraction(2))] * 11
    assert compare_ends(pairs[:10], 60)[0] is EndsOrder.MORE
    assert compare_ends(pairs, 60)[0] is EndsOrder.HIGHER
    assert compare_ends([(bad, good) for good, bad in pairs], 60)[0] is EndsOrder.LOWER
    order, reason = compare_ends([(Fraction(1), Fraction(1))] * 20, 20)
    assert order is EndsOrder.UNDECIDED and reason.startswith("bad is higher in 0 of 20 rounds, lower in 0")


@pytest.mark.parametrize(("shape", "drift"), [("lognormal", 0.0), ("normal", 2.0)])
def test_the_realised_error_in_the_wall_clock_is_within_its_bound(shape: str, drift: float) -> None:
    """Ends that are close: most steps stay undecided, few are wrong. A rule that promises less is found out."""
    random = Random(2)

    def steps(at: float) -> Callable[[], Round]:
        return bench.rounds_drawn(bench.SHAPES[shape], 0.5, at, drift, random)

    ours = bench.wall_tally(steps, 120)
    assert ours.wrong <= 4  # 1.2 at most on average: more than 4 in 1 % of such tests
    assert ours.undecided < 120
    assert bench.wall_tally(steps, 120, alpha=Fraction(1, 4)).wrong > 4


def test_the_realised_error_in_the_virtual_clock_is_that_of_the_table() -> None:
    """Recorded samples whose ends differ by 1.5 floors or more, and drawn ones. A single seed alone is found out."""
    series = bench.recorded()["virtual"]
    few = {name: series[name] for name in ("copy 12 elapsed", "aged/read 1 elapsed", "aged/map 1 layout_score")}
    tallies = dict(bench.virtual_recorded(few, Random(1), 1))
    for name in ("1.5 to 3", "3 and more"):
        assert tallies[name].taken and tallies[name].wrong <= len(tallies[name].taken) / 100
    drawn = bench.virtual_drawn(bench.SHAPES["normal"], 3.5, 0, Random(1), 1000)
    assert drawn.wrong <= len(drawn.taken) / 100
    random, single = Random(1), 0
    for _ in range(len(drawn.taken)):
        single += random.gauss(0, 1) > 3.5 / 2
    assert single > len(drawn.taken) / 100
