"""Each kind of test: true, false, and what is not known; seeds; the quantifiers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from pydantic import TypeAdapter

from agelab.analysis.published.claims import AnyTest, Claim, Claims, Place, Uncounted
from agelab.analysis.published.outcome import ClaimComparison, ClaimOutcome, run_test
from agelab.analysis.published.values import no_value
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series, exact

CLAIMS = Claims.model_validate(
    {
        "study": "small",
        "about": "a small one",
        "tables": [{"id": "1", "about": "its table"}, {"id": "2", "about": "another"}],
        "uncounted": [{"kind": "circle", "steps": ["read"], "why": "the size"}],
        "claims": [{"id": "none", "says": "nothing", "untestable": "it is none"}],
    }
)
Values = Mapping[str, float | Sequence[float]]


@dataclass(frozen=True)
class Given:
    """Values by ``variant[@raid0][#2][ step]``; the step is copy where none is named."""

    values: Values
    resolution: Fraction = Fraction()
    lead: Fraction = Fraction()

    def why_uncounted(self, step: str, metric: str) -> Uncounted | None:
        return CLAIMS.why_uncounted(step, metric)

    def value(self, place: Place) -> Series:
        table, variant, layout, step, metric = place
        name = variant + ("@raid0" if layout == "raid0" else "") + ("#2" if table == "2" else "")
        found = self.values.get(name if step == "copy" else f"{name} {step}")
        if found is None:
            return no_value(step, metric, f"no {name}")
        numbers = found if isinstance(found, Sequence) else [found]
        values = tuple((Seeds(1, run), exact(number)) for run, number in enumerate(numbers, 1))
        return Series(step, 1, metric, "s", values, (), lead=self.lead)


def made(kind: str, **words: Any) -> AnyTest:
    adapter: TypeAdapter[AnyTest] = TypeAdapter(AnyTest)
    return adapter.validate_python({"kind": kind, "steps": ["copy"], **words})


def of(values: Values, kind: str, resolution: float = 0, **words: Any) -> ClaimOutcome:
    return run_test(made(kind, **words), CLAIMS, Given(values, exact(resolution)))


def only(values: Values, kind: str, resolution: float = 0, **words: Any) -> ClaimComparison:
    [found] = of(values, kind, resolution, **words).comparisons
    return found


RATIO: dict[str, Any] = {"of": ["xfs"], "to": ["ext3"]}


@pytest.mark.parametrize(
    ("values", "words", "holds"),
    [
        ({"xfs": 20, "ext3": 10}, {"at_least": 1.5, "at_most": 2}, True),
        ({"xfs": 20.1, "ext3": 10}, {"at_least": 1.5, "at_most": 2}, False),
        ({"xfs": 14.9, "ext3": 10}, {"at_least": 1.5}, False),
        ({"xfs": 1.45, "ext3": 1}, {"at_least": 1.45}, True),
        ({"xfs": 10, "ext3": 10}, {"at_least": 1}, True),
        ({"xfs": 10}, {"at_least": 1}, None),
        ({"xfs": 10, "ext3": 0}, {"at_least": 1}, None),
    ],
)
def test_a_ratio_lies_in_its_band(values: Values, words: dict[str, float], holds: bool | None) -> None:
    assert only(values, "ratio", **RATIO, **words).holds is holds


def test_a_ratio_of_two_steps_of_one_variant() -> None:
    found = only({"xfs": 3, "xfs list": 2}, "ratio", of=["xfs"], to=["xfs"], to_step="list", at_least=1.5)
    assert (found.where, found.figure, found.holds) == ("copy: xfs / xfs list", Fraction(3, 2), True)


def test_a_ratio_of_two_layouts_and_of_two_tables() -> None:
    values = {"xfs": 3, "xfs@raid0": 2, "xfs#2": 6}
    pairs = [["xfs@single", "xfs@raid0"], ["xfs#2", "xfs"]]
    found = of(values, "ratio", pairs=pairs, at_least=1.5)
    assert [one.figure for one in found.comparisons] == [Fraction(3, 2), Fraction(2)]
    assert found.holds is True
    assert of(values, "ratio", layouts=["raid0"], of=["xfs"], to=["xfs"], at_least=1).comparisons[0].where == (
        "copy, raid0: xfs / xfs"
    )


def five(middle: float, spread: float) -> list[float]:
    return [middle - spread / 2, middle, middle, middle, middle + spread / 2]


@pytest.mark.parametrize(
    ("values", "words", "holds", "note"),
    [
        ({"xfs": five(13, 2), "ext3": five(10, 2)}, {"at_least": 1.2}, True, ""),
        ({"xfs": five(11.5, 4), "ext3": five(10, 2)}, {"at_least": 1.1}, None, "no difference found"),
        ({"xfs": five(9.5, 4), "ext3": five(10, 2)}, {"at_least": 1}, None, "no difference found"),
        ({"xfs": five(11.5, 4), "ext3": five(10, 2)}, {"at_least": 0.9}, True, ""),  # with no difference, too
        ({"xfs": five(10.001, 0.02), "ext3": five(10, 0.02)}, {"at_least": 1}, True, "no difference"),
        ({"xfs": five(9.999, 0.02), "ext3": five(10, 0.02)}, {"at_least": 1}, True, "no difference"),
        ({"xfs": five(7, 2), "ext3": five(10, 2)}, {"at_least": 1}, False, ""),
        ({"xfs": five(13, 2)[:4], "ext3": five(10, 2)}, {"at_least": 1.2}, True, ""),
    ],
)
def test_a_difference_that_is_the_same_is_none_and_one_that_may_be_chance_is_not_known(
    values: Values, words: dict[str, float], holds: bool | None, note: str
) -> None:
    found = only(values, "ratio", **RATIO, **words)
    assert (found.holds, found.close) == (holds, holds is None)
    assert found.note.startswith(note) and bool(found.note) is bool(note)


@pytest.mark.parametrize(
    ("values", "resolution", "holds"),
    [
        ({"xfs": 105, "ext3": 100}, 0, True),
        ({"xfs": 100, "ext3": 105}, 0, True),
        ({"xfs": 106, "ext3": 100}, 0, False),
        ({"xfs": 7, "ext3": 6}, 0, False),
        ({"xfs": 7, "ext3": 6}, 1, True),
        ({"xfs": 8, "ext3": 6}, 1, False),
        ({"xfs": 0, "ext3": 6}, 0, False),
        ({"xfs": five(11, 4), "ext3": five(10, 2)}, 0, None),
        ({"xfs": five(10.1, 4), "ext3": five(10, 2)}, 0, None),  # medians are near, and the interval is not
        ({"xfs": five(10.1, 0.3), "ext3": five(10, 0.3)}, 0, True),
        ({"xfs": five(10.3, 0.02), "ext3": five(10, 0.02)}, 0, True),  # told apart, and the same within 5 %
        ({"xfs": five(13, 2), "ext3": five(10, 2)}, 0, False),
        ({"ext3": 6}, 1, None),
    ],
)
def test_no_difference(values: Values, resolution: float, holds: bool | None) -> None:
    assert only(values, "same", resolution, **RATIO, within=0.05).holds is holds


@pytest.mark.parametrize(("value", "holds"), [(0.86, True), (0.81, True), (0.80, False), (0.92, False)])
def test_a_value_lies_in_its_band(value: float, holds: bool) -> None:
    assert only({"btrfs": value}, "value", of=["btrfs"], at_least=0.81, at_most=0.91).holds is holds
    assert only({}, "value", of=["btrfs"], at_least=0.81).holds is None


FIRST: dict[str, Any] = {"of": ["ext2", "ext3"], "among": ["xfs", "jfs"]}


@pytest.mark.parametrize(
    ("kind", "values", "words", "holds", "figure", "note"),
    [
        ("lowest", {"ext2": 1, "ext3": 2, "xfs": 3, "jfs": 4}, {}, True, "3/2", "next is xfs"),
        ("lowest", {"ext2": 1, "ext3": 2, "xfs": 3, "jfs": 4}, {"margin": 1.5}, True, "3/2", "next is xfs"),
        ("lowest", {"ext2": 1, "ext3": 2, "xfs": 3, "jfs": 4}, {"margin": 1.6}, False, "3/2", "against xfs"),
        ("lowest", {"ext2": 1, "ext3": 3, "xfs": 3, "jfs": 4}, {}, False, "1", "against xfs"),
        ("lowest", {"ext2": 1, "ext3": 4, "xfs": 3, "jfs": 4}, {}, False, "3/4", "against xfs"),
        ("lowest", {"ext2": 1, "ext3": 2, "xfs": 3}, {}, None, "3/2", "no jfs"),
        ("lowest", {"ext2": 1, "ext3": 4, "xfs": 3}, {}, False, "3/4", "against xfs"),
        ("lowest", {"xfs": 3}, {}, None, None, "no ext2"),
        ("highest", {"ext2": 9, "ext3": 8, "xfs": 4, "jfs": 2}, {"margin": 2}, True, "2", "next is xfs"),
        ("highest", {"ext2": 9, "ext3": 8, "xfs": 9, "jfs": 2}, {}, False, "8/9", "against xfs"),
        (
            "lowest", {"ext2": five(1, 0), "ext3": 1, "xfs": five(0.9, 0), "jfs": 9}, {}, False, "9/10",
            "against xfs",
        ),
    ],
)  # fmt: skip
def test_the_first_and_the_last(
    kind: str, values: Values, words: dict[str, float], holds: bool | None, figure: str | None, note: str
) -> None:
    found = only(values, kind, **FIRST, **words)
    assert (found.holds, found.note) == (holds, note)
    assert found.figure == (None if figure is None else Fraction(figure))


GROUPS: dict[str, Any] = {"groups": [["ext2"], ["ext3", "jfs"], ["xfs"]]}


@pytest.mark.parametrize(
    ("values", "holds", "note"),
    [
        ({"ext2": 1, "ext3": 3, "jfs": 2, "xfs": 4}, True, ""),
        ({"ext2": 2, "ext3": 2, "jfs": 2, "xfs": 2}, True, ""),
        ({"ext2": 1, "ext3": 3, "jfs": 2, "xfs": 2.5}, False, "ext3 is above xfs"),
        ({"ext2": 5, "xfs": 4}, False, "ext2 is above xfs"),
        ({"ext2": 1, "xfs": 4}, None, "no ext3"),
        ({"ext2": five(2.001, 0.01), "ext3": five(2, 0.01), "jfs": 3, "xfs": 4}, True, ""),
        ({"ext2": five(2.1, 1), "ext3": five(2, 1), "jfs": 3, "xfs": 4}, None, "ext2 and ext3: no difference fou"),
        ({"ext2": five(3.1, 1), "ext3": five(2, 1), "jfs": 4, "xfs": 4}, False, "ext2 is above ext3"),
    ],
)
def test_an_order(values: Values, holds: bool | None, note: str) -> None:
    found = only(values, "order", **GROUPS)
    assert found.holds is holds and found.note.startswith(note) and bool(found.note) is bool(note)


def both(**pairs: tuple[float, float]) -> dict[str, float]:
    """Each variant's value in both layouts."""
    return {name + mark: pair[at] for name, pair in pairs.items() for at, mark in ((0, ""), (1, "@raid0"))}


@pytest.mark.parametrize(
    ("what", "values", "holds", "note"),
    [
        ("lowest", both(a=(1, 2), b=(2, 3), c=(3, 4)), True, "a | a"),
        ("lowest", both(a=(1, 2), b=(2, 1), c=(3, 4)), False, "a | b"),
        ("lowest", both(a=(1, 2), b=(2, 2), c=(3, 4)), True, "a | a, b"),
        ("highest", both(a=(1, 2), b=(2, 1), c=(3, 4)), True, "c | c"),
        ("order", both(a=(1, 2), b=(2, 3), c=(3, 4)), True, ""),
        ("order", both(a=(1, 2), b=(2, 2), c=(3, 4)), True, ""),
        ("order", both(a=(1, 4), b=(2, 3), c=(3, 5)), False, "a and b"),
        ("order", {"a": 1, "b": 2, "c": 3, "a@raid0": 1, "b@raid0": 2}, None, "no c@raid0"),
    ],
)
def test_what_is_kept_from_one_layout_to_the_other(what: str, values: Values, holds: bool | None, note: str) -> None:
    found = only(values, "kept", what=what, among=["a", "b", "c"])
    assert (found.holds, found.note) == (holds, note)


@pytest.mark.parametrize(
    ("values", "measure", "holds"),
    [
        (both(a=(4, 1), b=(30, 10)), "ratio", True),
        (both(a=(4, 1), b=(30, 10)), "difference", False),
        (both(a=(4, 2), b=(30, 15)), "ratio", False),
        ({**both(a=(4, 1), b=(30, 10)), "c": 5.0}, "ratio", None),
        (both(b=(30, 10)), "ratio", None),
    ],
)
def test_who_gains_the_most(values: Values, measure: str, holds: bool | None) -> None:
    among = ["b", "c"] if "c" in values else ["b"]
    assert only(values, "gain", of="a", among=among, measure=measure).holds is holds


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ({"a": 2, "b": 3, "a#2": 2, "b#2": 4}, True),
        ({"a": 2, "b": 4, "a#2": 2, "b#2": 4}, False),
        ({"a": 2, "b": 3, "a#2": 2}, None),
        ({"a": 0, "b": 3, "a#2": 2, "b#2": 4}, None),
    ],
)
def test_a_spread(values: Values, holds: bool | None) -> None:
    assert only(values, "spread", of=["a", "b"], than=["a#2", "b#2"]).holds is holds


