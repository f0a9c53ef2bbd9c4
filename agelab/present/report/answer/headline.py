"""The main result in plain words, as far as the seeds support it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from agelab.analysis.cells import RunSet, SeedGroup, last_slowdowns, main_measures
from agelab.analysis.judge import Ranked, judge, rank_by_median, rank_by_place
from agelab.base.gathered import gathered
from agelab.present.report.answer import all_tests
from agelab.present.report.blocks import Answer
from agelab.present.report.charts import aged_and_control, slowdown_charts, sort_subjects
from agelab.present.report.command import settling_command
from agelab.present.report.numbers import number, percent, text, unit_name
from agelab.results.cell_samples import Place
from agelab.results.measure import ALL_STEPS, ALL_STEPS_TITLE
from agelab.results.rows import GOING
from agelab.scenario.step import AGED_MAP, CONTROL_MAP, StepId
from agelab.stats import phrasing
from agelab.stats.formatting import format_ratio
from agelab.stats.series import Series, SeriesPair, Summary, summary
from agelab.stats.verdict import MARGIN, ComparedSeries, DifferenceVerdict

READ_METRICS = (
    ("fragmented_files", True, "of its files lie in several pieces"),
    ("layout_score", False, "of its blocks follow the one before in their file"),
    ("locality_score", False, "of its files begin right behind the file listed before them"),
)
"""Measures of a map that affect reading, whether higher is worse, and the meaning of a share;"""
WRITE_METRICS = (("free_usable_1mib", False, "of its free space is in runs of 1 MiB and more"),)
"""those that affect writing."""
WRITE_TESTS = ("write", "write-large")
"""Tests that write."""
DRIVE_TIMES = (
    ("busy_seek", "moving its arm"),
    ("busy_rotation", "waiting for the sector to come round"),
    ("busy_transfer", "moving data"),
    ("busy_overhead", "on the commands themselves"),
)
"""Categories of a modelled drive's time."""


@dataclass(frozen=True)
class AgedDifference:
    """What a metric is on the unaged disk and on the aged one."""

    unaged: Summary
    aged: Summary
    judged: ComparedSeries

    @property
    def difference(self) -> Fraction:
        """The increase of the median."""
        return self.aged.median - self.unaged.median

    @property
    def may_be(self) -> bool:
        """True if it is called a difference, or the seeds are too few to call it anything."""
        return self.judged.differs or self.judged.too_few


def aged_pair(subject: SeedGroup, place: Place, metric: str) -> SeriesPair | None:
    """Return a test's metric on the control, as A, and on the aged disk; None where one of them was not measured."""
    step, repetition, _ = place
    old, new = (subject.series.get((side, repetition, metric)) for side in aged_and_control(step))
    return SeriesPair(new, old) if old and new and old.values and new.values else None


def aged_difference(subject: SeedGroup, place: Place, metric: str) -> AgedDifference | None:
    """Return the increase of a test's metric from control to aged disk."""
    pair = aged_pair(subject, place, metric)
    return _difference(subject, pair) if pair else None


def _difference(subject: SeedGroup, pair: SeriesPair) -> AgedDifference | None:
    [judged] = judge([pair], subject.host, correct=False)
    return AgedDifference(judged.left, judged.right, judged) if judged.left and judged.right else None


