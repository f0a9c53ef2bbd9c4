"""What a crash run prints: how much was looked at, what was found, and the way to a cut."""

from dataclasses import replace

import pytest

from agelab.machine.drive.record import Entry
from agelab.machine.drive.record import RequestKind as Request
from agelab.present.report import crash_page
from agelab.present.report.blocks import Line, Table, Text
from agelab.present.view.crash import answer_blocks, replay_blocks, told
from agelab.runner.crash.crash import Answer, Replayed, Violation
from agelab.runner.crash.guests import Question
from agelab.runner.crash.oracle import Call, Found, Kind
from agelab.runner.crash.states import Recorded, State

QUESTION = Question("one", "ext3", "debian:6.1", "period", ("noatime",), 64, 1, 4, 1.0)
LOST = Violation("2:4:-3", "ab", ("create A/new", "fsync A"), Kind.MISSING, "A/new", "fsync A", (0, 2, 2, 4, 1))
TORN = Violation("0:1:t1", "cd", ("sync",), Kind.MOUNT, "", "EBADMSG", (1, 1, 0, 1, 0))
EMPTIED = Violation("0:3", "ef", ("rename A/new A/foo",), Kind.NEITHER, "A/foo", "not promised", (0, 1, 0, 3, 0))


def texts(answer: Answer) -> str:
    return "\n".join(block.text for block in answer_blocks(answer) if isinstance(block, Line | Text))


def tables(answer: Answer) -> list[Table]:
    return [block for block in answer_blocks(answer) if isinstance(block, Table)]


def test_the_answer_says_how_many_of_how_many() -> None:
    whole = Answer("r", QUESTION, states=90, disks=40, looked=40, look_seconds=8, workloads=3, boots=1)
    assert "the budget ended" not in texts(whole)
    assert "(5.00 disks a second)" in texts(whole)
    part = replace(whole, looked=10, judged=20, losses={"writes lost": [9, 50]}, promises=False)
    assert (
        "the budget ended before 30 of 40 disks were looked at: 20 of 90 states are judged (writes lost: 9 of 50)"
        in texts(part)
    )
    assert "no call of the workload makes anything persist" in texts(part)


def test_whose_loss_it_is_stands_above_it() -> None:
    known = replace(TORN, state="0:2:t1", known="a torn superblock")
    answer = Answer(
        "r",
        QUESTION,
        violations=[LOST, TORN, known],
        habits={Kind.NEITHER: [83, 71], Kind.UNNAMED: [9, 0]},
        differences=[EMPTIED],
    )
    numbers, found = tables(answer)
    assert numbers.rows[0][-3:] == ["1", "1", "1"]
    assert [row if isinstance(row, str) else (row[0], row[3]) for row in found.rows] == [
        "promises lost:",
        ("2:4:-3", "fsync A"),
        "the filesystem is damaged, only where a write is torn:",
        ("0:1:t1", "EBADMSG"),
        "known: a torn superblock:",
        ("0:2:t1", "EBADMSG"),
        "promised by nobody: filesystems differ (no violation):",
        ("0:3", "in 71 of 154 states"),
    ]
    assert "agelab crash replay r 2:4:-3" in texts(answer)
    assert f"not promised: {Kind.UNNAMED}: in 0 of 9 states" in texts(answer)
    assert "nothing is wrong" not in texts(answer)
    assert len(tables(Answer("r", QUESTION))) == 1


@pytest.mark.parametrize(
    ("violations", "said"),
    [([], "nothing is wrong in 1 state"), ([replace(TORN, known="x")], "1 state, but for known damage")],
)
def test_known_damage_is_nothing_new(violations: list[Violation], said: str) -> None:
    assert texts(Answer("r", QUESTION, judged=1, violations=violations)).endswith(said)


def test_all_that_is_wrong_in_a_state_is_told() -> None:
    others = tuple(Found(Kind.CONTENT, f"A/{number}", "sync") for number in range(5))
    _, found = tables(Answer("r", QUESTION, violations=[replace(LOST, also=others)]))
    assert [row[:3] for row in found.rows[1:]] == [
        ["2:4:-3", Kind.MISSING, "A/new"],
        *(["", Kind.CONTENT, f"A/{number}"] for number in range(3)),
        ["", "and 2 more", ""],
    ]


def test_a_replay_shows_calls_and_requests_up_to_the_cut() -> None:
    entries = [
        Entry(Request.WRITE, 8, 2, 0, 1, 512),
        Entry(Request.FLUSH, 0, 0, 2_000_000, 2_000_001, 2048),
        Entry(Request.FUA, 10, 4, 3_000_000, 3_000_001, 2560),
    ]
    made = [Call(0, "", 0, {}), Call(1, "unlink A/no", 2, {}), Call(3, "fsync A", 0, {})]
    part = Recorded(2, 0, entries, frozenset([0, 1, 3]))

    def shown(state: State) -> list[object]:
        seen = Replayed(state, "ab", part, made, [Found(Kind.MISSING, "A/new", "fsync A")], [])
        [table] = [block for block in replay_blocks(seen) if isinstance(block, Table)]
        return [row if isinstance(row, str) else [*row[2:3], row[-1]] for row in table.rows]

    assert shown(State(2, 3, (0,))) == [
        "returned: mount", ["write", "lost"], "returned: unlink A/no, ENOENT", ["flush", ""], ["fua", "yes"],
        "returned: fsync A", "the power goes",
    ]  # fmt: skip
    spans, moments = crash_page.timeline(part, made, State(2, 3, (0,)))
    assert [(span.name, span.begin, span.end, span.shown, span.kind) for span in spans] == [
        ("0 write 8+2", 0, 1, "lost", crash_page.LOST),
        ("unlink A/no", 1, 1, "failed", crash_page.CALL),
        ("1 flush", 2, 3, "", crash_page.FLUSH),
        ("2 fua 10+4", 4, 5, "", crash_page.THERE),
        ("fsync A", 5, 5, "returned", crash_page.CALL),
    ]
    assert moments[::2] == ["0.00", "2.00", "3.00"]
    assert shown(State(2, 3, torn=1))[-2:] == [["fua", "1 of 4 sectors"], "the power goes"]


def test_a_lost_promise_is_told_with_its_source() -> None:
    assert told(LOST).startswith("a promised name is missing: A/new (fsync A); fsync(2): data and metadata")
    assert told(TORN) == "it cannot be mounted: EBADMSG"
    assert "rename(2): a name that is replaced" in told(Found(Kind.HALF, "A/old or A/new", "sync"))


@pytest.mark.parametrize(("times", "same", "said"), [(1, 1, False), (20, 19, True)])
def test_a_replay_of_many_guests_says_how_many_found_the_same(times: int, same: int, said: bool) -> None:
    part = Recorded(2, 0, [], frozenset([0]))
    seen = Replayed(State(2, 0), "ab", part, [Call(0, "", 0, {})], [], [], times=times, same=same)
    lines = [block.text for block in replay_blocks(seen) if isinstance(block, Line)]
    assert ("the same in 19 of 20 guests" in lines) is said
