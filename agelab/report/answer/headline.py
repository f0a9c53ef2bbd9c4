"""The main result in plain words, as far as the seeds support it."""

from collections.abc import Iterator, Sequence

from agelab.analysis.cells import SeedGroup
from agelab.analysis.judge import judge
from agelab.analysis.main_measures import last_slowdowns, main_measures
from agelab.analysis.ranking import Ranked, rank_by_median, rank_by_place
from agelab.analysis.run_set import RunSet
from agelab.model.measure import ALL_STEPS, ALL_STEPS_TITLE
from agelab.report.answer import all_tests, causes
from agelab.report.charts import sort_subjects
from agelab.report.model import Answer
from agelab.report.numbers import text, unit_name
from agelab.report.step_selection import aged_and_control
from agelab.results.status import GOING
from agelab.stats.formatting import format_ratio
from agelab.stats.order_statistics import Summary
from agelab.stats.series import Place, Series
from agelab.stats.verdict import MARGIN, DifferenceVerdict

MAX_REASON = 120
"""Maximum length of the reason why something was not measured; the doubts have it in full."""


def answers(group: RunSet) -> Iterator[Answer]:
    """Return the answers of the group's runs, most important first."""
    if not any(subject.counted for subject in group.groups):
        going = any(entry.status in GOING for _, entry in group.cells)
        said = "Nothing yet: no cell has come to its end." if going else "Nothing: no cell ended ok."
        reasons = dict.fromkeys(f"{subject.name}: {entry.ended}" for subject, entry in group.cells)
        yield Answer("What came out?", said, tuple(reasons))
    elif places := last_slowdowns(group.places):
        yield answer_aged(group, places)
    else:
        yield from answer_others(group)


def answer_aged(group: RunSet, places: Sequence[Place]) -> Answer:
    """Answer which subject aged worst, and why."""
    place = next((one for one in places if rank_by_place(group.groups, one).order), None)
    several = len({one.variant for one in group.groups}) > 1
    question = f"Which {'filesystem' if several else 'of these'} aged worst, and why?"
    if place is None:
        reasons = (why for one in group.groups for at in places for _, why in one.series[at].missing)
        reason = next(reasons, "no sample")
        return Answer(question, "That was not measured.", (f"No test has a slowdown: {reason}.",))
    everyone = rank_by_place(group.groups, place)
    order, left_out = everyone.split_by_seeds()
    worst = order.first[0]
    named, verdict, doubts = _verdict_on_first(order, place)
    if left_out:
        few = ", ".join(f"{one.name} ({text(of)}, {_seeds(of.n)})" for one, of in left_out)
        doubts.append(f"Not in this order, for want of seeds: {few}.")
    doubts += _unmeasured(group)
    other_tests = all_tests.in_other_tests(worst, [one for one, _ in order.order], places)
    because = [
        *causes.explain_time(worst, place),
        *causes.explain_layout(worst, place),
        *(causes.compare_with_next(worst, order.order[1][0], place) if order.clear else ()),
        *(_certainty(order) if order.clear else ()),
        *_slowest(order, place),
        *(other_tests.lines if other_tests else ()),
        *_count_aged(order, place),
        *_aged_least(order),
    ]
    chart = sort_subjects(
        f"Slowdown: {all_tests.describe_test(place[0])}, aged / unaged", everyone, group, base=1
    )
    verdict += f" {other_tests.short}" if other_tests else ""
    return Answer(question, verdict, tuple(because), tuple(doubts), named, chart)


def _verdict_on_first(order: Ranked, place: Place) -> tuple[str, str, list[str]]:
    """Return the named subject, the verdict on it and the doubts; where it is not told from all, nobody is named."""
    (worst, worst_of), nexts = order.first, order.order[1:]
    times = (
        f"takes {text(worst_of)} times as long on its aged disk as on an unaged one that holds the same files"
    )
    ratio = f"{all_tests.describe_test(place[0])} {times}"
    if not nexts:
        doubts = [f"{_capital(order.why_too_few)}: whether it aged is not known."]
        verdict = f"It alone was run, so there is nothing to compare it with: {ratio}."
        return worst.name, verdict, [] if order.enough else doubts
    following, of = nexts[0]
    if not order.enough:
        verdict = f"Not known yet: {order.why_too_few}. As measured, the highest slowdown is {worst.name}'s: {ratio}."
        doubt = f"The next, {following.name}, has {text(of)}. Whether that difference is chance is not known."
        return "", verdict, [doubt]
    if order.all_the_same:
        verdict = (
            f"None of them: {worst.name}'s slowdown is the highest ({ratio}), and each other one's is the same within "
            f"{float(100 * MARGIN):.0f} %."
        )
        return "", verdict, []
    if order.tied:
        names = ", ".join(f"{one.name} ({text(of)})" for one, of in order.tied)
        verdict = (
            f"Not known: {worst.name}'s slowdown is the highest ({ratio}), but not told from that of {names}."
        )
        return "", verdict, [f"Against {line}." for line in order.why_tied]
    verdict = f"That {times}. The next is {following.name} with {text(of)}{_times_the_next(order)}."
    return f"{worst.name}, in {all_tests.describe_test(place[0])}", verdict, []


def _times_the_next(order: Ranked) -> str:
    """Say how many times the next one's the first one's is, with the interval."""
    apart = order.lead
    if apart.ratio is None or apart.interval is None:
        return ""
    value, low, high = format_ratio(apart.ratio, (apart.interval.low, apart.interval.high), apart=True)
    return f", of which it is {value} times ({low} to {high}, the interval of 95 %)"


