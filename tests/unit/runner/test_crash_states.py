"""Crash states: what of a record may be on a disk, and what must be in its tree."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.base.errors import AgelabError, InputError
from agelab.machine.drive.record import SECTOR, Piece, Record, RequestKind
from agelab.runner.crash import oracle, workloads
from agelab.runner.crash.crash import disks_in_turn
from agelab.runner.crash.guests import Question, Recording
from agelab.runner.crash.oracle import Call, Found, Look, Node
from agelab.runner.crash.oracle import Kind as Wrong
from agelab.runner.crash.states import Loss, Recorded, State
from tests.build.crash_record import record, sectors

NO_WORDS = re.compile("EXT4-fs error")


def part(whole: Record, marks: frozenset[int] = frozenset()) -> Recorded:
    return Recorded(0, 0, whole.entries, marks)


def test_a_disk_is_known_by_what_is_on_it_and_not_by_how_it_came_there(tmp_path: Path) -> None:
    whole = record(
        tmp_path,
        [
            (RequestKind.WRITE, 8, sectors("ab"), 0, 1),
            (RequestKind.WRITE, 8, sectors("a"), 2, 3),
            (RequestKind.WRITE, 9, sectors("b"), 4, 5),
            (RequestKind.WRITE, 8, bytes(2 * SECTOR), 6, 7),
        ],
    )
    both, upper, lower, zeros = Piece(0, 8, 10), Piece(1, 8, 9), Piece(2, 9, 10), Piece(3, 8, 10)
    assert whole.disk([both]) == whole.disk([upper, lower]) == whole.disk([both, upper, lower])
    assert whole.disk([both, zeros]) == whole.disk([]) == "0" * 32
    assert whole.disk([Piece(0, 8, 9)]) == whole.disk([upper]) != whole.disk([lower])
    whole.write_disk(tmp_path / "image", [both, Piece(3, 8, 9)])
    assert (tmp_path / "image").read_bytes() == (bytes(9 * SECTOR) + sectors("b")).ljust(64 * SECTOR, b"\0")


def test_a_record_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgelabError, match="1 of 1 requests had no room"):
        _ = record(tmp_path, [], lost=1).entries


def test_what_was_done_before_a_flush_came_is_not_lost(tmp_path: Path) -> None:
    whole = record(
        tmp_path,
        [
            (RequestKind.WRITE, 0, sectors("a"), 0, 10),
            (RequestKind.WRITE, 1, sectors("b"), 0, 30),
            (RequestKind.FLUSH, 0, b"", 20, 40),
            (RequestKind.FUA, 2, sectors("c"), 50, 60),
            (RequestKind.WRITE, 3, sectors("d"), 61, 70),
        ],
    )
    assert part(whole).volatile(2) == [0, 1]
    assert part(whole).volatile(3) == [1]
    assert part(whole).volatile(5) == [1, 4]
    assert replace(part(whole), ignored=frozenset([RequestKind.FUA])).volatile(5) == [1, 3, 4]
    assert replace(part(whole), ignored=frozenset([RequestKind.FLUSH])).volatile(5) == [0, 1, 4]


def test_a_cache_loses_all_or_one_or_all_but_one_at_each_end_of_an_order(tmp_path: Path) -> None:
    writes = [(RequestKind.WRITE, at, sectors("a"), at, at + 1) for at in range(3)]
    whole = record(tmp_path, [*writes, (RequestKind.FLUSH, 0, b"", 10, 20)])
    names = [str(state) for state in part(whole).omissions()]
    assert names == ["0:3:-0,-1,-2", "0:3:-0", "0:3:-1", "0:3:-2", "0:3:-1,-2", "0:3:-0,-2", "0:3:-0,-1"]
    assert next(str(state) for state in part(whole, frozenset([1])).omissions()) == "0:1:-0"


def test_what_was_discarded_is_zeros_or_as_before(tmp_path: Path) -> None:
    whole = record(
        tmp_path,
        [
            (RequestKind.WRITE, 8, sectors("abc"), 0, 1),
            (RequestKind.DISCARD, 9, sectors("--"), 2, 3),
            (RequestKind.FLUSH, 0, b"", 4, 5),
        ],
    )
    assert part(whole).volatile(2) == [0, 1]
    assert part(whole).volatile(3) == []
    whole.write_disk(tmp_path / "image", part(whole).pieces(State(0, 2)))
    assert (tmp_path / "image").read_bytes()[8 * SECTOR :].startswith(sectors("a") + bytes(2 * SECTOR))
    whole.write_disk(tmp_path / "image", part(whole).pieces(State(0, 2, lost=(1,))))
    assert (tmp_path / "image").read_bytes()[8 * SECTOR :].startswith(sectors("abc"))


def test_the_modelled_drive_keeps_what_it_has_written_back(tmp_path: Path) -> None:
    whole = record(
        tmp_path,
        [
            (RequestKind.WRITE, 8, sectors("ab"), 0, 1),
            (RequestKind.WRITE, 9, sectors("c"), 2, 3),
            (RequestKind.KEPT, 9, sectors("-"), 0, 4),
            (RequestKind.WRITE, 9, sectors("d"), 4, 5),
            (RequestKind.KEPT, 0, sectors("-" * 9), 0, 0),
            (RequestKind.FLUSH, 0, b"", 6, 7),
        ],
    )

    def written(prefix: int) -> bytes:
        whole.write_disk(tmp_path / "image", part(whole).pieces(State(0, prefix, modelled=True)))
        return (tmp_path / "image").read_bytes()[8 * SECTOR : 10 * SECTOR]

    assert [written(prefix) for prefix in (2, 3, 4, 5)] == [
        bytes(2 * SECTOR),
        bytes(SECTOR) + sectors("c"),
        bytes(SECTOR) + sectors("c"),
        sectors("ac"),
    ]
    assert [state.prefix for state in part(whole, frozenset([3])).whole()] == [0, 1, 2, 3, 4, 6]
    assert next(part(whole, frozenset([3])).omissions()).prefix == 3


def test_the_seed_draws_the_subsets(tmp_path: Path) -> None:
    whole = record(tmp_path, [(RequestKind.WRITE, at, sectors("a"), at, at + 1) for at in range(9)])
    drawn = [list(part(whole).drawn(4, seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_however_few_are_looked_at_they_are_of_each_kind_and_each_workload(tmp_path: Path) -> None:
    writes = [(RequestKind.WRITE, at, sectors(f"{at:x}") * 2, at, at + 1) for at in range(0, 16, 2)]
    whole = record(tmp_path, [*writes[:4], (RequestKind.KEPT, 0, sectors("-" * 4), 0, 0), *writes[4:]])
    parts = {0: Recorded(0, 0, whole.entries[:5], frozenset()), 1: Recorded(1, 5, whole.entries[5:], frozenset())}
    question = Question("random", "ext4", "debian:6.1", "today", (), 64, 1, 4, 1.0)
    disks = disks_in_turn(Recording(whole, parts, {}), question)
    first = [same[0] for same in disks.values()][:8]
    assert {state.loss for state in first} == set(Loss)
    assert {state.workload for state in first if state.loss is Loss.WRITES} == {0, 1}
    every = [str(state) for same in disks.values() for state in same]
    assert sorted(every) == sorted(str(state) for part in parts.values() for state in part.states(4, 1))
    assert len(every) == len(set(every))
    assert [*disks] == [*disks_in_turn(Recording(whole, parts, {}), question)]
    assert [*disks] != [*disks_in_turn(Recording(whole, parts, {}), replace(question, seed=2))]


def test_a_name_leads_back_to_its_state(tmp_path: Path) -> None:
    whole = record(
        tmp_path, [(RequestKind.WRITE, 0, sectors("abcd"), 0, 1), (RequestKind.WRITE, 8, sectors("e"), 2, 3)]
    )
    every = [*part(whole).whole(), *part(whole).omissions(), *part(whole).torn(), *part(whole).modelled()]
    assert [State.parse(str(state)) for state in every] == every
    with pytest.raises(InputError, match="another record: workload 0 has 2 entries"):
        part(whole).pieces(State.parse("0:3"))
    for name in ("", "1", "1:2:", "1:2:7", "1:2:t", "x:1"):
        with pytest.raises(InputError, match="no name of a state"):
            State.parse(name)


def file(inode: int, content: str, attributes: str = "0") -> Node:
    return Node("f", len(content), 1, inode, attributes, content)


DIRECTORY = Node("d", 0, 1, 2, "0", "")
BEFORE = {"A": DIRECTORY, "A/foo": file(10, "old"), "A/bar": file(11, "bar")}


def calls(*steps: tuple[str, oracle.Tree]) -> list[Call]:
    """Each call returns at as many entries as calls were before it."""
    return [Call(0, "", 0, BEFORE), *(Call(at, text, 0, tree) for at, (text, tree) in enumerate(steps, 1))]


def wrong(found: oracle.Tree, made: Sequence[Call], returned: int = 9) -> list[tuple[Wrong, str]]:
    return [(one.kind, one.path) for one in oracle.judge(Look(tree=found), made, returned, NO_WORDS)]


NEW = {**BEFORE, "A/new": file(12, "new")}


def test_sync_promises_names_and_content() -> None:
    made = calls(("create A/new", NEW), ("sync", NEW))
    assert wrong(NEW, made) == []
    assert wrong(BEFORE, made) == [(Wrong.MISSING, "A/new")]
    assert wrong({**NEW, "A/new": file(12, "ne")}, made) == [(Wrong.CONTENT, "A/new")]
    assert wrong({**NEW, "A/new": file(12, "new", "x")}, made) == [(Wrong.ATTRIBUTES, "A/new")]


def test_nothing_is_promised_before_the_call_has_returned() -> None:
    made = calls(("create A/new", NEW), ("sync", NEW))
    assert wrong(BEFORE, made, returned=1) == []
    assert wrong({**BEFORE, "A/new": file(12, "")}, made, returned=1) == []


def test_fsync_of_a_new_file_promises_its_content_and_not_its_name() -> None:
    made = calls(("create A/new", NEW), ("fsync A/new", NEW))
    assert wrong(BEFORE, made) == []
    assert wrong({**NEW, "A/new": file(12, "")}, made) == [(Wrong.CONTENT, "A/new")]
    unnamed = Found(Wrong.UNNAMED, "A/new", "not promised")
    assert list(oracle.habits(Look(tree=NEW), made, 9)) == [(unnamed, True)]
    assert list(oracle.habits(Look(tree=BEFORE), made, 9)) == [(unnamed, False)]
    assert list(oracle.habits(Look(tree=BEFORE), made, 1)) == []


def test_fsync_of_a_directory_promises_its_names_and_not_their_content() -> None:
    made = calls(("create A/new", NEW), ("fsync A", NEW))
    assert wrong(BEFORE, made) == [(Wrong.MISSING, "A/new")]
    assert wrong({**NEW, "A/new": file(12, "")}, made) == []


def test_fdatasync_promises_no_attributes() -> None:
    after = {**BEFORE, "A/foo": file(10, "more", "x")}
    made = calls(("setxattr A/foo user.b two", after), ("fdatasync A/foo", after))
    assert wrong({**after, "A/foo": file(10, "more", "0")}, made) == []
    assert wrong(BEFORE, made) == [(Wrong.CONTENT, "A/foo")]


def test_what_was_removed_and_synced_stays_away() -> None:
    after = {path: node for path, node in BEFORE.items() if path != "A/bar"}
    assert wrong(BEFORE, calls(("unlink A/bar", after))) == []
    assert wrong(BEFORE, calls(("unlink A/bar", after), ("fsync A", after))) == [(Wrong.CAME_BACK, "A/bar")]


def test_what_changed_since_its_promise_may_be_old_or_new() -> None:
    after = {**BEFORE, "A/foo": file(10, "neu")}
    made = calls(("write A/foo 0 3", after))
    for content in ("old", "neu", "ol"):
        assert wrong({**BEFORE, "A/foo": file(10, content)}, made) == []
    assert wrong({path: node for path, node in BEFORE.items() if path != "A/foo"}, made) == [(Wrong.MISSING, "A/foo")]


def test_a_rename_loses_neither_file() -> None:
    after = {"A": DIRECTORY, "A/bar": BEFORE["A/foo"]}
    made = calls(("rename A/foo A/bar", after))
    assert wrong(BEFORE, made) == wrong(after, made) == []
    assert wrong({"A": DIRECTORY, "A/bar": BEFORE["A/bar"]}, made) == [(Wrong.HALF, "A/bar or A/foo")]
    assert (Wrong.CONTENT, "A/bar") in wrong({"A": DIRECTORY, "A/bar": file(10, "")}, made)
    assert (Wrong.MISSING, "A/bar") in wrong({"A": DIRECTORY, "A/foo": BEFORE["A/foo"]}, made)


def test_an_empty_file_in_the_place_of_another_is_told_and_breaks_no_promise() -> None:
    after = {"A": DIRECTORY, "A/foo": file(12, "new"), "A/bar": BEFORE["A/bar"]}
    made = calls(("create A/new", NEW), ("rename A/new A/foo", after))
    empty = {**after, "A/foo": file(12, "")}
    assert wrong(empty, made) == []
    neither = Found(Wrong.NEITHER, "A/foo", "not promised")
    for tree, whole in ((BEFORE, True), (after, True), (empty, False)):
        assert list(oracle.habits(Look(tree=tree), made, 9)) == [(neither, whole)]
    moved = {**BEFORE, "A/moved": file(12, "new")}
    made = calls(("create A/new", NEW), ("rename A/new A/moved", moved))
    for tree, kept in ((BEFORE, []), (moved, [True]), ({**BEFORE, "A/moved": file(12, "")}, [False])):
        found = list(oracle.habits(Look(tree=tree), made, 9))
        assert found == [(Found(Wrong.EMPTIED, "A/moved", "not promised"), one) for one in kept]
    synced = calls(("create A/new", NEW), ("fsync A/new", NEW), ("rename A/new A/foo", after))
    assert wrong(empty, synced) == [(Wrong.CONTENT, "A/foo")]


def test_what_is_known_of_a_torn_write_explains_no_other_damage() -> None:
    torn = [
        Found(Wrong.MOUNT, "", "EBADMSG"),
        Found(Wrong.FSCK, "", "exit 4: Superblock checksum does not match superblock"),
    ]
    assert "e2fsck(8)" in oracle.known("ext4", torn)
    assert not oracle.known("xfs", torn)
    assert not oracle.known("ext4", torn[:1])
    assert not oracle.known("ext4", [*torn, Found(Wrong.MISSING, "A/new", "sync")])


def test_the_check_of_the_users_is_a_promise_and_what_it_says_ends_at_a_word() -> None:
    look = Look(mount=117, check=3, checked="page 7\nis " + "torn " * 99)
    mount, check = oracle.judge(look, [], 0, NO_WORDS)
    assert (mount.why, mount.kind.is_promise) == ("EUCLEAN", False)
    assert check.kind.is_promise and check.why.startswith("exit 3: page 7 is torn ")
    assert check.why.endswith(" torn ...")


def test_a_call_that_failed_promises_nothing() -> None:
    made = [*calls(("create A/new", NEW)), Call(2, "sync", 5, NEW)]
    assert wrong(BEFORE, made) == []


def test_what_unseen_calls_have_touched_may_be_anything() -> None:
    after = {**NEW, "A/foo": file(10, "neu"), "A/dir": DIRECTORY}
    made = calls(("sync", BEFORE), ("sync", after))
    made[2] = replace(made[2], touched=frozenset(["A/new", "A/foo", "A/dir"]))
    odd = {**BEFORE, "A/foo": file(10, "o"), "A/new": file(12, ""), "A/dir/below": file(13, "")}
    assert wrong(odd, made, returned=1) == []
    assert wrong({**odd, "A/bar": file(11, "")}, made, returned=1) == [(Wrong.CONTENT, "A/bar")]
    assert wrong(BEFORE, made) == [(Wrong.MISSING, "A/dir"), (Wrong.CONTENT, "A/foo"), (Wrong.MISSING, "A/new")]


def test_what_no_call_made_never_was() -> None:
    assert wrong({**BEFORE, "A/ghost": file(13, "")}, calls()) == [(Wrong.NEVER_WAS, "A/ghost")]


def test_a_directory_that_cannot_be_read_is_told_as_such() -> None:
    found = {**BEFORE, "A/unreadable": Node("?", 0, 0, 0, "0", "")}
    assert wrong(found, calls()) == [(Wrong.UNREADABLE, "A")]


def test_a_disk_that_is_not_well_is_told_without_any_promise() -> None:
    look = Look(mount=117, fsck=4, said="bad  inode", kernel=("fine", "EXT4-fs error (device x): bad"))
    assert list(oracle.judge(look, calls(), 9, NO_WORDS)) == [
        Found(Wrong.MOUNT, "", "EUCLEAN"),
        Found(Wrong.FSCK, "", "exit 4: bad inode"),
        Found(Wrong.KERNEL, "", "EXT4-fs error (device x): bad"),
    ]
    assert [found.kind for found in oracle.judge(Look(ended="panic"), calls(), 9, NO_WORDS)] == [Wrong.END]


def test_each_operation_is_followed_by_each_call_that_makes_it_persist() -> None:
    one = workloads.named("one")
    assert ("write A/foo 0 4096", "fdatasync A/foo") in one
    assert ("rename A/foo B/moved", "fsync B") in one
    assert len(set(one)) == len(one)
    assert all(ops[-1].split()[0] in ("sync", "fsync", "fdatasync") for ops in workloads.named("two"))


def test_the_seed_draws_random_workloads() -> None:
    assert workloads.named("random", 1) == workloads.named("random", 1) != workloads.named("random", 2)
    assert all("; ".join(calls) and workloads.named("; ".join(calls)) for calls in workloads.named("random"))


def test_fsx_changes_one_file_at_any_byte() -> None:
    made = workloads.named("fsx", 1)
    assert made == workloads.named("fsx", 1) != workloads.named("fsx", 2)
    assert {word.split()[1] for calls in made for word in calls if word != "sync"} == {"A/foo"}
    assert all(workloads.named("; ".join(calls)) == [calls] for calls in made)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("three", "no call that agelab makes"),
        ("create A/x; fsync", "no call that agelab makes"),
        ("create /etc/x", "leaves the filesystem"),
        ("create A/../../x", "leaves the filesystem"),
        ("write A/foo 0 -1", "needs numbers"),
        ("write A/foo 0 9999999", "more than 1048576 bytes"),
        (" ; ", "makes no calls"),
    ],
)
def test_a_workload_that_cannot_be_is_refused(words: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        workloads.named(words)
