"""A crash run in one file: another store gets what the first had, and a damaged file nothing."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.capsule import crash as capsule
from agelab.machine.drive.record import ROOM, RequestKind
from agelab.runner.crash import crash
from agelab.runner.crash.crash import ANSWER, QUESTION, Answer, Violation
from agelab.runner.crash.guests import CALLS, CHECK, MADE_OF, Question
from agelab.runner.crash.states import State
from agelab.store.artefacts import Store
from tests.build.crash_record import record, sectors

NAME = "20261128-010203-ext4"
QUESTION_OF_IT = Question("one", "ext4", "debian:6.1", "today", (), 1, 1, 4, None)
LOST = Violation("0:2:-0", "ab", ("fsync A",), "a promised name is missing", "A/new", "fsync A", (0, 1, 0, 2, 1))


def ran(home: Path, question: Question = QUESTION_OF_IT) -> Store:
    """A store with a crash run of two requests."""
    store = Store(home)
    directory = store.crashes / NAME
    directory.mkdir(parents=True)
    record(directory, [(RequestKind.WRITE, 8, sectors("ab"), 0, 1), (RequestKind.FLUSH, 0, b"", 2, 3)])
    for name, size in {"base": 1 << 20, "log": ROOM}.items():
        with (directory / name).open("r+b") as file:
            file.truncate(size)
    calls = [
        {"event": "call", "workload": 0, "entries": 0, "call": "", "error": 0, "tree": []},
        {"event": "workload", "workload": 0, "entries": 2, "kernel": []},
    ]
    answer = Answer(NAME, question, states=4, disks=2, violations=[LOST])
    made_of = {"kernel": "6.1.0-56-amd64", "image": "cd"}
    (directory / CALLS).write_text("".join(f"{json.dumps(call)}\n" for call in calls))
    (directory / QUESTION).write_text(json.dumps(asdict(question)))
    (directory / ANSWER).write_text(json.dumps(asdict(answer)))
    (directory / MADE_OF).write_text(json.dumps(made_of))
    (directory / CHECK).write_bytes(b"#!/bin/sh\n")
    return store


def test_another_store_has_the_same_run_and_the_release_of_its_kernel(tmp_path: Path) -> None:
    first, second = ran(tmp_path / "first"), Store(tmp_path / "second")
    second.home.mkdir()
    packed = tmp_path / "run.crash"
    capsule.pack(NAME, first, packed)
    assert packed.stat().st_size < 64 << 10
    assert capsule.unpack(packed, second, None) == capsule.unpack(packed, second, None) == NAME
    (answer, recording), (was, recorded) = crash.answered(second, NAME), crash.answered(first, NAME)
    assert answer == was
    part = recording.parts[0]
    for name in ("0:2", "0:2:-0"):
        pieces = part.pieces(State.parse(name))
        assert recording.record.disk(pieces) == recorded.record.disk(pieces)
    assert (second.crashes / NAME / "base").read_bytes() == (first.crashes / NAME / "base").read_bytes()
    assert (second.crashes / NAME / CHECK).read_bytes() == b"#!/bin/sh\n"
    question = json.loads((second.crashes / NAME / QUESTION).read_text())
    assert question["kernel"] == "debian:6.1.0-56-amd64"
    capsule.pack(NAME, first, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == packed.read_bytes()


def test_a_kernel_that_was_built_must_be_given(tmp_path: Path) -> None:
    store = ran(tmp_path / "first", replace(QUESTION_OF_IT, kernel="source:6.12,patches=/etc/passwd"))
    packed, other = tmp_path / "run.crash", Store(tmp_path / "second")
    other.home.mkdir()
    capsule.pack(NAME, store, packed)
    with pytest.raises(InputError, match="made of files that are not in") as caught:
        capsule.unpack(packed, other, None)
    assert caught.value.hint == "name it with --kernel"
    capsule.unpack(packed, other, "debian:6.12")
    assert json.loads((other.crashes / NAME / QUESTION).read_text())["kernel"] == "debian:6.12"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (QUESTION, b"{}"),
        (CALLS, b'{"event": "workload", "workload": 7, "entries": 2}\n'),
        (MADE_OF, b"[]"),
        (ANSWER, b'{"states": "many"}'),
    ],
)
def test_what_is_no_crash_run_leaves_nothing_in_the_store(tmp_path: Path, name: str, text: bytes) -> None:
    store = ran(tmp_path / "first")
    packed, other = tmp_path / "run.crash", Store(tmp_path / "second")
    other.home.mkdir()
    answered = crash.answered

    def write(*_: object) -> object:
        found = answered(store, NAME)
        (store.crashes / NAME / name).write_bytes(text)
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(crash, "answered", write)
        capsule.pack(NAME, store, packed)
    with pytest.raises(InputError, match="no crash run that this agelab reads"):
        capsule.unpack(packed, other, None)
    assert not other.crashes.exists()


def test_another_run_of_that_name_is_not_replaced(tmp_path: Path) -> None:
    packed = tmp_path / "run.crash"
    capsule.pack(NAME, ran(tmp_path / "first"), packed)
    other = ran(tmp_path / "second", replace(QUESTION_OF_IT, seed=2))
    with pytest.raises(InputError, match="the store has another crash run"):
        capsule.unpack(packed, other, None)


def test_a_file_that_is_damaged_or_something_else_is_refused(tmp_path: Path) -> None:
    packed, other = tmp_path / "run.crash", Store(tmp_path / "second")
    other.home.mkdir()
    capsule.pack(NAME, ran(tmp_path / "first"), packed)
    whole = packed.read_bytes()
    for content in (b"", b"int main(void) {}", whole[:-2000], whole.replace(b"6.1.0-56", b"6.1.0-57")):
        packed.write_bytes(content)
        with pytest.raises(InputError):
            capsule.unpack(packed, other, None)
    assert not other.crashes.exists()