@pytest.mark.parametrize(
    ("over", "values", "holds"),
    [
        ("every", [2, 2, 2, 2], True),
        ("every", [2, 2, 2, 1], False),
        ("every", [2, 2, 2, None], None),
        ("every", [1, 2, 2, None], False),
        ("most", [2, 2, 2, 1], True),
        ("most", [2, 2, 1, 1], False),
        ("most", [2, 2, 1, None], None),
        ("most", [2, 2, 2, None], True),
        ("most", [1, 1, 2, None], False),
        ("some", [1, 1, 1, 2], True),
        ("some", [1, 1, 1, 1], False),
        ("some", [1, 1, 1, None], None),
        ("some", [2, 1, 1, None], True),
    ],
)
def test_every_most_some(over: str, values: list[float | None], holds: bool | None) -> None:
    """A missing value counts neither way, unless the answer is the same whatever it is."""
    names = [f"v{number}" for number in range(len(values))]
    given = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    found = of({**given, "one": 1}, "ratio", of=names, to=["one"], at_least=2, over=over)
    assert (len(found.comparisons), found.holds) == (4, holds)
    assert found.missing == [f"no {name}" for name in names if name not in given]


def test_a_lowest_that_is_not_of_all_says_among_whom() -> None:
    ranked = made("highest", of=["ext2"], among=["ext3", "xfs"])
    claims = CLAIMS.model_copy(update={"claims": (Claim(id="last", says="ext2 is last", test=ranked),)})
    values = Given({"ext2": 3, "ext3": 2, "xfs": 1, "xfs#2": 2})
    some = {
        "copy: ext2 highest": ranked,
        "copy: ext3, ext2 highest": made("highest", of=["ext3", "ext2"], among=["xfs"]),
        "copy: xfs below ext2": made("lowest", of=["xfs"], among=["ext2"]),
        "copy, raid0: ext2 above xfs": made("highest", of=["ext2"], among=["xfs"], layouts=["raid0"]),
        "copy: xfs below xfs#2": made("lowest", of=["xfs"], among=["xfs#2"]),
        "copy: xfs below ext2@raid0, ext3": made("lowest", of=["xfs"], among=["ext2@raid0", "ext3"]),
    }
    assert [run_test(test, claims, values).comparisons[0].where for test in some.values()] == [*some]