def explain_time(subject: SeedGroup, place: Place) -> Iterator[str]:
    """Explain the additional time of a test; without causes if it may be chance."""
    whole = aged_difference(subject, place, "elapsed")
    if whole is None:
        return
    outcome = {
        DifferenceVerdict.HIGHER: f"more than chance explains {whole.judged.where}, so it aged",
        DifferenceVerdict.LOWER: f"less, by more than chance explains {whole.judged.where}: it did not age",
        DifferenceVerdict.SAME: "the same within 5 %: it did not age",
        DifferenceVerdict.EQUAL: "none: it did not age",
        DifferenceVerdict.BELOW: "no more than this host makes by chance",
    }.get(whole.judged.verdict, f"whether it aged is not known: {whole.judged.reason}")
    outcome = "as measured" if whole.judged.too_few else outcome
    yield (
        f"On {subject.name} {all_tests.describe_test(place[0])} takes "
        f"{text(whole.aged)} s aged and {text(whole.unaged)} s "
        f"unaged ({number(whole.difference)} s difference, {outcome})."
    )
    if whole.difference <= 0 or not whole.may_be:
        return
    parts = [(cause, words) for metric, words in DRIVE_TIMES if (cause := aged_difference(subject, place, metric))]
    cpu = _processor(subject, place)
    if not parts:
        yield f"Of that, {number(cpu)} s is processor time; this drive does not say where its own time went."
        return
    longer = sorted(
        ((cause.difference, words) for cause, words in parts if cause.difference > 0 and cause.may_be), reverse=True
    )
    if longer:
        shown = ", ".join(f"{number(value)} s {words}" for value, words in longer)
        yield (
            f"The drive spends more time on the aged disk: {shown}. Processor time differs by {number(cpu)} s. "
            "(Differences of medians; they need not add up.)"
        )
    position = sum((value for value, words in longer if words in (DRIVE_TIMES[0][1], DRIVE_TIMES[1][1])), Fraction())
    if 2 * position > whole.difference:
        yield (
            f"So it is mostly positioning: the way to where the next data lie, and the wait until they come round "
            f"({number(position)} s more of it){_seeks(subject, place)}."
        )
    elif 2 * cpu > whole.difference:
        yield "So it is mostly the filesystem's own work on the processor, not the drive."


def _processor(subject: SeedGroup, place: Place) -> Fraction:
    """Return the difference in processor time in seconds."""
    parts = (aged_difference(subject, place, metric) for metric in ("cpu_user", "cpu_system"))
    return sum((part.difference for part in parts if part), Fraction())


def _seeks(subject: SeedGroup, place: Place) -> str:
    """Describe additional seeks, if there are any."""
    seeks = aged_difference(subject, place, "seeks")
    if seeks is None or seeks.difference <= 0 or not seeks.may_be:
        return ""
    return f"; the arm moves {number(seeks.aged.median, 0)} times instead of {number(seeks.unaged.median, 0)}"


def compare_with_next(worst: SeedGroup, following: SeedGroup, place: Place) -> Iterator[str]:
    """Compare the first with the next: the additional time of each as a share of its unaged time."""
    ours, theirs = (_shares(subject, place) for subject in (worst, following))
    if not ours or not theirs:
        return
    yield (
        f"Why {worst.name} and not {following.name}: of its unaged time {worst.name} takes {ours[0]} more for "
        f"positioning, {ours[1]} for moving data, {ours[2]} on the processor; {following.name} "
        f"{theirs[0]}, {theirs[1]} and {theirs[2]}."
    )


def _shares(subject: SeedGroup, place: Place) -> list[str]:
    """Return the additional time for positioning, transfer and processor in % of the unaged time; none unless all."""
    whole = aged_difference(subject, place, "elapsed")
    differences = [aged_difference(subject, place, metric) for metric, _ in DRIVE_TIMES[:3]]
    parts = [part.difference for part in differences if part]
    if whole is None or not whole.unaged.median or len(parts) < len(differences):
        return []
    seek, rotation, transfer = parts
    times = (seek + rotation, transfer, _processor(subject, place))
    return [f"{number(100 * seconds / whole.unaged.median, 0)} %" for seconds in times]


def explain_layout(subject: SeedGroup, place: Place) -> Iterator[str]:
    """Describe what is laid out worse on the aged disk than on the control and affects a test of this kind."""
    worse = []
    known = False
    writes = StepId.parse(place[0]).name in WRITE_TESTS
    for metric, higher_is_worse, words in WRITE_METRICS if writes else READ_METRICS:
        last = max((at for at in subject.series if at[0] == AGED_MAP and at[2] == metric), default=None)
        if last is None:
            continue
        control = subject.series.get((CONTROL_MAP, last[1], metric))
        change = _difference(subject, SeriesPair(control, subject.series[last])) if control else None
        if change is None:
            continue
        known = True
        if change.may_be and (change.difference > 0) == higher_is_worse:
            worse.append(f"{percent(change.aged.median)} {words} ({percent(change.unaged.median)} unaged)")
    if worse:
        yield f"What lies worse on {subject.name}'s aged disk: {'; '.join(worse)}."
    elif known:
        yield f"No measure of {subject.name}'s layout is worse than the unaged disk's."
    else:
        yield f"Where things lie on {subject.name} was not measured."


