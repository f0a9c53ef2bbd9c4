"""Record workloads in one guest, look at the states of their disk in others, and say what was lost."""

import json
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path

from pydantic import TypeAdapter

from agelab.base import atomic, fileio
from agelab.base.errors import InputError, Notify, silent
from agelab.base.gathered import gathered
from agelab.base.types import Defaults
from agelab.machine.drive.record import RequestKind
from agelab.results.run_directory import LATEST, new_directory
from agelab.runner.crash import oracle, programs, workloads
from agelab.runner.crash.guests import CHECK, Guests, Question, Recording, load
from agelab.runner.crash.oracle import Call, Found, Look
from agelab.runner.crash.states import Loss, Recorded, State
from agelab.scenario import selection
from agelab.store import stored_disk
from agelab.store.artefacts import Store
from agelab.store.stored_disk import StoredDisk

NUMBERS = re.compile(r"\d+")
"""What differs between violations of one kind: numbers of inodes and blocks."""
QUESTION, ANSWER = "question.json", "answer.json"
SMALLEST_MIB, LARGEST_MIB = 64, 4096
DRAWN = 4


@dataclass(frozen=True)
class Violation:
    """A state in which something is wrong."""

    state: str
    disk: str
    calls: tuple[str, ...]
    kind: str
    path: str
    why: str
    rank: tuple[int, ...]
    """The less, the shorter as a reproduction; those in which a write is torn come last."""
    also: tuple[Found, ...] = ()
    """What else is wrong in that state."""
    known: str = ""
    """What others have written about it, and where; empty for news."""

    @property
    def is_torn(self) -> bool:
        """True where no state shows it in which every write is whole or not there."""
        return bool(self.rank[0])


@dataclass
class Answer:
    """What was found."""

    name: str
    question: Question
    states: int = 0
    disks: int = 0
    looked: int = 0
    """Disks that a guest has looked at."""
    judged: int = 0
    """States that have such a disk."""
    losses: dict[str, list[int]] = field(default_factory=dict)
    """Of each kind the states that were judged, and all."""
    workloads: int = 0
    record_seconds: float = 0
    look_seconds: float = 0
    """Of the host."""
    boots: int = 0
    promises: bool = True
    """False where no workload makes a call that promises anything."""
    habits: dict[str, list[int]] = field(default_factory=dict)
    """Of each kind of what nobody promises the states that kept it, and those that did not."""
    violations: list[Violation] = field(default_factory=list)
    """The shortest of each kind and path first."""
    differences: list[Violation] = field(default_factory=list)
    """The shortest state of each kind that nobody has promised to keep."""


QUESTIONS, ANSWERS = TypeAdapter(Question), TypeAdapter(Answer)


class _BudgetIsSpent(Exception):
    pass


