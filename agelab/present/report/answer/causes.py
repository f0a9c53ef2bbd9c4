"""Why a test takes longer on an aged disk: extra work of drive and processor, and a worse layout."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from agelab.analysis.cells import SeedGroup
from agelab.analysis.judge import judge
from agelab.present.report.answer import all_tests
from agelab.present.report.numbers import number, percent, text
from agelab.present.report.step_selection import aged_and_control
from agelab.scenario.step import AGED_MAP, CONTROL_MAP, StepId
from agelab.stats.series import Place, SeriesPair, Summary
from agelab.stats.verdict import ComparedSeries, DifferenceVerdict

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
    old, new = (subject.series.get((one, repetition, metric)) for one in aged_and_control(step))
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
    said = {
        DifferenceVerdict.HIGHER: f"more than chance makes {whole.judged.where}, so it aged",
        DifferenceVerdict.LOWER: f"less, by more than chance makes {whole.judged.where}: it did not age",
        DifferenceVerdict.SAME: "the same within 5 %: it did not age",
        DifferenceVerdict.EQUAL: "none: it did not age",
        DifferenceVerdict.BELOW: "no more than this host makes by chance",
    }.get(whole.judged.verdict, f"whether it aged is not known: {whole.judged.reason}")
    said = "as measured" if whole.judged.too_few else said
    yield (
        f"On {subject.name} {all_tests.describe_test(place[0])} takes "
        f"{text(whole.aged)} s aged and {text(whole.unaged)} s "
        f"unaged ({number(whole.difference)} s difference, {said})."
    )
    if whole.difference <= 0 or not whole.may_be:
        return
    parts = [
        (one, words) for metric, words in DRIVE_TIMES if (one := aged_difference(subject, place, metric))
    ]
    cpu = _processor(subject, place)
    if not parts:
        yield f"Of that, {number(cpu)} s is processor time; this drive does not say where its own time went."
        return
    longer = sorted(
        ((one.difference, words) for one, words in parts if one.difference > 0 and one.may_be),
        reverse=True,
    )
    if longer:
        shown = ", ".join(f"{number(value)} s {words}" for value, words in longer)
        yield (
            f"The drive spends more time on the aged disk: {shown}. Processor time differs by {number(cpu)} s. "
            "(Differences of medians; they need not add up.)"
        )
    position = sum(
        (value for value, words in longer if words in (DRIVE_TIMES[0][1], DRIVE_TIMES[1][1])), Fraction()
    )
    if 2 * position > whole.difference:
        yield (
            f"So it is mostly positioning: the way to where the next data lie, and the wait until they come round "
            f"({number(position)} s more of it){_seeks(subject, place)}."
        )
    elif 2 * cpu > whole.difference:
        yield "So it is mostly the filesystem's own work on the processor, not the drive."


def _processor(subject: SeedGroup, place: Place) -> Fraction:
    """Return the difference in processor time in seconds."""
    found = [one for metric in ("cpu_user", "cpu_system") if (one := aged_difference(subject, place, metric))]
    return sum((one.difference for one in found), Fraction())


def _seeks(subject: SeedGroup, place: Place) -> str:
    """Describe additional seeks, if there are any."""
    one = aged_difference(subject, place, "seeks")
    if one is None or one.difference <= 0 or not one.may_be:
        return ""
    return f"; the arm moves {number(one.aged.median, 0)} times instead of {number(one.unaged.median, 0)}"


def compare_with_next(worst: SeedGroup, following: SeedGroup, place: Place) -> Iterator[str]:
    """Compare the first with the next: the additional time of each as a share of its unaged time."""
    ours, theirs = (_shares(one, place) for one in (worst, following))
    if not ours or not theirs:
        return
    yield (
        f"Why {worst.name} and not {following.name}: of its own unaged time {worst.name} takes {ours[0]} more for "
        f"positioning, {ours[1]} for moving data, {ours[2]} on the processor; {following.name} "
        f"{theirs[0]}, {theirs[1]} and {theirs[2]}."
    )


def _shares(subject: SeedGroup, place: Place) -> list[str]:
    """Return the additional time for positioning, transfer and processor in % of the unaged time; none unless all."""
    whole = aged_difference(subject, place, "elapsed")
    found = [aged_difference(subject, place, metric) for metric, _ in DRIVE_TIMES[:3]]
    parts = [one.difference for one in found if one]
    if whole is None or not whole.unaged.median or len(parts) < len(found):
        return []
    seek, rotation, transfer = parts
    shares = (
        100 * one / whole.unaged.median for one in (seek + rotation, transfer, _processor(subject, place))
    )
    return [f"{number(one, 0)} %" for one in shares]


def explain_layout(subject: SeedGroup, place: Place) -> Iterator[str]:
    """Describe what is laid out worse on the aged disk than on the control and affects a test of this kind."""
    found = []
    known = False
    writes = StepId.parse(place[0]).name in WRITE_TESTS
    for metric, higher_is_worse, words in WRITE_METRICS if writes else READ_METRICS:
        last = max((at for at in subject.series if at[0] == AGED_MAP and at[2] == metric), default=None)
        if last is None:
            continue
        there = subject.series.get((CONTROL_MAP, last[1], metric))
        one = _difference(subject, SeriesPair(there, subject.series[last])) if there else None
        if one is None:
            continue
        known = True
        if one.may_be and (one.difference > 0) == higher_is_worse:
            found.append(f"{percent(one.aged.median)} {words} ({percent(one.unaged.median)} unaged)")
    if found:
        yield f"What lies worse on {subject.name}'s aged disk: {'; '.join(found)}."
    elif known:
        yield f"No measure of {subject.name}'s layout is worse than the unaged disk's."
    else:
        yield f"Where things lie on {subject.name} was not measured."