MAX_REASON = 120
"""Maximum length of the reason why something was not measured; the doubts have it in full."""


def answers(group: RunSet) -> Iterator[Answer]:
    """Return the answers of the group's runs, most important first."""
    if not any(subject.counted for subject in group.groups):
        going = any(entry.status in GOING for _, entry in group.cells)
        verdict = "Nothing yet: no cell has come to its end." if going else "Nothing: no cell ended ok."
        reasons = dict.fromkeys(f"{subject.name}: {entry.ended}" for subject, entry in group.cells)
        yield Answer("What came out?", verdict, tuple(reasons))
    elif places := last_slowdowns(group.places):
        yield answer_aged(group, places)
    else:
        yield from answer_others(group)


def answer_aged(group: RunSet, places: Sequence[Place]) -> Answer:
    """Answer which subject aged worst, and why."""
    place = next((place for place in places if rank_by_place(group.groups, place).order), None)
    question = f"Which {_kind(group)} aged worst, and why?"
    if place is None:
        reasons = (why for subject in group.groups for at in places for _, why in subject.series[at].missing)
        reason = next(reasons, "no sample")
        return Answer(question, "That was not measured.", (f"No test has a slowdown: {reason}.",))
    everyone = rank_by_place(group.groups, place)
    order, left_out = everyone.split_by_seeds()
    worst = order.first[0]
    if len(order.order) == 1:
        question = f"How much did {worst.name} age, and why?"
    named, verdict, doubts = _verdict_on_first(order, place)
    doubts += [*_lacking_seeds(left_out, text), *_unmeasured(group)]
    other_tests = all_tests.in_other_tests(worst, [subject for subject, _ in order.order], places)
    because = [
        *([f"In all tests: {other_tests.short}"] if other_tests else ()),
        *_slowest(order, place),
        *explain_time(worst, place),
        *explain_layout(worst, place),
        *(compare_with_next(worst, order.order[1][0], place) if order.clear else ()),
    ]
    more = [*(other_tests.lines if other_tests else ()), *_count_aged(order, place), *_aged_least(order)]
    title = f"Slowdown: {all_tests.describe_test(place[0])}, aged / unaged"
    chart = sort_subjects(title, everyone, group, base=1)
    if len(group.groups) == 1:
        chart = replace(next(slowdown_charts(group, places)).charts[0], title="Slowdown of each test, aged / unaged")
    sure = _certainty(order) if order.clear else ""
    answer = Answer(question, verdict, tuple(because), tuple(doubts), named, sure, tuple(more), chart)
    return _settled(answer, order, group)


def _kind(group: RunSet) -> str:
    """Name what the subjects are: filesystems, or one filesystem under several conditions."""
    return "filesystem" if len({subject.variant for subject in group.groups}) > 1 else "of these"


def _verdict_on_first(order: Ranked, place: Place) -> tuple[str, str, list[str]]:
    """Return the named subject, the verdict on it and the doubts; a first that is not clear is not named."""
    (worst, worst_of), nexts = order.first, order.order[1:]
    times = f"takes {text(worst_of)} times as long on its aged disk as on an unaged one that holds the same files"
    ratio = f"{all_tests.describe_test(place[0])} {times}"
    if not nexts:
        named = f"{worst.name} takes {text(worst_of)} times as long in {all_tests.describe_test(place[0])}"
        return named, "That is on its aged disk, against an unaged one that holds the same files.", []
    following, of = nexts[0]
    if not order.enough:
        verdict = (
            f"Not known yet. As measured, the highest slowdown is {worst.name}'s: {ratio}; the next, {following.name}, "
            f"has {text(of)}."
        )
        return "", verdict, []
    if order.all_the_same:
        verdict = (
            f"None of them: {worst.name}'s slowdown is the highest ({ratio}), and each other one's is the same within "
            f"{float(100 * MARGIN):.0f} %."
        )
        return "", verdict, []
    if order.tied:
        why = all_tests.why_not_first(order)
        verdict = f"Not known: {worst.name}'s slowdown is the highest ({ratio}), but {why}."
        return "", verdict, [f"Against {line}." for line in order.why_tied]
    verdict = f"That {times}. The next is {following.name} with {text(of)}."
    return f"{worst.name}, in {all_tests.describe_test(place[0])}", verdict, []