def ask(
    workload: str,
    filesystem: str,
    kernel: str,
    defaults: Defaults,
    options: tuple[str, ...] = (),
    mib: int | None = None,
    seed: int = 1,
    drawn: int | None = None,
    budget: float | None = None,
    ignored: tuple[str, ...] = (),
    disk: StoredDisk | None = None,
    check: str = "",
) -> Question:
    """Return the question, on the smallest disk where no size is given. Raises InputError for what cannot be asked."""
    known = selection.filesystem(filesystem)
    if known.tooling(defaults).mount or known.module_source:
        raise InputError(f"agelab crash cannot take {filesystem}: the kernel alone does not mount it")
    if mib is not None and mib < known.minimum_mib:
        raise InputError(f"--mib {mib}: {filesystem} needs a disk of {known.minimum_mib} MiB at least")
    if disk and (disk.recipe.filesystem != filesystem or len(disk.recipe.sizes) > 1 or mib):
        raise InputError(
            f"the stored disk is {disk.recipe.filesystem} on {len(disk.recipe.sizes)} drives, and sets its size: "
            "name its filesystem, one drive, and no --mib"
        )
    if check and not Path(check).is_file():
        raise InputError(f"--check {check}: there is no such file")
    if step := programs.planned(workload, filesystem, kernel, defaults):
        mib = mib or step[1].disk_bytes >> 20
    elif not programs.is_program(workload):
        workloads.named(workload)
    if step and disk:
        raise InputError(f"{workload} makes its own disk: leave --disk out")
    even = 2 * -(-known.minimum_mib // 2)
    return Question(
        workload,
        filesystem,
        kernel,
        defaults,
        options,
        disk.recipe.sizes[0] >> 20 if disk else mib or max(SMALLEST_MIB, even),
        seed,
        DRAWN if drawn is None else drawn,
        budget,
        ignored,
        disk.key if disk else "",
        check,
    )


def run(question: Question, store: Store, progress: Notify = silent) -> Answer:
    """Ask, and return the answer, which is written below ``crashes`` of the store."""
    program = programs.made(
        question.workload, question.filesystem, question.kernel, question.defaults, question.seed, store, progress
    )
    lists = [] if program else workloads.named(question.workload, question.seed)
    directory = new_directory(store.crashes, question.filesystem)
    if question.check:
        (directory / CHECK).write_bytes(programs.built(question.check, store, progress))
    if question.disk:
        [member] = stored_disk.find(store, question.disk).members
        stored_disk.sparse_copy(member, directory / "base")
        os.truncate(directory / "base", question.mib << 20)
    with Guests.ready(question, store, directory, progress) as guests:
        progress(f"recording {len(lists) or 'a program'}{' workloads' * bool(lists)}")
        began = time.monotonic()
        recording = guests.record(lists, program, progress)
        took = time.monotonic() - began
        answer = Answer(directory.name, question, workloads=len(recording.parts), record_seconds=took)
        atomic.write(directory / QUESTION, json.dumps(asdict(question), indent=1).encode())
        if not any(entry.changes for part in recording.parts.values() for entry in part.entries):
            raise InputError(f"the workload {question.workload!r} writes nothing: there is no state to look at")
        answer.promises = any(
            call.words[:1] in [(name,) for name in ("sync", "syncfs", "fsync", "fdatasync")]
            for calls in recording.calls.values()
            for call in calls
        )
        disks = disks_in_turn(recording, question)
        answer.states, answer.disks = sum(map(len, disks.values())), len(disks)
        progress(f"{answer.states} states, {answer.disks} distinct disks")
        _look(guests, recording, disks, answer, progress)
    atomic.write(directory / ANSWER, json.dumps(asdict(answer), indent=1).encode())
    return answer


@dataclass(frozen=True)
class Replayed:
    """One state, looked at again."""

    state: State
    disk: str
    part: Recorded
    calls: Sequence[Call]
    found: list[Found]
    differences: list[Found]
    """What nobody promised, and is not kept."""
    known: str = ""
    times: int = 1
    same: int = 1
    """Guests that have looked, and those of them that found the same as the first."""


def replay(
    name: str,
    state: str,
    store: Store,
    progress: Notify = silent,
    export: Path | None = None,
    shell: Callable[[Path], AbstractContextManager[None]] | None = None,
    times: int = 1,
    kernel: str | None = None,
) -> Replayed:
    """Look at a state of an earlier question again, and write its disk as an image where one is to be exported.

    ``shell`` connects whoever asked with the socket of a shell that looks, too; ``kernel`` is one in place of its own.

    Raises InputError for a name of nothing.
    """
    directory = store.crashes / name
    wanted = State.parse(state)
    question = _question(store, name, kernel)
    recording = load(directory)
    part = recording.parts.get(wanted.workload)
    if part is None:
        raise InputError(f"state {wanted} is of another record: {name} has {len(recording.parts)} workloads")
    pieces = part.pieces(wanted)
    disk = recording.record.disk(pieces)
    if export:
        recording.record.write_disk(export, pieces)
    with Guests.ready(question, store, directory, progress) as guests, ExitStack() as stack:
        terminal = directory / "terminal" if shell else None
        if shell and terminal:
            stack.callback(terminal.unlink, missing_ok=True)
            stack.enter_context(shell(terminal))
        verdicts = [_again(guests, recording, [wanted], terminal)[state] for _ in range(times)]
    found, differences = verdicts[0]
    known, same = _known(question, wanted, found), verdicts.count(verdicts[0])
    calls = recording.calls[wanted.workload]
    return Replayed(wanted, disk, part, calls, found, differences, known, times, same)


def _again(
    guests: Guests, recording: Recording, wanted: Sequence[State], terminal: Path | None = None
) -> dict[str, tuple[list[Found], list[Found]]]:
    """Say of each state what is wrong, and what nobody has promised and is not kept."""
    verdicts: dict[str, tuple[list[Found], list[Found]]] = {}

    def judge(name: str, look: Look) -> None:
        state = State.parse(name)
        calls = recording.calls[state.workload]
        habits = oracle.habits(look, calls, state.returned)
        found = list(oracle.judge(look, calls, state.returned, guests.bad_words))
        verdicts[name] = (found, [habit for habit, kept in habits if not kept])

    while left := [one for one in wanted if str(one) not in verdicts]:
        guests.look([(recording.parts[one.workload].first, one) for one in left], judge, terminal)
    return verdicts


def _known(question: Question, state: State, found: Sequence[Found]) -> str:
    return oracle.known(question.filesystem, found) if state.torn is not None else ""


@dataclass(frozen=True)
class Again:
    """A state in which something was wrong, looked at again."""

    violation: Violation
    same_disk: bool
    same_verdict: bool


def check(name: str, store: Store, progress: Notify = silent, kernel: str | None = None) -> list[Again]:
    """Look again at each state of an earlier answer, and say whether disk and verdict are those of then."""
    answer, recording = answered(store, name)
    wanted = {found.state: State.parse(found.state) for found in answer.violations}
    question = _question(store, name, kernel)
    with Guests.ready(question, store, store.crashes / name, progress) as guests:
        verdicts = _again(guests, recording, list(wanted.values()))

    def again(was: Violation) -> Again:
        part = recording.parts[wanted[was.state].workload]
        disk = recording.record.disk(part.pieces(wanted[was.state]))
        found = [(one.kind, one.path, one.why) for one in verdicts[was.state][0]]
        return Again(was, disk == was.disk, (was.kind, was.path, was.why) in found)

    return [again(was) for was in answer.violations]


def answered(store: Store, name: str) -> tuple[Answer, Recording]:
    """Return what an earlier question was answered, with the record. Raises InputError for a name of nothing."""
    return ANSWERS.validate_json(_read(store, name, ANSWER)), load(store.crashes / name)


def find(store: Store, name: str) -> str:
    """Return the name of an ended run, of which it, its beginning or ``latest`` was given. Raises InputError."""
    runs = sorted(other.parent.name for other in store.crashes.glob(f"*/{ANSWER}"))
    if name in runs:
        return name
    found = runs[-1:] if name == LATEST else [run for run in runs if run.startswith(name)]
    if len(found) != 1:
        there = f"the latest are {', '.join(runs[-3:])}" if runs else "there are none"
        raise InputError(f"{'no crash run' if not found else 'several crash runs'} {name!r}; {there}")
    return found[0]


def _question(store: Store, name: str, kernel: str | None) -> Question:
    question = QUESTIONS.validate_json(_read(store, name, QUESTION))
    return replace(question, kernel=kernel or question.kernel)


def _read(store: Store, name: str, file: str) -> bytes:
    return fileio.read_bytes(store.crashes / name / file, fileio.LINES)


def disks_in_turn(recording: Recording, question: Question) -> dict[str, list[State]]:
    """Return the states by the hash of their disk, in the order in which they are looked at.

    However few are, they are of each kind and each workload as evenly as there are any.
    """
    ignored = frozenset(RequestKind[word.upper()] for word in question.ignored)
    chance = random.Random(f"in turn {question.seed}")
    numbers = [*recording.parts]
    chance.shuffle(numbers)
    groups: dict[Loss, dict[int, list[State]]] = {loss: {} for loss in Loss}
    for number in numbers:
        states = replace(recording.parts[number], ignored=ignored).states(question.drawn, question.seed)
        chance.shuffle(states)
        for state in states:
            groups[state.loss].setdefault(number, []).append(state)
    in_turn = _in_turn([_in_turn(of.values()) for of in groups.values()])
    return gathered((recording.record.disk(recording.parts[state.workload].pieces(state)), state) for state in in_turn)


def _in_turn(groups: Iterable[Sequence[State]]) -> list[State]:
    """Return the first of each group, the second of each, and so on."""
    return [state for row in zip_longest(*groups) for state in row if state]


def _look(
    guests: Guests, recording: Recording, disks: Mapping[str, Sequence[State]], answer: Answer, progress: Notify
) -> None:
    """Look at the disks until the budget is spent, and judge all states that have them."""
    by_state = {str(same[0]): disk for disk, same in disks.items()}
    began = time.monotonic()
    deadline = began + 60 * answer.question.budget if answer.question.budget else None
    violations: dict[tuple[str, ...], Violation] = {}
    differences: dict[str, Violation] = {}
    habits: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    counts = Counter(state.loss for same in disks.values() for state in same)
    answer.losses = {loss: [0, counts[loss]] for loss in Loss if counts[loss]}

    def judge(state: str, look: Look) -> None:
        disk = by_state[state]
        answer.looked += 1
        answer.judged += len(disks[disk])
        for same in disks[disk]:
            answer.losses[same.loss][0] += 1
            made = recording.calls[same.workload]
            before = sum(call.entries <= same.returned for call in made)
            texts = tuple(call.text for call in made[1 : before + 1])
            rank = (int(same.torn is not None), len(texts), same.workload, *same.rank)
            found = list(oracle.judge(look, made, same.returned, guests.bad_words))
            known = _known(answer.question, same, found)
            for one in found:
                also = tuple(other for other in found if other != one)
                of = Violation(str(same), disk, texts, one.kind, one.path, one.why, rank, also, known)
                key = (known, one.kind, one.path, NUMBERS.sub("", one.why))
                violations[key] = min(violations.get(key, of), of, key=attrgetter("rank"))
            for one, kept in oracle.habits(look, made, same.returned):
                habits[one.kind][not kept] += 1
                if not kept:
                    of = Violation(str(same), disk, texts, one.kind, one.path, one.why, rank)
                    differences[one.kind] = min(differences.get(one.kind, of), of, key=attrgetter("rank"))
        if answer.looked % 100 == 0:
            rate = answer.looked / (time.monotonic() - began)
            progress(f"{answer.looked} of {len(disks)} disks, {rate:.1f} a second; {len(violations)} findings")
        if deadline and time.monotonic() > deadline:
            raise _BudgetIsSpent

    left = [(recording.parts[same[0].workload].first, same[0]) for same in disks.values()]
    try:
        while left:
            seen = guests.look(left, judge)
            answer.boots += 1
            left = [one for one in left if str(one[1]) not in seen]
    except _BudgetIsSpent:
        answer.boots += 1
    answer.look_seconds = time.monotonic() - began
    answer.habits = dict(habits)
    answer.violations, answer.differences = (
        sorted(kept.values(), key=attrgetter("rank")) for kept in (violations, differences)
    )