def _certainty(order: Ranked) -> Iterator[str]:
    """Return the confidence in the first place: rank tests against the others, and number of seeds."""
    found = [one.test for one in order.compared if one.test]
    if found:
        counts = sorted(one.n for _, one in order.order)
        seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        others = "the other" if len(found) == 1 else f"each of the {len(found)} others"
        yield (
            f"How sure: {seeds} values each; told from {others} by a rank test at 5 %. The largest p is "
            f"{max(one.p for one in found):.2g}; all of them must be passed, so none is corrected."
        )


def _slowest(order: Ranked, place: Place) -> Iterator[str]:
    """Return the slowest on the aged disk, if it is not the one slowed down most."""
    aged, _ = aged_and_control(place[0])
    found = rank_by_place([one for one, _ in order.order], (aged, place[1], "elapsed"))
    if len(found.order) < 2 or not found.clear or found.first[0] is order.first[0]:
        return
    slowest, of = found.first
    mine = next((summary for one, summary in found.order if one is order.first[0]), None)
    if mine:
        yield (
            f"Slowed down most is not slowest: on its aged disk {slowest.name} takes longest, {text(of)} s, and "
            f"{order.first[0].name} {text(mine)} s."
        )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _seeds(count: int) -> str:
    return f"{count} {'seed' if count == 1 else 'seeds'}"


def _unmeasured(group: RunSet) -> Iterator[str]:
    """List the subjects without a cell that ended ok, with the reason."""
    reasons: dict[str, list[str]] = {}
    for subject in group.groups:
        if not subject.counted:
            reason = " ".join(subject.results[0].ended.split())
            reason = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"
            reasons.setdefault(reason, []).append(subject.name)
    for reason, names in reasons.items():
        yield f"Not measured: {', '.join(names)} ({reason})."


def _count_aged(order: Ranked, place: Place) -> Iterator[str]:
    """Return the slowdown of all subjects."""
    if len(order.order) < 2 or not order.enough:
        return
    pairs = {one.name: causes.aged_pair(one, place, "elapsed") for one, _ in order.order}
    known = {name: pair for name, pair in pairs.items() if pair}
    judged = dict(zip(known, judge([*known.values()], order.first[0].host), strict=True))
    slower = [name for name, one in judged.items() if one.verdict is DifferenceVerdict.HIGHER]
    alike = [name for name, one in judged.items() if one.alike]
    others = ", ".join(name for name in pairs if name not in (*slower, *alike))
    yield (
        f"{len(slower)} of {len(pairs)} are slower on their aged disk by more than chance makes"
        + (f"; the same within 5 %: {', '.join(alike)}" if alike else "")
        + (f"; not known of {others}." if others else ".")
    )


def _aged_least(order: Ranked) -> Iterator[str]:
    """Return the subject that aged least."""
    if len(order.order) < 3:
        return
    subject, summary = order.order[-1]
    rest = Ranked(order.order[::-1], order.series[::-1])
    if not order.enough:
        words = f"The smallest slowdown, as measured, is {subject.name}'s: {text(summary)}."
    elif rest.tied:
        names = ", ".join(one.name for one, _ in rest.tied)
        words = f"Least slowed down is {subject.name} ({text(summary)}), which is not told from {names}."
    else:
        words = f"{subject.name} aged least: {text(summary)}."
    yield words


def answer_others(group: RunSet) -> Iterator[Answer]:
    """Answer for runs without an aged disk: which stored the most, if steps counted it; else which was quickest."""
    for measure in main_measures(group.groups)[:1]:
        found = [(one, one.measured(measure)) for one in group.groups]
        if measure == ALL_STEPS:
            words = f"{ALL_STEPS_TITLE}, together take {{}} of guest time"
            yield _compared(group, "Which was the quickest?", words, found, highest=False)
        else:
            yield _compared(group, "Which held the most data?", "it held {}", found, highest=True)


def _compared(
    group: RunSet,
    question: str,
    words: str,
    found: Sequence[tuple[SeedGroup, Series | None]],
    *,
    highest: bool,
) -> Answer:
    """Compare the first by a sum or a count with the others; where it is not told from all, nobody is named."""
    everyone = rank_by_median(found, highest=highest)
    if not everyone.order:
        return Answer(question, "That was not measured: no cell has all that it takes.")
    unit = next(series.unit for _, series in found if series)
    order, left_out = everyone.split_by_seeds()
    (first, of), following = order.first, order.order[1:]

    def shown(summary: Summary) -> str:
        return f"{text(summary, unit)} {unit_name(unit)}"

    said, named = words.format(shown(of)), ""
    nearest = f"The next is {following[0][0].name} with {shown(following[0][1])}." if following else ""
    if not following:
        named = first.name
        verdict = f"It alone was run: {said}."
    elif not order.enough:
        measured = f"As measured, {first.name}: {said}. {nearest}"
        verdict = f"Not known yet: {order.why_too_few}. {measured}"
    elif order.tied:
        names = ", ".join(one.name for one, _ in order.tied)
        verdict = f"Not known: {first.name} ({said}) is not told from {names}."
    else:
        named = first.name
        verdict = f"{_capital(said)}. {nearest} The difference is more than chance makes."
    left = [one.name for one, series in found if one.counted and (series is None or series.summary is None)]
    because = [f"Not in this order, for want of some figure: {', '.join(left)}."] if left else []
    few = ", ".join(f"{one.name} ({shown(of)}, {_seeds(of.n)})" for one, of in left_out)
    doubts = [f"Not in this order, for want of seeds: {few}."] if left_out else []
    title = "Data held" if highest else _capital(ALL_STEPS_TITLE)
    chart = sort_subjects(title, everyone, group, unit=unit) if following else None
    return Answer(question, verdict, tuple(because), (*doubts, *_unmeasured(group)), named, chart)
