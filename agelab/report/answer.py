"""The answer that a stranger looks for, in plain words, and no more of it than the run seeds bear out."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from agelab.report.gather import Group, Subject
from agelab.report.model import Answer, Cell, Column, Table
from agelab.report.numbers import number, percent, text, unit_name
from agelab.report.ranked import Ranked, by_summary, ranked
from agelab.report.steps import AGED, CONTROL, MAP, charted
from agelab.stats.floor import SEEDS_NEEDED, Difference, Verdict
from agelab.stats.series import Place, Series

DOES = {
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
"""What the tests of our scenarios do."""
WORSE = (
    ("fragmented_files", True, "of its files lie in several pieces"),
    ("layout_score", False, "of its blocks follow the one before in their file"),
    ("locality_score", False, "of its files begin right behind the file listed before them"),
    ("free_usable_1mib", False, "of its free space is in runs of 1 MiB and more"),
)
"""Measures of a map, whether higher is worse, and what a share of it is."""
DRIVE = (
    ("busy_seek", "moving its arm"),
    ("busy_rotation", "waiting for the sector to come round"),
    ("busy_transfer", "moving data"),
    ("busy_overhead", "on the commands themselves"),
)
"""Where a modelled drive's time goes."""


def tests(group: Group) -> list[Place]:
    """Each test's slowdown: of one that is made at several points of a history the last."""
    last: dict[str, Place] = {}
    for place in group.places:
        step, repetition, metric = place
        if metric == "slowdown" and repetition >= last.get(step, place)[1]:
            last[step] = place
    return list(last.values())


def answers(group: Group) -> Iterator[Answer]:
    """What the group's runs say, the most asked for first."""
    if not any(subject.counted for subject in group.subjects):
        yield Answer(
            "What came out?",
            "Nothing yet: no cell has come to its end."
            if any(entry.status == "running" for _, entry in group.entries)
            else "Nothing: no cell ended ok.",
            tuple(dict.fromkeys(f"{subject.name}: {entry.ran.why}" for subject, entry in group.entries)),
        )
    elif places := tests(group):
        yield aged(group, places)
    else:
        yield from others(group)


def aged(group: Group, places: Sequence[Place]) -> Answer:
    """Which aged worst, and why."""
    place = next((one for one in places if ranked(group, one).order), None)
    several = len({one.variant for one in group.subjects}) > 1
    question = f"Which {'filesystem' if several else 'of these'} aged worst, and why?"
    if place is None:
        why = next(
            (why for one in group.subjects for at in places for _, why in one.series[at].missing), "no sample"
        )
        return Answer(question, "That was not measured.", (f"No test has a slowdown: {why}.",))
    order = ranked(group, place)
    (worst, worst_of), nexts = order.first, order.order[1:]
    does = _does(place[0])
    times = f"{text(worst_of)} times as long"
    ratio = f"{does} takes {times} on its aged disk as on an unaged one that holds the same files"
    doubts = []
    if not nexts:
        verdict = f"{worst.name} alone was run, so there is nothing to compare it with: {ratio}."
        doubts += [] if order.floored else [f"{_few(order)}; so whether it aged cannot be said."]
    elif not order.floored:
        verdict = (
            f"That cannot be said yet: {order.why_no_floor}. "
            f"As measured, {worst.name} is slowed down most: {ratio}."
        )
        following, of = nexts[0]
        doubts.append(
            f"The next, {following.name}, has {text(of)}. Whether that difference is one nobody knows before each has "
            f"been run with {SEEDS_NEEDED} run seeds."
        )
    elif order.tied:
        names = ", ".join(f"{one.name} ({text(of)})" for one, of in order.tied)
        verdict = (
            f"No single one: {worst.name} is slowed down most ({ratio}), but not by more than run seeds alone move a "
            f"result from {names}."
        )
    else:
        following, of = nexts[0]
        apart = Difference(of, worst_of)
        verdict = (
            f"{worst.name}: {ratio}. The next is {following.name} with {text(of)}; the difference of "
            f"{number(apart.difference)} is more than run seeds alone make (the floor, {number(apart.floor or 0)})."
        )
    because = [*_time(worst, place), *_layout(worst), *_all(order, place), *_least(order)]
    return Answer(question, verdict, tuple(because), tuple(doubts))


