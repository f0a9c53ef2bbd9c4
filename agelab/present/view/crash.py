"""What crash states have shown: a table, and the shortest reproduction of each violation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from agelab.base.verbs import as_called
from agelab.machine.drive.record import Entry, RequestKind
from agelab.present.report.blocks import Block, Line, Table, Text, headings
from agelab.runner.crash.crash import Again, Answer, Replayed, Violation
from agelab.runner.crash.oracle import SOURCES, Call, Found, Kind, error_name
from agelab.stats.phrasing import several

MOST_CALLS, MOST_ALSO = 8, 3
"""Of a violation: the last calls, and what else is wrong in its state."""


def answer_blocks(answer: Answer) -> Iterator[Block]:
    """Yield what was looked at, and each violation."""
    question = answer.question
    mount = f", {','.join(question.options)}" if question.options else ""
    ignoring = f", on a drive that ignores {' and '.join(question.ignored)}" if question.ignored else ""
    yield Line(
        f"{answer.name}: {question.workload} on {question.filesystem} ({question.defaults}{mount}), "
        f"{question.mib} MiB, kernel {question.kernel}{ignoring}"
    )
    losses = Counter(_sort(found)[0] for found in answer.violations)
    lost, damage, known = (losses[sort] for sort in range(3))
    columns = ("workloads", "states", "distinct disks", "looked at", "promises lost", "damage", "known")
    numbers = (answer.workloads, answer.states, answer.disks, answer.looked, lost, damage, known)
    yield Table(headings(*columns, numbers=columns), [[str(number) for number in numbers]])
    rate = answer.looked / answer.look_seconds if answer.look_seconds else 0
    yield Line(
        f"recorded in {answer.record_seconds:.0f} s, looked at in {answer.look_seconds:.0f} s "
        f"({rate:.2f} disks a second), {several(answer.boots, 'guest')}"
    )
    if answer.looked < answer.disks:
        kinds = ", ".join(f"{loss}: {judged} of {states}" for loss, (judged, states) in answer.losses.items())
        yield Text(
            f"the budget ended before {answer.disks - answer.looked} of {answer.disks} disks were looked at: "
            f"{answer.judged} of {answer.states} states are judged ({kinds})"
        )
    if not answer.promises:
        yield Text(
            "no call of the workload makes anything persist: only what was there before is promised, and that the "
            "filesystem is well"
        )
    rows: list[Sequence[str] | str] = []
    told_of = (*answer.violations, *answer.differences)
    for (_, sort), alike in groupby(sorted(told_of, key=lambda one: (_sort(one), one.rank, one.state)), _sort):
        rows += [f"{sort}:", *_rows(alike, answer)]
    if rows:
        words = ("state", "what is wrong", "where", "why", "calls")
        yield Table(headings(*words, wrapped=words[1:]), rows, caption="The shortest state of each")
        first = next(row for row in rows if not isinstance(row, str))[0]
        yield Line(as_called(f"look at one again: agelab crash replay {answer.name} {first}"))
    for habit, (kept, no) in sorted(answer.habits.items()):
        if not no:
            yield Text(f"not promised: {habit}: in 0 of {kept} states")
    if not lost + damage:
        but = ", but for known damage" if known else ""
        yield Text(f"nothing is wrong in {several(answer.judged, 'state')}{but}")


def _sort(found: Violation) -> tuple[int, str]:
    """Return whose loss it is: the order of its table, and the words above it."""
    torn = ", only where a write is torn" * found.is_torn
    if Kind(found.kind).is_habit:
        return 3, "promised by nobody: filesystems differ (no violation)"
    if found.known:
        return 2, f"known: {found.known}"
    return (0, f"promises lost{torn}") if Kind(found.kind).is_promise else (1, f"the filesystem is damaged{torn}")


def replay_blocks(seen: Replayed) -> Iterator[Block]:
    """Yield what the drive was sent up to the cut, with the calls that had returned, and what is wrong."""
    columns = ("entry", "at, ms", "request", "sector", "sectors", "on the disk")
    rows: list[Sequence[str] | str] = []
    entries, state = seen.part.entries[: seen.state.prefix], seen.state
    there = seen.part.there(state)
    for number, entry in enumerate(entries):
        rows += [_call(call) for call in seen.calls if call.entries == number]
        since = f"{(entry.arrived - entries[0].arrived) / 1e6:.3f}"
        place = (str(entry.sector), str(entry.sectors)) if entry.sectors else ("", "")
        if entry.kind is not RequestKind.KEPT:
            rows.append([str(number), since, entry.kind.name.lower(), *place, fate(entry, there.get(number, 0))])
    rows += [_call(call) for call in seen.calls if call.entries == len(entries) <= state.returned]
    rows.append("the power goes")
    yield Table(headings(*columns, numbers=columns[:2] + columns[3:5]), rows, caption=f"State {state}")
    yield Line(f"disk {seen.disk}")
    yield from (Text(told(found)) for found in (*seen.found, *seen.differences))
    if seen.known:
        yield Text(f"known: {seen.known}")
    if not seen.found:
        yield Line("nothing is wrong")
    if seen.times > 1:
        yield Line(f"the same in {seen.same} of {seen.times} guests")


def told(found: Found | Violation) -> str:
    """Say what is wrong, and where it is written that it must not be."""
    what = f"{found.kind}: {found.path} ({found.why})" if found.path else f"{found.kind}: {found.why}"
    call = "rename" if found.kind == Kind.HALF else found.why.partition(" ")[0]
    promise = SOURCES.get(call, "") if Kind(found.kind).is_promise else ""
    return f"{what}; {promise}" if promise else what


def again_blocks(seen: Sequence[Again]) -> Iterator[Block]:
    """Yield each violation, and whether it came again."""
    columns = ("state", "what was wrong", "where", "disk", "verdict")
    rows = [
        [one.violation.state, one.violation.kind, one.violation.path, *map(_same, (one.same_disk, one.same_verdict))]
        for one in seen
    ]
    if rows:
        yield Table(headings(*columns, wrapped=columns[1:3]), rows)
    same = sum(one.same_disk and one.same_verdict for one in seen)
    yield Line(f"{same} of {len(seen)} violations are the same again" if seen else "nothing was wrong in that run")


def _same(it_is: bool) -> str:
    return "the same" if it_is else "another"


def _call(call: Call) -> str:
    failed = f", {error_name(call.error)}" if call.error else ""
    return f"returned: {call.text or 'mount'}{failed}"


def fate(entry: Entry, sectors: int) -> str:
    """Say what of a request is on the disk, of which so many sectors are; nothing of one that changes none."""
    if not entry.changes:
        return ""
    if 0 < sectors < entry.sectors:
        return f"{sectors} of {entry.sectors} sectors"
    return "yes" if sectors else "lost"


def _rows(violations: Iterable[Violation], answer: Answer) -> Iterator[list[str]]:
    """Yield all that is wrong in each state, the state and its calls once."""
    for state, same in groupby(violations, attrgetter("state")):
        shortest = [*same]
        own = [(found.kind, found.path, found.why) for found in shortest]
        also = [(found.kind, found.path, found.why) for found in shortest[0].also]
        more = [row for row in also if row not in own]
        own += more[:MOST_ALSO]
        if len(more) > MOST_ALSO:
            own.append((f"and {len(more) - MOST_ALSO} more", "", ""))
        calls = "; ".join(shortest[0].calls[-MOST_CALLS:])
        if len(shortest[0].calls) > MOST_CALLS:
            calls = f"{len(shortest[0].calls) - MOST_CALLS} calls; {calls}"
        for number, (kind, path, why) in enumerate(own):
            if kind in answer.habits:
                kept, no = answer.habits[kind]
                why = f"in {no} of {kept + no} states"
            yield [state * (number == 0), kind, path, why, calls * (number == 0)]
