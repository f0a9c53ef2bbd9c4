"""The verdict: test, margin, floor of the host, and what is not known with its reason."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import exp, log
from random import Random

import pytest
import scipy.stats

from agelab.analysis.judge import judge
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import Seeds
from agelab.stats.series import SeriesPair, exact
from agelab.stats.spread import grubbs_limit, outliers, spread_shares
from agelab.stats.verdict import ComparedSeries, DifferenceVerdict
from tests.build.judged_series import Values, judged, judged_over, of, row

ONE = (1.0, 1.1, 1.2, 1.3, 1.4)
TWO = (2.0, 2.1, 2.2, 2.3, 2.4)
NEAR = (1.0, 1.001, 1.002, 1.003, 1.004)


@pytest.mark.parametrize(
    ("metric", "word"),
    [
        ("elapsed", "slower"),
        ("throughput", "faster"),
        ("layout_score", "higher"),
        ("slowdown", "higher"),
        ("x", "higher"),
    ],
)
def test_the_word_is_the_metrics(metric: str, word: str) -> None:
    opposite = {"slower": "faster", "faster": "slower", "higher": "lower"}[word]
    [up] = judged(row(ONE, TWO, metric))
    [down] = judged(row(TWO, ONE, metric))
    assert (up.verdict, up.word) == (DifferenceVerdict.HIGHER, word)
    assert (down.verdict, down.word) == (DifferenceVerdict.LOWER, opposite)
    assert up.differs and up.reason is None and up.more_seeds is None
    better = {
        "elapsed": "left", "throughput": "right", "layout_score": "right", "slowdown": "left", "x": None,
    }  # fmt: skip
    assert up.better == better[metric] and (down.better == up.better) is (metric == "x")
    assert up.ratio == Fraction(11, 6) and up.interval and up.interval.low <= up.ratio <= up.interval.high


@pytest.mark.parametrize(
    ("other", "verdict", "reason"),
    [
        (ONE, DifferenceVerdict.EQUAL, None),
        ((9.0,) * 2, DifferenceVerdict.UNKNOWN,
         "2 seeds cannot exclude chance, four of one corpus can, or three of each of two"),
        ((9.0,), DifferenceVerdict.UNKNOWN,
         "1 seed cannot exclude chance, four of one corpus can, or three of each of two"),
        ((), DifferenceVerdict.NOT_MEASURED, "B: no sample"),
    ],
)  # fmt: skip
def test_what_is_no_difference_says_why(other: Values, verdict: DifferenceVerdict, reason: str | None) -> None:
    [found] = judged(row(ONE, other))
    assert (found.verdict, found.word, found.differs, found.reason) == (verdict, verdict.value, False, reason)
    assert found.better is None


@pytest.mark.parametrize("times", [1, 10**6])
def test_one_value_everywhere_is_equal_however_few(times: int) -> None:
    assert judged(row((7 * times,), (7 * times,) * 5))[0].verdict is DifferenceVerdict.EQUAL


@pytest.mark.parametrize(("a", "b"), [(ONE, ONE), (NEAR, NEAR), (ONE, TWO)])
def test_nothing_is_said_of_an_option_that_was_not_honoured(a: Values, b: Values) -> None:
    without = replace(of(b), caveat="discard: no discard reaches it")
    [found] = judged(SeriesPair(of(a), without))
    assert found.verdict is DifferenceVerdict.UNKNOWN
    assert found.word_and_reason == "not known: discard: no discard reaches it"
    assert found.more_seeds is None and not found.too_few and not found.holds
    [both] = judged(SeriesPair(replace(of(a), caveat=without.caveat), without))
    assert both.verdict is judged(SeriesPair(of(a), of(b)))[0].verdict


def test_the_same_is_said_where_the_whole_interval_lies_within_the_margin_alone() -> None:
    """Values that mix: close ones are the same within 5 %, wide ones are not known, with the seeds that they need."""
    [close] = judged(row(NEAR, [v + 0.0005 for v in NEAR]))
    assert close.verdict is DifferenceVerdict.SAME and close.alike and close.reason is None
    [wide] = judged(row(ONE, [v + 0.05 for v in ONE]))
    assert wide.verdict is DifferenceVerdict.UNKNOWN
    assert wide.more_seeds and f"needs about {wide.more_seeds} more seeds on each side" in (wide.reason or "")
    [narrow] = judge([row(NEAR, [v + 0.0005 for v in NEAR])], lambda _: None, margin=Fraction(1, 1000))
    assert narrow.verdict is DifferenceVerdict.UNKNOWN


def test_the_margin_is_the_same_whichever_side_is_called_a() -> None:
    random = Random(7)
    said = set()
    for _ in range(200):
        a, b = ([round(random.gauss(10, 0.25), 3) for _ in range(7)] for _ in "AB")
        [one], [other] = judged(row(a, b)), judged(row(b, a))
        assert (one.verdict is DifferenceVerdict.SAME) == (other.verdict is DifferenceVerdict.SAME)
        said.add(one.verdict)
    assert {DifferenceVerdict.SAME, DifferenceVerdict.UNKNOWN} <= said


def test_a_difference_goes_before_the_margin() -> None:
    [found] = judged(row(NEAR, [v + 0.005 for v in NEAR]))
    assert found.verdict is DifferenceVerdict.HIGHER and found.within_margin


def test_differences_of_what_is_not_above_zero_are_the_same_within_the_margin_of_the_smaller_median() -> None:
    [found] = judged(
        row((0, 100, 100.1, 99.8, 101, 99, 100.7, 100.2), (100, 100.5, 99.7, 99.2, 100.4, 101.2, 100.3, 99.6))
    )
    assert found.ratio is None and found.shift and not found.shift.is_ratio
    assert found.verdict is DifferenceVerdict.SAME
    [found] = judged(row((0, 0, 0, 0, 1), (0, 0, 1, 1, 1)))
    assert found.verdict is DifferenceVerdict.UNKNOWN and not found.within_margin


def test_equal_values_that_exclude_nothing_are_not_too_few_seeds() -> None:
    """Of twelve values nine are equal: no order of them has a p of 5 %."""
    [found] = judged(row((0, 9, 9, 9, 9, 10), (8, 9, 9, 9, 9, 9)))
    assert found.verdict is DifferenceVerdict.UNKNOWN and not found.too_few
    assert found.reason and found.reason.startswith("no difference found (p 1)")


def test_one_difference_among_many_comparisons_may_be_chance() -> None:
    """2/252 is below the level for six comparisons, and not for seven: seven rows of which one differs."""
    same = [row(ONE, [v + 0.001 for v in ONE]) for _ in range(5)]
    assert judged(row(ONE, TWO), *same)[0].word == "slower"
    [found, *_] = judged(row(ONE, TWO), *same, row(ONE, ONE))
    assert found.verdict is DifferenceVerdict.UNKNOWN
    assert found.reason and found.reason.startswith("no difference found (p 0.056 of 7 comparisons); needs about ")
    # Another metric is another family, and where nothing is to be corrected there is none.
    assert judged(row(ONE, TWO), *same, row(ONE, ONE, "seeks"))[0].word == "slower"
    rows = [row(ONE, TWO), *same, row(ONE, ONE)]
    assert judge(rows, lambda _: None, correct=False)[0].word == "slower"


def test_three_seeds_of_two_corpora_are_enough() -> None:
    found = judged_over([ONE[:3]] * 2, [TWO[:3]] * 2)
    assert found.word == "slower" and found.test and found.test.p == pytest.approx(2 / 400)


def by(*ratios: float) -> ComparedSeries:
    """Judge B on corpora on which it has so many times as much as A."""
    return judged_over([NEAR] * len(ratios), [[v * ratio for v in NEAR] for ratio in ratios])


def test_where_two_corpora_say_opposite_directions_it_depends_on_the_files() -> None:
    found = by(1.2, 0.97)
    assert found.verdict is DifferenceVerdict.UNKNOWN and not found.too_few and found.more_seeds is None
    assert found.reason == "it depends on the files: slower on corpus 1 (1.200), faster on corpus 2 (0.970)"


def test_a_direction_that_every_corpus_shows_is_named_however_much_they_differ_in_it() -> None:
    """Shifts that no one ratio fits, each far from 1: the surer they are, the less was known of them."""
    found = by(2.17, 1.9)
    assert found.word == "slower" and found.shift and found.shift.depends and found.on_each
    assert found.files == "on both sets of files: 2.170 and 1.900 times"
    assert found.test and found.test.delta == 1 and found.test.p < 0.001
    assert found.general is None and found.for_others is DifferenceVerdict.UNKNOWN


def test_of_corpora_of_which_one_shows_nothing_a_verdict_is_on_all_together() -> None:
    found = by(1.2, 1.3, 1.0001)
    assert found.word == "slower" and not found.on_each
    assert found.files == "on these 3 sets of files together: 1.200, 1.300 and 1.000 times"


def test_one_corpus_that_says_the_opposite_of_all_the_others_is_enough_to_depend_on() -> None:
    """Of six together the test finds a difference, and on average over files there is one: both are said."""
    found = by(1.5, 1.51, 1.49, 1.5, 1.52, 0.97)
    assert found.test and found.test.distinguishable and found.verdict is DifferenceVerdict.UNKNOWN
    assert found.reason and found.reason.startswith(
        "it depends on the files: slower on corpora 1,2,3,4,5 (1.500, 1.510, 1.490, 1.500, 1.520), faster on corpus 6"
    )
    assert found.for_others is DifferenceVerdict.HIGHER and not found.holds
    assert "; on average over such files slower (1." in found.reason


@pytest.mark.parametrize(
    ("ratios", "others"),
    [
        ((2.17, 1.9), DifferenceVerdict.UNKNOWN),
        ((2.17, 1.9, 1.1), DifferenceVerdict.UNKNOWN),
        ((2.17, 1.9, 2.0), DifferenceVerdict.HIGHER),
        ((0.5, 0.45, 0.48), DifferenceVerdict.LOWER),
        ((1.001, 1.0, 0.999), DifferenceVerdict.SAME),
    ],
)
def test_other_files_are_judged_from_three_corpora_on(ratios: tuple[float, ...], others: DifferenceVerdict) -> None:
    found = by(*ratios)
    assert found.for_others is others
    assert bool(found.others) is (others in (DifferenceVerdict.HIGHER, DifferenceVerdict.LOWER))


def test_the_t_interval_is_scipys() -> None:
    found = by(2.17, 1.9, 2.0, 1.7)
    assert found.shift and found.general
    logs = [log(one.value) for one in found.shift.corpora]
    t = scipy.stats.ttest_1samp(logs, 0)
    low, high = t.confidence_interval(0.95)
    assert found.general.p == pytest.approx(t.pvalue)
    ends = (float(found.general.interval.low), float(found.general.interval.high))
    assert ends == pytest.approx((exp(low), exp(high)))
    flat = by(2, 2, 2).general
    assert flat and flat.p == 0 and float(flat.interval.low) == pytest.approx(2)


def test_what_is_said_of_other_files_is_corrected_in_its_family() -> None:
    """A p of 4 % in three shifts: alone it is shown, among seven rows of which six show nothing it is not."""
    pairs = [
        SeriesPair(of(*[NEAR] * 3), of(*[[v * ratio for v in NEAR] for ratio in ratios]))
        for ratios in [(1.5, 1.25, 1.7), *[(1.3, 0.8, 1.0 + at / 50) for at in range(6)]]
    ]
    alone, first = judged(pairs[0])[0].general, judged(*pairs)[0].general
    assert alone and first and 0.02 < alone.p <= 0.05
    assert alone.shown and not first.shown and first.p == alone.p


def test_without_a_common_corpus_nothing_is_known() -> None:
    found = judged_over([(), ONE], [TWO])
    assert (found.verdict, found.reason) == (DifferenceVerdict.UNKNOWN, "no corpus is on both sides")
    assert found.difference == exact(1)


@pytest.mark.parametrize("corpora", [1, 2])
def test_of_families_without_a_difference_at_most_one_in_twenty_has_one(corpora: int) -> None:
    """Benjamini and Hochberg, theorem 1: where nothing differs, their rate is that of families with any verdict."""
    random = Random(3)
    wrong = 0
    for _ in range(400):
        rows = [
            SeriesPair(*(of(*([random.random() for _ in range(5)] for _ in range(corpora))) for _ in "AB"))
            for _ in range(4)
        ]
        wrong += any(one.differs for one in judged(*rows))
    assert wrong / 400 <= 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5


def test_the_same_is_said_of_sides_that_are_not_as_rarely_as_the_level_says() -> None:
    """Two sides exactly a margin apart: one of two tests at 2.5 % would have to fail."""
    random = Random(5)
    wrong = 0
    for _ in range(600):
        a = [round(random.gauss(100, 1), 4) for _ in range(8)]
        b = [round(random.gauss(105, 1), 4) for _ in range(8)]
        wrong += judged(row(a, b))[0].within_margin
    assert wrong / 600 <= 0.025 + 0.02


def test_no_more_than_the_host_does_by_chance_is_below_the_floor() -> None:
    """2.2 is 1.83 times 1.2: 45 % of the larger one."""
    for noise, verdict in ((46, DifferenceVerdict.BELOW), (45, DifferenceVerdict.HIGHER)):
        [found] = judge([row(ONE, TWO)], lambda _, noise=noise: Fraction(noise, 100))  # type: ignore[misc]
        assert found.verdict is verdict


def test_two_values_of_what_a_host_has_shown_are_below_its_floor_either_way_round() -> None:
    """Whichever is called A, and however much faster the host has become since: the floor is a share of the larger."""
    seen = [0.5, 0.8, 1, 1.1, 1.4]
    share = (exact(1.4) - exact(0.5)) / exact(1)
    for one, other in combinations(seen, 2):
        for times in (0.125, 1, 7):
            a, b = [one * times] * 5, [other * times] * 5
            for pair in (row(a, b), row(b, a)):
                [found] = judge([pair], lambda _: share)
                assert found.verdict is DifferenceVerdict.BELOW


def test_two_zeros_and_less_are_held_against_the_floor_as_differences() -> None:
    [found] = judge([row((0,) * 5, (1,) * 5)], lambda _: Fraction(1))
    assert found.verdict is DifferenceVerdict.BELOW
    [found] = judge([row((0,) * 5, (1,) * 5)], lambda _: Fraction(99, 100))
    assert found.verdict is DifferenceVerdict.HIGHER


def test_so_many_more_seeds_do_tell() -> None:
    """Drawn again with as many seeds as were promised, four of five are told; here more, for ties are none."""
    random = Random(8)

    def drawn(count: int, middle: float) -> list[float]:
        return [round(random.gauss(middle, 1), 4) for _ in range(count)]

    told, asked = 0, 0
    while asked < 60:
        # What is seen must be what is there, or the promise is about something else.
        [found] = judged(row(drawn(5, 20), drawn(5, 21)))
        if not found.test or abs(float(found.test.delta) - 0.52) > 0.05 or not found.more_seeds:
            continue
        asked += 1
        count = 5 + found.more_seeds
        told += judged(row(drawn(count, 20), drawn(count, 21)))[0].differs
    assert told / asked >= 0.65


def test_shares_of_the_spread_by_hand() -> None:
    """Values are sums of a corpus's part (0, 4) and a run seed's (0, 1, 2): nothing is left for both together."""
    values = tuple((Seeds(c, r), exact(-10 + 4 * c + r)) for c in (1, 2) for r in (1, 2, 3))
    shares = spread_shares(values)
    assert shares and shares.named == pytest.approx({"corpus_seed": 8 / 9, "run_seed": 1 / 9, "both": 0})
    within = spread_shares(tuple((Seeds(at.corpus, at.run + 10 * at.corpus), value) for at, value in values))
    assert within and within.run is None
    # One-way: mean squares 24 and 1, three values a corpus: (24 - 1) / 3 against 1.
    assert within.named == pytest.approx({"corpus_seed": 23 / 26, "run_seed_and_both": 3 / 26})


@pytest.mark.parametrize(
    "values",
    [
        [(1, 1, 1.0), (1, 2, 2.0)],  # one corpus
        [(1, 1, 1.0), (2, 2, 2.0)],  # paired: one value of each
        [(1, 1, 1.0), (1, 2, 1.0), (2, 1, 1.0), (2, 2, 1.0)],  # no spread
    ],
)
def test_what_the_design_does_not_tell_has_no_shares(values: list[tuple[int, int, float]]) -> None:
    assert spread_shares([(Seeds(c, r), exact(v)) for c, r, v in values]) is None


@pytest.mark.parametrize("mine", [(1.0, 0.0, 0.3), (0.3, 1.0, 0.0), (0.0, 0.3, 1.0)])
def test_shares_of_drawn_values_are_near_what_they_were_drawn_with(mine: tuple[float, float, float]) -> None:
    random = Random(9)
    corpora, runs = ([random.gauss(0, by) for _ in range(30)] for by in mine[:2])
    values = [
        (Seeds(c + 1, r + 1), exact(round(corpora[c] + runs[r] + random.gauss(0, mine[2]) - 50, 6)))
        for c in range(30)
        for r in range(30)
    ]
    shares = spread_shares(values)
    whole = sum(one**2 for one in mine)
    assert shares and [*shares.named.values()] == pytest.approx([one**2 / whole for one in mine], abs=0.15)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((1, 2, 3, 4, 5), []),
        ((10, 11, 12, 13, 100), [5]),
        ((12, 11, -90, 13, 10), [3]),
        ((7, 7, 7, 7, 8), [5]),
        ((7, 7, 7, 7, 7), []),
        ((1, 1.1, 1.2, 9, 9.1), []),  # two that lie together are a cluster
        ((1, 2, 3, 100), []),  # four say nothing
        ((1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 80, 9), [8, 9]),
    ],
)
def test_outliers_are_named_with_their_seed(values: tuple[float, ...], named: list[int]) -> None:
    found = outliers(of(values))
    assert [seeds.run for seeds, _ in found] == named
    assert all(value == exact(values[seeds.run - 1]) for seeds, value in found)


def test_the_limits_are_grubbs_own_table() -> None:
    """Two-sided, 5 %: the column of 2.5 % of his table I."""
    table = {5: 1.715, 6: 1.887, 7: 2.020, 8: 2.126, 9: 2.215, 10: 2.290, 20: 2.709}
    assert {n: grubbs_limit(n) for n in table} == pytest.approx(table, abs=0.001)


def test_of_series_of_normal_values_one_in_twenty_has_a_name() -> None:
    random = Random(5)
    named = sum(bool(outliers(of([round(random.gauss(9, 1), 6) for _ in range(5)]))) for _ in range(2000))
    assert 0.035 < named / 2000 < 0.065


def test_which_way_is_better_is_said_of_what_has_a_speed() -> None:
    assert {name for name, metric in METRICS.items() if metric.speed} == {
        "elapsed", "sync_elapsed", "throughput", "recovery_time",
    }  # fmt: skip
    assert all(metric.better for metric in METRICS.values() if metric.speed)
