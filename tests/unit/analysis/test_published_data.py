"""The published data are whole, and each claim is true of its study's own table or says that it is not."""

import re
from collections.abc import Callable
from fractions import Fraction

import pytest

from agelab.analysis.published import study
from agelab.analysis.published.claim_verdict import printed_outcomes
from agelab.analysis.published.claims import Claim, Pairs, subject
from agelab.analysis.published.study import Study
from agelab.analysis.published.values import READINGS, PrintedValues
from agelab.scenario import toml_files
from agelab.scenario.scenario import Scenario

STUDIES = {one.name: one for one in study.all_studies()}
CLAIMS = [(one, claim) for one in STUDIES.values() for claim in one.claims.claims]

# Counted and added up in the studies themselves, by other means than those that made the files.
NUMBERS = {
    "fedorchuk-2008": 105, "fedorchuk-2005": 36, "piszcz-2006": 466, "aging": 21, "tum-2005": 36,
    "git-aging": 80,
}  # fmt: skip


def test_every_study_has_its_data() -> None:
    assert {name: len(one.figures.by_place) for name, one in STUDIES.items()} == NUMBERS


@pytest.mark.parametrize("variant", ["ext3", "xfs", "reiserfs", "jfs"])
def test_the_sums_of_tum_are_those_of_its_tests(variant: str) -> None:
    """They are printed with seven digits, as are the parts."""
    one = STUDIES["tum-2005"]
    steps = one.claims.sums["sum"]
    at = [one.figures.by_place["means", variant, "single", step, "elapsed"].exact for step in steps]
    said = one.figures.by_place["means", variant, "single", "sum", "elapsed"].exact
    assert len(at) == 8 and abs(sum(at) - said) < Fraction(1, 1000)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("fedorchuk-2008", ("1", "xfs", "single", "copy-tree", "elapsed"), "1013"),
        ("fedorchuk-2008", ("1", "ext2", "raid0", "copy-tree", "elapsed"), "37"),
        ("fedorchuk-2005", ("2", "ufs-4200", "single", "remove-ports", "elapsed"), "188"),
        ("piszcz-2006", ("II", "reiser4", "single", "remove-directories", "elapsed"), "119.42"),
        ("piszcz-2006", ("I", "ext3", "single", "remove-directories", "cpu_percent"), "6.33"),
        ("piszcz-2006", ("II", "xfs", "single", "cat-1g", "cpu_percent"), "30"),
        ("tum-2005", ("means", "reiserfs", "single", "read2", "elapsed"), "1263.628"),
        ("aging", ("full", "btrfs", "single", "fill", "fullness"), "0.86"),
    ],
)
def test_a_figure_is_where_the_study_has_it(name: str, place: tuple[str, str, str, str, str], value: str) -> None:
    assert STUDIES[name].figures.by_place[place].exact == Fraction(value)


@pytest.mark.parametrize(("one", "claim"), CLAIMS, ids=[f"{one.name} {claim.id}" for one, claim in CLAIMS])
def test_a_claim_is_true_of_its_own_table_or_says_why_not(one: Study, claim: Claim) -> None:
    said = [outcome.holds for outcome in printed_outcomes(one, claim)]
    if claim.test is None:
        assert said == [] and claim.untestable
    elif claim.unprinted:
        assert set(said) == {None}, "its own table does have it"
    elif claim.conflict and claim.conflict.against == "table":
        assert set(said) == {False}, "its own table bears it out"
    else:
        assert set(said) == {True}, [
            (c.where, c.figure, c.note) for o in printed_outcomes(one, claim) for c in o.comparisons
        ]


def test_both_readings_of_a_percentage_are_kept() -> None:
    one = STUDIES["aging"]
    ext3 = ("start", "ext3", "single", "copy", "elapsed")
    values = [PrintedValues(one.figures, one.claims, reading).value(ext3).median for reading in READINGS]
    assert values == [Fraction("1.36"), 1 / Fraction("0.64")]
    btrfs = ("start", "btrfs", "single", "copy", "elapsed")
    assert PrintedValues(one.figures, one.claims).value(btrfs).median == 1


NEAR = re.compile(
    r"\b(near|(?<!one and )the same|differ little|about|close|level|equals?|lead .* small|"
    r"(?<!times )as (fast|long) as)\b"
)
FAR = re.compile(r"\b(far (ahead|behind|slower|longer)|by far|much of|gains much|clear|is large|many times)\b")
NOT = re.compile(r"\b(not far|no .* far)\b")


PERCENT = re.compile(r"(?P<less>less than )?(?P<number>\d+) %(?P<slower> slower)?(?P<more> more)?")
TIMES = re.compile(r"(?P<low>[\d.]+) to (?P<high>[\d.]+) times|gains? (?P<from>\d+) to (?P<to>\d+) %")
OWN_BOUNDS = {
    "writeback-no-faster": (0.95, None, 1), "notail-halves-tree-removal": (1.5, 3, 1),
    "notail-removal-of-all": (1.25, 2, 1), "xfs-tree-order-of-magnitude": (5, None, 1),
    "ext2-bulk-is-the-avi": (0.5, None, 1), "xfs-raid-cured": (None, 5, 1), "tree-lead-small": (1, 1.35, 1),
    "reiserfs-good-throughout": (None, 1.2, 1), "split-1000-ext-ten-times": (10, None, 1),
    "copy-tree-reiser4-before-reiserfs": (1.3, 2.2, 1), "read2-most-of-the-time": (0.5, None, 1),
    "read1-reiserfs-poor": (1.75, 4, 1), "mount-xfs-and-jfs-quick": (None, None, 2),
    "remove-directories-reiser4-slow": (None, None, 5),
    "early-double": (2, None, 1), "disk-three": (3, None, 1), "zfs-disk": (2, None, 1),
}  # fmt: skip
"""Claims whose own words give their band or factor: at_least, at_most, margin."""