def _few(order: Ranked) -> str:
    said = order.why_no_floor
    return said[0].upper() + said[1:]


def _does(step: str) -> str:
    """What a test does, in words."""
    where, _, test = step.rpartition("/")
    return DOES.get(test, f"test {test}") + (f" (drive {where})" if where else "")


def sides(step: str) -> tuple[str, str]:
    """The steps of a test on the aged disk and on its control."""
    where, slash, test = step.rpartition("/")
    return f"{where}{slash}{AGED}{test}", f"{where}{slash}{CONTROL}{test}"


def _more(subject: Subject, place: Place, metric: str) -> Difference | None:
    """From the control to the aged disk."""
    step, repetition, _ = place
    old, new = (subject.series.get((one, repetition, metric)) for one in sides(step))
    if not (old and new and old.summary and new.summary):
        return None
    return Difference(new.summary, old.summary)


def _time(subject: Subject, place: Place) -> Iterator[str]:
    """Where the time went that the test takes more."""
    whole = _more(subject, place, "elapsed")
    if whole is None:
        return
    said = {
        Verdict.B_HIGHER: "more than run seeds make, so it aged",
        Verdict.A_HIGHER: "less, by more than run seeds make: it did not age",
        Verdict.NO_FLOOR: "as measured",
    }.get(whole.verdict, "which is no more than run seeds make: whether it aged cannot be said")
    yield (
        f"On {subject.name} the test takes {text(whole.right)} s aged and {text(whole.left)} s unaged "
        f"({number(whole.difference)} s difference, {said})."
    )
    if whole.difference <= 0:
        return
    parts = [(one, words) for metric, words in DRIVE if (one := _more(subject, place, metric))]
    processor = [one for metric in ("cpu_user", "cpu_system") if (one := _more(subject, place, metric))]
    cpu = sum((one.difference for one in processor), Fraction())
    if not parts:
        yield f"Of that, {number(cpu)} s is processor time; this drive does not say where its own time went."
        return
    more = sorted(
        ((one.difference, words) for one, words in parts if one.difference > 0 and _counts(one)), reverse=True
    )
    if more:
        shown = ", ".join(f"{number(value)} s {words}" for value, words in more)
        yield f"The drive spends more time on the aged disk: {shown}. Processor time differs by {number(cpu)} s."
    position = sum((value for value, words in more if words in (DRIVE[0][1], DRIVE[1][1])), Fraction())
    if 2 * position > whole.difference:
        yield (
            "So it is mostly distance: for the same data the drive goes to more places, or to farther ones "
            f"({number(position)} s more of that)."
        )
    elif 2 * cpu > whole.difference:
        yield "So it is mostly the filesystem's own work on the processor, not the drive."


def _counts(one: Difference) -> bool:
    return one.verdict not in (Verdict.BELOW, Verdict.EQUAL)


def _layout(subject: Subject) -> Iterator[str]:
    """What lies worse on the aged disk than on the control."""
    found = []
    known = False
    for metric, higher_is_worse, words in WORSE:
        last = max((at for at in subject.series if at[0] == AGED + MAP and at[2] == metric), default=None)
        if last is None:
            continue
        old, new = subject.series[last].summary, None
        if there := subject.series.get((CONTROL + MAP, last[1], metric)):
            new = there.summary
        if old is None or new is None:
            continue
        known = True
        one = Difference(new, old)
        if _counts(one) and (one.difference > 0) == higher_is_worse:
            found.append(f"{percent(old.median)} {words} ({percent(new.median)} unaged)")
    if found:
        yield f"What lies worse on {subject.name}'s aged disk: {'; '.join(found)}."
    elif known:
        yield f"No measure of {subject.name}'s layout is worse than the unaged disk's."
    else:
        yield f"Where things lie on {subject.name} was not measured."


