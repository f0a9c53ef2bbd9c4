"""Slowdowns in all tests of aged disks: the worst subject of each, and over all together."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import geometric_mean

from agelab.analysis.cells import RunSet, SeedGroup
from agelab.analysis.judge import Ranked, rank_by_median, rank_by_place
from agelab.present.report.blocks import Row, Table, TableCell, headings
from agelab.present.report.numbers import interval_cell, number_cell, text
from agelab.results.cell_samples import Place
from agelab.scenario.seeds import Seeds
from agelab.scenario.step import StepId
from agelab.stats.phrasing import distinguishable, joined, not_distinguishable
from agelab.stats.series import Series, exact

TEST_DESCRIPTIONS = {
    "read": "reading every file",
    "scan": "reading every file",
    "random-read": "reading at random places",
    "write": "writing into what is free",
    "list": "listing every directory",
    "search": "searching by name and size",
    "space": "asking what space is taken",
    "remove": "removing a tree",
    "write-large": "writing one large file",
    "read-large": "reading that large file",
}
"""Descriptions of our scenarios' tests."""


def describe_test(step: str) -> str:
    test = StepId.parse(step)
    return TEST_DESCRIPTIONS.get(test.name, f"test {test.name}") + (f" (drive {test.group})" if test.within else "")


def mean_slowdown(subject: SeedGroup, places: Sequence[Place]) -> Series:
    """Return the geometric mean of a seed's slowdowns in all tests; None for a cell that lacks one.

    The mean is geometric because a slowdown is a ratio: twice as slow in one test and twice as quick in another is 1.
    """
    values: list[tuple[Seeds, Fraction]] = []
    missing: list[tuple[Seeds, str]] = []
    for seeds in subject.counted:
        slowdowns = [dict(series.values).get(seeds) for at in places if (series := subject.series.get(at))]
        known = [float(value) for value in slowdowns if value]
        if len(known) == len(places):
            values.append((seeds, exact(round(geometric_mean(known), 6))))
        else:
            missing.append((seeds, "some test of it has no slowdown"))
    return Series("all tests", 1, "slowdown", "1", tuple(values), tuple(missing))


def rank_over_all(subjects: Sequence[SeedGroup], places: Sequence[Place]) -> Ranked:
    return rank_by_median([(subject, mean_slowdown(subject, places)) for subject in subjects])


@dataclass(frozen=True)
class OtherTests:
    """Results in all tests of the subject that the first test names."""

    short: str
    lines: tuple[str, ...]


def in_other_tests(named: SeedGroup, subjects: Sequence[SeedGroup], places: Sequence[Place]) -> OtherTests | None:
    """Return in how many tests the named subject is worst, which are worst in the others, and which over all.

    Returns None if there is nothing to compare: a single test or subject.
    """
    orders = [(place[0], order) for place in places if len((order := rank_by_place(subjects, place)).order) > 1]
    whole = rank_over_all(subjects, places)
    if len(orders) < 2:
        return None
    clear: dict[str, list[str]] = {}
    unclear: list[str] = []
    for step, order in orders:
        if order.tied:
            unclear.append(step)
        else:
            clear.setdefault(order.first[0].name, []).append(step)
    own = clear.pop(named.name, [])
    enough = all(order.enough for _, order in orders)
    has = "is the worst" if enough else "has the highest"
    short = f"{named.name} {has} in {len(own)} of {len(orders)} tests"
    if elsewhere := sum(map(len, clear.values())):
        short += f", another is in {elsewhere}"
    if unclear:
        short += f", in {len(unclear)} it is not known"
    sentence = f"It is {named.name} in {joined(own)}" if own else f"It is {named.name} in no test"
    for name, at in sorted(clear.items(), key=lambda pair: -len(pair[1])):
        sentence += f"; {name} in {joined(at)}"
    if unclear:
        sentence += f"; in {joined(unclear)} none is distinguishable from all others"
    lines = [f"Test by test the worst is not always the same. {sentence}." if clear or unclear else f"{sentence}."]
    if len(whole.order) > 1:
        lines.append(_worst_over_all(whole, len(places)))
        first = whole.first[0]
        if whole.enough and whole.tied:
            short += "; over all of them together it is not known"
        else:
            short += f"; over all of them together it is {first.name}{', too' if first is named else ''}"
    return OtherTests(f"{short}.", tuple(lines))


def _worst_over_all(whole: Ranked, tests: int) -> str:
    """Return the subject slowed down most over all tests, or none where it is not distinguishable from the others."""
    (first, of), (following, next_of) = whole.order[:2]
    opening = f"Over all {tests} tests together (the geometric mean of the slowdowns)"
    if whole.enough and whole.tied:
        return f"{opening} it is not known: the highest is {first.name}'s {text(of)}, but {why_not_first(whole)}."
    sure = "" if whole.enough else ", as measured"
    return f"{opening} {first.name} has the most: {text(of)}; the next is {following.name} with {text(next_of)}{sure}."


def _verdict(order: Ranked) -> str:
    """Say whether the first is clear, on which files, and why not."""
    if not order.enough:
        return "not known: too few seeds"
    if order.tied:
        return f"not known: {'; '.join(order.why_tied)}"
    verdict = f"{distinguishable(len(order.compared))} {order.on_these_files}"
    return f"{verdict}; {order.on_other_files}" if order.holds else verdict


def why_not_first(order: Ranked) -> str:
    """Say from which others the first is not distinguishable, and against which it depends on the files."""
    names: tuple[list[str], list[str]] = ([], [])
    for subject, of in order.tied:
        names[subject in order.opposed].append(f"{subject.name} ({text(of)})")
    return not_distinguishable(*names)


def test_by_test(group: RunSet, places: Sequence[Place], where: str) -> Table:
    """Return for each test, and all together, the highest slowdown, the next, and the verdict on the first."""
    rankings = []
    for place in places:
        name = place[0] if place[1] == 1 else f"{place[0]} {place[1]}"
        rankings.append((name, describe_test(place[0]), rank_by_place(group.groups, place)))
    if len(places) > 1:
        rankings.append(("all tests", "their geometric mean", rank_over_all(group.groups, places)))
    rows: list[Row] = []
    for name, words, order in rankings:
        if len(order.order) < 2:
            continue
        (subject, summary), (following, of) = order.order[:2]
        apart = order.lead
        rows.append(
            (
                name, words, subject.name,
                TableCell(text(summary), float(summary.median)), f"{following.name} {text(of)}",
                number_cell(apart.ratio, 3),
                interval_cell(apart.interval, 3),
                _verdict(order),
            )
        )  # fmt: skip
    columns = ("test", "what it does", "highest slowdown", "times", "next", "times the next", "its interval", "verdict")
    caption = "Test by test: the highest slowdown, and whether it is distinguishable from all others"
    numbers = ("times", "times the next", "its interval")
    return Table(headings(*columns, numbers=numbers), tuple(rows), caption, id=f"{where}-worst")