def bounds(claim: Claim) -> tuple[float | None, float | None, float]:
    low, high = (getattr(claim.test, name, None) for name in ("at_least", "at_most"))
    return low, high, getattr(claim.test, "margin", 1)


def is_far(says: str) -> bool:
    return bool(FAR.search(says) and not NOT.search(says))


def is_near(says: str) -> bool:
    return bool(NEAR.search(says) or "a little" in says)


def band(claim: Claim) -> tuple[float | None, float] | None:
    """The band of a claim that says a number: five points more than it on either side, under both readings."""
    if times := TIMES.search(claim.says):
        if times["low"]:
            return float(times["low"]) - 0.05, float(times["high"]) + 0.05
        return 0.95 + int(times["from"]) / 100, 1.05 + int(times["to"]) / 100
    percent = PERCENT.search(claim.says)
    if percent is None or claim.test is None:
        return None
    number = int(percent["number"])
    if percent["less"]:
        return None, number
    if percent["slower"] or "lose" in claim.says:
        return 0.95 + number / 100, 1 / (0.95 - number / 100)
    if percent["more"]:
        return 0.95 + number / 100, 1.05 + number / 100
    unit = 100 if claim.test.metric == "fullness" else 1
    return (number - 5) / unit, (number + 5) / unit


def claims(chosen: Callable[[Claim], bool]) -> pytest.MarkDecorator:
    """Run a test for each claim that can be tested and is chosen."""
    found = [pytest.param(claim, id=f"{one.name} {claim.id}") for one, claim in CLAIMS if claim.test and chosen(claim)]
    return pytest.mark.parametrize("claim", found)


@claims(lambda claim: is_near(claim.says))
def test_a_claim_of_nearness_has_a_band(claim: Claim) -> None:
    low, high, _ = bounds(claim)
    assert claim.test and (claim.test.kind == "same" or (low and high))
    if "a little" in claim.says:
        assert low and high and 1 < low < high <= 1.25


@claims(lambda claim: is_far(claim.says))
def test_a_claim_of_distance_has_a_factor(claim: Claim) -> None:
    low, _, margin = bounds(claim)
    assert max(low or 1, margin) >= (1.1 if claim.id == "sum-xfs-far" else 1.25)


@claims(lambda claim: band(claim) is not None)
def test_a_claim_of_a_number_has_the_band_that_the_page_gives_it(claim: Claim) -> None:
    assert bounds(claim)[:2] == pytest.approx(band(claim), abs=0.006)


@claims(lambda claim: not (is_near(claim.says) or is_far(claim.says) or band(claim)))
def test_a_claim_of_an_order_alone_has_no_bounds_but_its_own(claim: Claim) -> None:
    low, high, margin = bounds(claim)
    if claim.id in OWN_BOUNDS:
        assert (low, high, margin) == OWN_BOUNDS[claim.id]
    else:
        assert margin == 1 and (low, high) in ((None, None), (1, None), (None, 1))


def test_what_equal_inputs_make_true_is_not_replicated_by_them() -> None:
    """Two variants that differ in their names alone have equal digits: the study's repetition cannot be tested."""
    scenarios = {name: toml_files.read(toml_files.SCENARIOS / f"{name}.toml", Scenario) for name in STUDIES}
    bare = {
        (name, variant.name): variant.model_dump(exclude={"name", "layouts"})
        for name, scenario in scenarios.items()
        for variant in scenario.variants
    }
    tautologies = []
    for one, claim in CLAIMS:
        for left, right in claim.test.couples if isinstance(claim.test, Pairs) else ():
            (this, *here), (that, *there) = subject(left), subject(right)
            alike = bare.get((one.name, this)) == bare.get((one.name, that), {})
            if this != that and here == there and alike and not claim.untestable:
                tautologies.append(claim.id)
    assert bare["fedorchuk-2008", "xfs"] == bare["fedorchuk-2008", "xfs-again"]
    assert tautologies == []


def test_the_aging_claims_name_variants_and_steps_of_the_scenarios() -> None:
    """Figures are checked when the files are read; what the study does not print can be checked here alone."""
    one = STUDIES["aging"]
    scenarios = {name: toml_files.read(toml_files.SCENARIOS / f"{name}.toml", Scenario) for name in ("aging", "space")}
    # No kernel of Debian's has reiser4: a run names it (FS=reiser4).
    variants = {variant.name for variant in scenarios["aging"].variants} | {"reiser4"}
    for claim in one.claims.claims:
        if claim.test is None:
            continue
        scenario = scenarios[one.claims.table(claim.test.table).scenario or "aging"]
        steps = {action.name for action in scenario.actions()} | {"mount"}
        steps |= {f"aged/{test.name}" for test in scenario.tests}
        for step in claim.test.steps:
            assert set(one.claims.sums.get(step, (step,))) <= steps, claim.id
        named = claim.test.model_dump()
        refs = {*named.get("of", ()), *named.get("to", ()), *named.get("among", ())}
        refs |= {ref for group in (*named.get("groups", ()), *named.get("pairs", ())) for ref in group}
        assert refs and refs <= variants, claim.id