def _settled(answer: Answer, order: Ranked, group: RunSet) -> Answer:
    """Add the second sentence, whether a first place holds for other files, or that the seeds are too few for a first.

    And add the command that settles it.
    """
    if not order.enough:
        sentence = order.why_too_few
    elif order.clear or order.holds:
        sentence = order.on_other_files
    else:
        return answer
    more = not order.enough or (not order.holds and order.corpora < len(phrasing.ENOUGH_CORPORA))
    going = any(run.running for run in group.runs)
    command = settling_command(group.plan, corpora=order.enough) if more and not going else ""
    to = "To know of other files" if order.enough else "To settle it"
    doubts = (*answer.doubts, *([f"{to}: {command}"] if command else []))
    sure = f"{answer.sure} {phrasing.capital(sentence)}.".strip()
    return replace(answer, sure=sure, doubts=doubts, settled_by=command)


def _certainty(order: Ranked) -> str:
    """Say how sure a clear first place is: on which files, by how much, and that chance is excluded."""
    by_corpus = gathered((seeds.corpus, value) for seeds, value in order.series[0].values)
    medians = [f"{float(of.median):.2f}" for values in by_corpus.values() if (of := summary(values))]
    each = f": {phrasing.joined(medians)} times" if len(medians) > 1 else ""
    counts = sorted(of.n for _, of in order.order)
    values = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    largest = max(compared.test.p for compared in order.compared if compared.test)
    return (
        f"How sure: {order.on_these_files} it is slowed down most{each}{_times_the_next(order)}. With {values} values "
        f"each it is {phrasing.distinguishable(len(order.compared))} (rank test, p at most {largest:.1g})"
        f"{_small(order)}."
    )


def _small(order: Ranked) -> str:
    """Say that the first leads by little, whatever the test finds; empty where the lead is more."""
    return f", but by less than {float(100 * MARGIN):.0f} %" if order.lead.within_margin else ""


def _times_the_next(order: Ranked) -> str:
    """Say how many times the next one's the first one's is, on these files: with the interval, or on each corpus."""
    lead = order.lead
    if lead.shift is None or lead.ratio is None or lead.interval is None:
        return ""
    if lead.shift.depends:
        ratios = phrasing.joined([f"{float(corpus.value):.2f}" for corpus in lead.shift.corpora])
        return f", which is {ratios} times the next one's"
    value, low, high = format_ratio(lead.ratio, (lead.interval.low, lead.interval.high), apart=True)
    return f", which is {value} times the next one's ({low} to {high} on these files)"


def _slowest(order: Ranked, place: Place) -> Iterator[str]:
    """Return the slowest and the quickest on the aged disk: slowed down most is not slowest."""
    aged, _ = aged_and_control(place[0])
    ranked = rank_by_place([subject for subject, _ in order.order], (aged, place[1], "elapsed"))
    if len(ranked.order) > 1:
        (slowest, longest), (quickest, shortest) = ranked.first, ranked.order[-1]
        longest_of = f"{text(longest)} s{'' if ranked.clear else ' as measured'}"
        yield (
            f"Aged, {slowest.name} is slowest in absolute time ({longest_of}), {quickest.name} quickest "
            f"({text(shortest)} s)."
        )


def _lacking_seeds(subjects: Iterable[tuple[SeedGroup, Summary]], shown: Callable[[Summary], str]) -> Iterator[str]:
    """Name the subjects that have fewer seeds than an order takes."""
    few = [f"{subject.name} ({shown(of)}, {phrasing.several(of.n, 'seed')})" for subject, of in subjects]
    if few:
        yield f"Not in this order, for want of seeds: {', '.join(few)}."


def _unmeasured(group: RunSet) -> Iterator[str]:
    """List the subjects without a cell that ended ok, with the reason."""
    without = [subject for subject in group.groups if not subject.counted]
    reasons = gathered((" ".join(subject.results[0].ended.split()), subject.name) for subject in without)
    for reason, names in reasons.items():
        shown = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"
        yield f"Not measured: {', '.join(names)} ({shown})."