FIVE: Values = {"ext2": five(1, 0), "xfs": five(1.01, 0)}


@pytest.mark.parametrize(
    ("kind", "words", "values", "holds"),
    [
        ("lowest", {"of": ["ext2"], "among": ["xfs"]}, {"ext2": 1, "xfs": 1.01}, None),
        ("lowest", {"of": ["ext2"], "among": ["xfs"]}, {"ext2": 1, "xfs": 0.99}, None),
        ("lowest", {"of": ["ext2"], "among": ["xfs"]}, {"ext2": 1, "xfs": 1}, None),
        ("lowest", {"of": ["ext2"], "among": ["xfs"]}, {"ext2": 1, "xfs": 1.05}, True),
        ("lowest", {"of": ["ext2"], "among": ["xfs"]}, {"ext2": 1.05, "xfs": 1}, False),
        ("lowest", {"of": ["ext2"], "among": ["xfs"]}, FIVE, True),
        ("lowest", {"of": ["ext2"], "among": ["xfs"], "margin": 1.5}, {"ext2": 1, "xfs": 1.01}, False),
        ("lowest", {"of": ["ext2"], "among": ["xfs", "jfs"]}, {"ext2": 1, "xfs": 1.01, "jfs": 0.5}, False),
        ("order", {"groups": [["ext2"], ["xfs"]]}, {"ext2": 1, "xfs": 1.01}, None),
        ("order", {"groups": [["ext2"], ["xfs"]]}, {"ext2": 1.01, "xfs": 1}, None),
        ("order", {"groups": [["ext2"], ["xfs"]]}, {"ext2": 1, "xfs": 1.1}, True),
        ("order", {"groups": [["ext2"], ["xfs"], ["jfs"]]}, {"ext2": 1, "xfs": 1.01, "jfs": 0.5}, False),
        ("ratio", {"of": ["xfs"], "to": ["ext2"], "at_least": 1.01}, {"ext2": 1, "xfs": 1.02}, None),
        ("ratio", {"of": ["xfs"], "to": ["ext2"], "at_least": 0.5}, {"ext2": 1, "xfs": 1.02}, True),
        ("ratio", {"of": ["xfs"], "to": ["ext2"], "at_least": 1.5}, {"ext2": 1, "xfs": 1.02}, False),
        ("same", {"of": ["xfs"], "to": ["ext2"], "within": 0.05}, {"ext2": 1, "xfs": 1.02}, True),
        ("same", {"of": ["xfs"], "to": ["ext2"], "within": 0.01}, {"ext2": 1, "xfs": 1.02}, None),
        ("spread", {"of": ["a", "b"], "than": ["c", "d"]}, {"a": 1, "b": 2, "c": 1, "d": 2.02}, None),
        ("spread", {"of": ["a", "b"], "than": ["c", "d"]}, {"a": 1, "b": 2, "c": 1, "d": 3}, True),
        ("gain", {"of": "a", "among": ["b"]}, both(a=(4, 2), b=(4, 2.02)), None),
        ("gain", {"of": "a", "among": ["b"]}, both(a=(4, 2), b=(4, 3)), True),
        ("kept", {"what": "lowest", "among": ["a", "b"]}, both(a=(1, 1), b=(2, 1.01)), None),
        ("kept", {"what": "lowest", "among": ["a", "b", "c"]}, both(a=(1, 3), b=(2, 1), c=(3, 1.01)), False),
        ("kept", {"what": "order", "among": ["a", "b"]}, both(a=(1, 1), b=(2, 1.01)), None),
        ("kept", {"what": "order", "among": ["a", "b", "c"]}, both(a=(1, 3), b=(2, 1), c=(3, 1.01)), False),
        ("value", {"of": ["a"], "at_most": 1}, {"a": 1.01}, False),
    ],
)
def test_without_a_floor_a_small_lead_says_nothing(
    kind: str, words: dict[str, Any], values: Values, holds: bool | None
) -> None:
    found = run_test(made(kind, **words), CLAIMS, Given(values, lead=exact(0.05)))
    [one] = found.comparisons
    assert (found.holds, one.close) == (holds, holds is None)
    assert found.missing == [] and bool(found.close) is (holds is None)