def _all(order: Ranked, place: Place) -> Iterator[str]:
    """How many aged at all."""
    if len(order.order) < 2 or not order.floored:
        return
    changes = [(one.name, _more(one, place, "elapsed")) for one, _ in order.order]
    slower = [name for name, one in changes if one and one.verdict is Verdict.B_HIGHER]
    others = ", ".join(name for name, _ in changes if name not in slower)
    yield (
        f"{len(slower)} of {len(changes)} are slower on their aged disk by more than run seeds make"
        + (f"; of {others} that cannot be said." if others else ".")
    )


def _least(order: Ranked) -> Iterator[str]:
    """The other end."""
    if len(order.order) < 3:
        return
    subject, summary = order.order[-1]
    rest = by_summary(order.order, highest=False)
    if not order.floored:
        words = f"The smallest slowdown, as measured, is {subject.name}'s: {text(summary)}."
    elif rest.tied:
        names = ", ".join(one.name for one, _ in rest.tied)
        words = f"Least slowed down is {subject.name} ({text(summary)}), which the floor does not tell from {names}."
    else:
        words = f"{subject.name} aged least: {text(summary)}."
    yield words


def test_by_test(group: Group, places: Sequence[Place], where: str) -> Table:
    """For each test the highest slowdown, the next, and what may be said of the difference."""
    rows = []
    for place in places:
        order = ranked(group, place)
        if len(order.order) < 2:
            continue
        step, repetition, _ = place
        (subject, summary), (following, of) = order.order[:2]
        apart = Difference(of, summary)
        floor = apart.floor
        rows.append(
            (
                Cell(step if repetition == 1 else f"{step} {repetition}"), Cell(_does(step)), Cell(subject.name),
                Cell(text(summary), float(summary.median)), Cell(f"{following.name} {text(of)}"),
                Cell(number(apart.difference, 3), float(apart.difference)),
                Cell("–") if floor is None else Cell(number(floor, 3), float(floor)),
                Cell(apart.why_no_floor or ("below the floor" if order.tied else "above the floor")),
            )
        )  # fmt: skip
    columns = ("test", "what it does", "slowed down most", "times", "next", "difference", "floor", "verdict")
    return Table(
        f"{where}-worst",
        "Test by test: what is slowed down most, and whether that is more than run seeds make",
        tuple(Column(name, name in ("times", "difference", "floor")) for name in columns),
        tuple(rows),
    )


def others(group: Group) -> Iterator[Answer]:
    """Of runs without an aged disk: what held the most, where steps have counted it; else which was the quickest."""
    held = [place for place in group.places if place[2] == "content_bytes"]
    if held:
        found = [(one, one.series.get(held[-1])) for one in group.subjects]
        yield _compared("Which held the most data?", "it held {}", found, highest=True)
        return
    steps = charted(group)
    if steps:
        found = [(one, one.total(steps, "elapsed")) for one in group.subjects]
        words = "all steps together take {} of guest time"
        yield _compared("Which was the quickest?", words, found, highest=False)


def _compared(
    question: str, words: str, found: Sequence[tuple[Subject, Series | None]], *, highest: bool
) -> Answer:
    """The first by a sum or a count, and the next; nobody below the floor."""
    order = by_summary([(one, series.summary if series else None) for one, series in found], highest=highest)
    if not order.order:
        return Answer(question, "That was not measured: no cell has all that it takes.")
    unit = next(series.unit for _, series in found if series)
    (first, of), following = order.first, order.order[1:]
    said = words.format(f"{text(of, unit)} {unit_name(unit)}")
    if not following:
        return Answer(question, f"{first.name} alone was run: {said}.")
    nearest = f"The next is {following[0][0].name} with {text(following[0][1], unit)} {unit_name(unit)}."
    if not order.floored:
        verdict = (
            f"That cannot be said yet: {order.why_no_floor}. As measured, {first.name}: {said}. {nearest}"
        )
    elif order.tied:
        names = ", ".join(one.name for one, _ in order.tied)
        verdict = f"No single one: {first.name} ({said}) is not told by the floor from {names}."
    else:
        verdict = f"{first.name}: {said}. {nearest} The difference is more than run seeds make."
    left = [one.name for one, series in found if series is None or series.summary is None]
    because = [f"Not in this order, for want of some figure: {', '.join(left)}."] if left else []
    return Answer(question, verdict, tuple(because))