def _count_aged(order: Ranked, place: Place) -> Iterator[str]:
    """Return the slowdown of all subjects."""
    if len(order.order) < 2 or not order.enough:
        return
    pairs = {subject.name: aged_pair(subject, place, "elapsed") for subject, _ in order.order}
    known = {name: pair for name, pair in pairs.items() if pair}
    judged = dict(zip(known, judge([*known.values()], order.first[0].host), strict=True))
    slower = [name for name, compared in judged.items() if compared.verdict is DifferenceVerdict.HIGHER]
    each = all(judged[name].on_each for name in slower)
    alike = [name for name, compared in judged.items() if compared.alike]
    others = ", ".join(name for name in pairs if name not in (*slower, *alike))
    yield (
        f"{len(slower)} of {len(pairs)} are slower on their aged disk {phrasing.on_these_files(order.corpora, each)}"
        + (f"; the same within 5 %: {', '.join(alike)}" if alike else "")
        + (f"; not known of {others}." if others else ".")
    )


def _aged_least(order: Ranked) -> Iterator[str]:
    """Return the subject that aged least."""
    if len(order.order) < 3:
        return
    subject, least = order.order[-1]
    rest = Ranked(order.order[::-1], order.series[::-1])
    if not order.enough:
        words = f"The smallest slowdown, as measured, is {subject.name}'s: {text(least)}."
    elif rest.tied:
        words = f"Least slowed down is {subject.name} ({text(least)}), but {all_tests.why_not_first(rest)}."
    else:
        words = f"{subject.name} aged least: {text(least)}."
    yield words


def answer_others(group: RunSet) -> Iterator[Answer]:
    """Answer for runs without an aged disk: which stored the most, if steps counted it; else which was quickest."""
    for measure in main_measures(group.groups)[:1]:
        subjects = [(subject, subject.measured(measure)) for subject in group.groups]
        if measure == ALL_STEPS:
            clock = "guest" if group.plan.clock == "virtual" else "real"
            words = f"{ALL_STEPS_TITLE}, together take {{}} of {clock} time"
            yield _compared(group, "Which was the quickest?", words, subjects, highest=False)
        else:
            yield _compared(group, "Which held the most data?", "it held {}", subjects, highest=True)


def _compared(
    group: RunSet, question: str, words: str, subjects: Sequence[tuple[SeedGroup, Series | None]], *, highest: bool
) -> Answer:
    """Compare the first by a sum or a count with the others; a first that is not clear is not named."""
    everyone = rank_by_median(subjects, highest=highest)
    if not everyone.order:
        return Answer(question, "That was not measured: no cell has all that it takes.")
    unit = next(series.unit for _, series in subjects if series)
    order, left_out = everyone.split_by_seeds()
    (first, of), following = order.first, order.order[1:]

    def shown(summary: Summary) -> str:
        return f"{text(summary, unit)} {unit_name(unit)}"

    sentence, named, sure = words.format(shown(of)), "", ""
    nearest = f"The next is {following[0][0].name} with {shown(following[0][1])}." if following else ""
    if not following:
        named = first.name
        verdict = f"It alone was run: {sentence}."
    elif not order.enough:
        measured = f"As measured, {first.name}: {sentence}. {nearest}"
        verdict = f"Not known yet. {measured}"
    elif order.tied:
        names = [subject.name for subject, _ in order.tied if subject not in order.opposed]
        why = phrasing.not_distinguishable(names, [subject.name for subject in order.opposed])
        verdict = f"Not known: {first.name} leads ({sentence}), but {why}."
    else:
        named = first.name
        verdict = f"{phrasing.capital(sentence)}. {nearest}"
        sure = f"How sure: it is {phrasing.distinguishable(len(following))} {order.on_these_files}{_small(order)}."
    left = [
        subject.name for subject, series in subjects if subject.counted and (series is None or series.summary is None)
    ]
    because = [f"Not in this order, for want of some figure: {', '.join(left)}."] if left else []
    doubts = (*_lacking_seeds(left_out, shown), *_unmeasured(group))
    title = "Data held" if highest else phrasing.capital(ALL_STEPS_TITLE)
    chart = sort_subjects(title, everyone, group, unit=unit) if following else None
    answer = Answer(question, verdict, tuple(because), doubts, named, sure, chart=chart)
    return _settled(answer, order, group) if following else answer