def test_a_small_lead_is_named_with_the_one_that_counts() -> None:
    test = made("lowest", of=["ext2"], among=["xfs"])
    [found] = run_test(test, CLAIMS, Given({"ext2": 1, "xfs": 1.01}, lead=exact(0.05))).comparisons
    assert (
        found.note == "against xfs: they differ by a factor of 1.010, and with one run seed less than 1.05 says nothing"
    )
    [same] = run_test(test, CLAIMS, Given({"ext2": [1, 1], "xfs": [1, 1]}, lead=exact(0.05))).comparisons
    assert (
        same.note == "against xfs: they differ by a factor of 1.000, and with 2 run seeds less than 1.05 says nothing"
    )


def test_what_is_missing_is_named_before_what_is_close() -> None:
    found = run_test(
        made("ratio", of=["a", "b"], to=["c"], at_least=1.01), CLAIMS, Given({"a": 1.02, "c": 1}, lead=exact(0.05))
    )
    assert (found.holds, found.missing, len(found.close)) == (None, ["no b"], 1)


def test_a_comparison_in_a_circle_is_made_and_does_not_count() -> None:
    values = {"a": 2, "b": 1, "a read": 1, "b read": 2}
    test = made("ratio", steps=["copy", "read"], of=["a"], to=["b"], at_least=1.5)
    found = run_test(test, CLAIMS, Given(values))
    assert found.holds is True and found.missing == []
    assert [(one.holds, bool(one.uncounted), one.figure) for one in found.comparisons] == [
        (True, False, 2),
        (None, True, Fraction(1, 2)),
    ]
    alone = run_test(made("ratio", steps=["read"], of=["a"], to=["b"], at_least=1.5), CLAIMS, Given(values))
    assert (alone.holds, alone.missing) == (None, ["in a circle: the size"])
    other = run_test(made("ratio", of=["a"], to=["b"], to_step="read", at_least=1), CLAIMS, Given(values))
    assert other.missing == ["in a circle: the size"]


def test_a_circle_whose_values_are_too_close_says_that_it_is_one() -> None:
    test = made("ratio", pairs=[["a", "b"]], at_least=1.01).model_copy(update={"steps": ("read",)})
    values = {"a read": [1.0, 3.0, 2.0, 4.0, 5.0], "b read": [2.0, 1.0, 3.0, 5.0, 1.5]}
    found = run_test(test, CLAIMS, Given(values))
    assert found.holds is None and found.missing == ["in a circle: the size"]
