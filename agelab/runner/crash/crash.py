"""Record workloads in one guest, look at the states of their disk in others, and say what was lost."""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agelab.base import atomic, fileio, places
from agelab.base.errors import AgelabError, InputError, Notify, silent, unknown
from agelab.base.hashing import key_of
from agelab.base.types import Defaults
from agelab.evaluate import console
from agelab.machine.drive import geometry
from agelab.machine.image import tools
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.bench import Bench, Boot, bench
from agelab.runner.crash import oracle, workloads
from agelab.runner.crash.oracle import Call, Found, Look
from agelab.runner.crash.record import Record, RequestKind
from agelab.runner.crash.states import Recorded, State
from agelab.runner.plan.disk_plans import FILESYSTEM_UUID
from agelab.runner.plan.phases import MAKING
from agelab.scenario import selection
from agelab.scenario.filesystem import Filesystem
from agelab.store.artefacts import Store

SOURCES = places.HARNESS / "crash"
MACHINE, DRIVE = "pentium4-2800", "samsung-hd501lj"
"""A drive with queueing: Linux sends it FUA."""
DRIVE_NAME = "crash"
PROGRAM = "/run/agelab/workload"
"""The user's, in the guest."""
NOT_RUN = 127
"""The exit status of a program that could not be begun."""
PATIENCE = 86400.0
"""Host seconds for one boot."""
MEMORY_MIB = 512
RECORD_BYTES = 512 << 20
"""Room for the record of one boot, of which only what is used is taken."""
FLAGS = {
    "ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "sync": 16, "dirsync": 128, "noatime": 1 << 10,
    "nodiratime": 1 << 11, "relatime": 1 << 21, "strictatime": 1 << 24, "lazytime": 1 << 25,
}  # fmt: skip
"""Mount options that mount(2) takes as flags."""
BAD_WORDS = r"\bWARNING: |\bBUG: |\bOops\b|general protection|I/O error|[Cc]orrupt"
NUMBERS = re.compile(r"\d+")
"""What differs between violations of one kind: numbers of inodes and blocks."""
WORD_SEPARATOR = "\37"
SMALLEST_MIB = 64
STUDY_MIB = 4096
"""Of a disk for which structures of a fixed size are made in full (``Filesystem.mkfs_command``)."""


@dataclass(frozen=True)
class Question:
    """What is asked."""

    workload: str
    filesystem: str
    kernel: str
    defaults: Defaults
    options: tuple[str, ...]
    mib: int
    seed: int
    drawn: int
    """Subsets drawn by the seed at each end of an order."""
    budget: float | None
    """Minutes of the host for looking; None is as long as it takes."""
    ignored: tuple[str, ...] = ()
    """What the drive ignores: ``flush``, ``fua``."""


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
    workloads: int = 0
    record_seconds: float = 0
    look_seconds: float = 0
    """Of the host."""
    boots: int = 0
    promises: bool = True
    """False where no workload makes a call that promises anything."""
    habits: dict[str, list[int]] = field(default_factory=dict)
    """Of each habit the states that showed it, and those that did not."""
    violations: list[Violation] = field(default_factory=list)
    """The shortest of each kind and path first."""


@dataclass(frozen=True)
class Recording:
    """A record, and what each workload did meanwhile."""

    record: Record
    parts: Mapping[int, Recorded]
    calls: Mapping[int, Sequence[Call]]


class _BudgetIsSpent(Exception):
    pass


def ask(
    workload: str,
    filesystem: str,
    kernel: str,
    defaults: Defaults,
    options: tuple[str, ...],
    mib: int | None,
    seed: int,
    drawn: int,
    budget: float | None,
    ignored: tuple[str, ...] = (),
) -> Question:
    """Return the question, on the smallest disk where no size is given. Raises InputError for what cannot be asked."""
    known = selection.filesystem(filesystem)
    if known.tooling(defaults).mount or known.module_source:
        raise InputError(f"agelab crash cannot take {filesystem}: the kernel alone does not mount it")
    if mib is not None and mib < known.minimum_mib:
        raise InputError(f"--mib {mib}: {filesystem} needs a disk of {known.minimum_mib} MiB at least")
    if not is_program(workload):
        workloads.named(workload)
    even = 2 * -(-known.minimum_mib // 2)
    return Question(
        workload,
        filesystem,
        kernel,
        defaults,
        options,
        mib or max(SMALLEST_MIB, even),
        seed,
        drawn,
        budget,
        ignored,
    )


def is_program(workload: str) -> bool:
    """Return True for the path of a file: a C source, a script or a static program."""
    return workload not in workloads.NAMES and Path(workload).is_file()


def _program(workload: str, store: Store, progress: Notify) -> bytes | None:
    """Return the program that a workload is, made of its source; None for one that is none.

    Raises AgelabError for a source that does not compile.
    """
    if not is_program(workload):
        return None
    content = fileio.read_bytes(Path(workload), fileio.PROGRAM)
    if not workload.endswith(".c"):
        return content
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "workload.c").write_bytes(content)
        made = tools.obtain(store, progress, Path(directory), ("-O1", "-static", "-s"))
        return fileio.read_bytes(made["workload"], fileio.PROGRAM)


def run(question: Question, store: Store, progress: Notify = silent) -> Answer:
    """Ask, and return the answer, which is written below ``crashes`` of the store."""
    program = _program(question.workload, store, progress)
    lists = [] if program else workloads.named(question.workload, question.seed)
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{question.filesystem}"
    directory = crashes(store) / name
    directory.mkdir(parents=True)
    with Guests.ready(question, store, directory, progress) as guests:
        progress(f"recording {len(lists) or 'a program'}{' workloads' * bool(lists)}")
        began = time.monotonic()
        recording = guests.record(lists, program)
        took = time.monotonic() - began
        answer = Answer(name, question, workloads=len(recording.parts), record_seconds=took)
        atomic.write(directory / "question.json", json.dumps(asdict(question), indent=1).encode())
        if not any(entry.has_data for part in recording.parts.values() for entry in part.entries):
            raise InputError(
                f"the workload {question.workload!r} writes nothing: there is no state to look at"
            )
        answer.promises = any(
            call.words[:1] in [(name,) for name in ("sync", "syncfs", "fsync", "fdatasync")]
            for calls in recording.calls.values()
            for call in calls
        )
        disks = _disks(recording, question)
        answer.states, answer.disks = sum(map(len, disks.values())), len(disks)
        progress(f"{answer.states} states, {answer.disks} distinct disks")
        _look(guests, recording, disks, answer, progress)
    atomic.write(directory / "answer.json", json.dumps(asdict(answer), indent=1).encode())
    return answer


@dataclass(frozen=True)
class Replayed:
    """One state, looked at again."""

    state: State
    disk: str
    part: Recorded
    calls: Sequence[Call]
    found: list[Found]
    times: int = 1
    same: int = 1
    """Looks, and those of them that found the same as the first."""


def replay(
    name: str,
    state: str,
    store: Store,
    progress: Notify = silent,
    export: Path | None = None,
    times: int = 1,
) -> Replayed:
    """Look at a state of an earlier question again, and write its disk as an image where one is to be exported.

    Raises InputError for a name of nothing.
    """
    directory = crashes(store) / name
    wanted = State.parse(state)
    if "/" in name or not (directory / "question.json").exists():
        known = sorted(path.parent.name for path in crashes(store).glob("*/question.json"))
        raise unknown("crash run", name, known)
    words = json.loads(fileio.read_text(directory / "question.json"))
    recording = load(directory)
    part = recording.parts.get(wanted.workload)
    if part is None:
        raise InputError(f"state {wanted} is of another record: {name} has {len(recording.parts)} workloads")
    disk = part.disk(wanted, recording.record)
    calls = _relative(recording.calls[wanted.workload], part.first)
    question = Question(**{**words, "options": tuple(words["options"]), "ignored": tuple(words["ignored"])})
    if export:
        numbers = part.kept(wanted)
        recording.record.write_disk(export, numbers, wanted.torn)
    verdicts: list[list[Found]] = []
    with Guests.ready(question, store, directory, progress) as guests:

        def judge(_: str, look: Look) -> None:
            verdicts.append(list(oracle.judge(look, calls, wanted.returned, guests.bad_words)))

        while len(verdicts) < times:  # a guest that ends at a look makes no more of them
            guests.look([(part.first, wanted)] * (times - len(verdicts)), judge)
    return Replayed(wanted, disk, part, calls, verdicts[0], times, verdicts.count(verdicts[0]))


def crashes(store: Store) -> Path:
    """Return the directory of all that was asked."""
    return store.home / "crashes"


def load(directory: Path) -> Recording:
    """Read a record and its calls."""
    events = [json.loads(line) for line in fileio.read_text(directory / "calls.jsonl").splitlines()]
    record = Record(directory / "log", directory / "base")
    parts: dict[int, Recorded] = {}
    calls: dict[int, list[Call]] = {}
    first = 0
    for event in events:
        number = event["workload"]
        if event["event"] == "call":
            tree = oracle.read_tree(event["tree"])
            calls.setdefault(number, []).append(Call(event["entries"], event["call"], event["error"], tree))
        else:
            marks = frozenset(call.entries - first for call in calls[number])
            parts[number] = Recorded(number, first, record.entries[first : event["entries"]], marks)
            first = event["entries"]
    return Recording(record, parts, calls)


def _relative(calls: Sequence[Call], first: int) -> list[Call]:
    return [Call(call.entries - first, call.text, call.error, call.tree) for call in calls]


def _disks(recording: Recording, question: Question) -> dict[str, list[State]]:
    """Return the states by the hash of their disk, in the order in which they are to be looked at."""
    ignored = frozenset(RequestKind[word.upper()] for word in question.ignored)
    parts = [replace(part, ignored=ignored) for part in recording.parts.values()]
    kinds = (
        chain.from_iterable(part.whole() for part in parts),
        chain.from_iterable(part.omissions() for part in parts),
        chain.from_iterable(part.drawn(question.drawn, question.seed) for part in parts),
        chain.from_iterable(part.torn() for part in parts),
    )
    disks: dict[str, list[State]] = {}
    for state in chain.from_iterable(kinds):
        disks.setdefault(recording.parts[state.workload].disk(state, recording.record), []).append(state)
    return disks


def _look(
    guests: "Guests",
    recording: Recording,
    disks: Mapping[str, Sequence[State]],
    answer: Answer,
    progress: Notify,
) -> None:
    """Look at the disks until the budget is spent, and judge all states that have them."""
    by_state = {str(same[0]): disk for disk, same in disks.items()}
    calls = {
        number: _relative(recording.calls[number], part.first) for number, part in recording.parts.items()
    }
    began = time.monotonic()
    deadline = began + 60 * answer.question.budget if answer.question.budget else None
    violations: dict[tuple[str, str, str], Violation] = {}

    def judge(state: str, look: Look) -> None:
        disk = by_state[state]
        answer.looked += 1
        answer.judged += len(disks[disk])
        for same in disks[disk]:
            for habit, shown in oracle.habits(look, calls[same.workload], same.returned):
                answer.habits.setdefault(habit, [0, 0])[not shown] += 1
            for found in oracle.judge(look, calls[same.workload], same.returned, guests.bad_words):
                texts = tuple(call.text for call in calls[same.workload][1:])
                rank = (int(same.torn is not None), len(texts), same.workload, *same.rank)
                violation = Violation(str(same), disk, texts, found.kind, found.path, found.why, rank)
                key = (found.kind, found.path, NUMBERS.sub("", found.why))
                if key not in violations or violations[key].rank > rank:
                    violations[key] = violation
        if answer.looked % 100 == 0:
            rate = answer.looked / (time.monotonic() - began)
            progress(
                f"{answer.looked} of {len(disks)} disks, {rate:.1f} a second; {len(violations)} findings"
            )
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
    answer.violations = sorted(violations.values(), key=lambda violation: violation.rank)


@dataclass(frozen=True)
class Guests:
    """Starts the guests of one question."""

    question: Question
    filesystem: Filesystem
    bench: Bench
    program: bytes
    directory: Path

    @classmethod
    @contextmanager
    def ready(cls, question: Question, store: Store, directory: Path, progress: Notify) -> "Iterator[Guests]":
        """Make what the guests take."""
        filesystem = selection.filesystem(question.filesystem)
        program = tools.obtain(store, progress, SOURCES)["crash"]
        with bench(store, question.kernel, directory, (filesystem.name,), progress) as made:
            yield cls(question, filesystem, made, fileio.read_bytes(program, fileio.PROGRAM), directory)

    @property
    def bad_words(self) -> re.Pattern[str]:
        """Return what the kernel says of a filesystem that is damaged."""
        return re.compile("|".join(f"(?:{words})" for words in (*self.filesystem.gone, BAD_WORDS)))

    def record(self, lists: Sequence[workloads.Calls], program: bytes | None) -> Recording:
        """Carry out the workloads, or the program. Raises AgelabError where the guest does not come to their end."""
        lines = [f"begin {call}" for call in workloads.BEGINNING]
        for number, calls in enumerate(lists):
            lines += [f"workload {number}", *(f"call {call}" for call in calls)]
        if program:
            lines += ["workload 0", f"program {PROGRAM}"]
        boot = self._boot(lines, states=False, more={Path(PROGRAM).name: program} if program else {})
        end = [event for event in boot.events if event["event"] == "end"]
        if not end or end[0]["reason"]:
            why = end[0]["reason"] if end else f"the guest ended; its console ends:\n{boot.tail}"
            raise AgelabError(f"the workloads could not be recorded: {why}")
        if any(event["event"] == "program" and event["status"] == NOT_RUN for event in boot.events):
            raise InputError(
                f"{self.question.workload} does not run in the guest",
                "name a C source, a script for the guest's /bin/sh, or a program that is linked statically",
            )
        kept = [event for event in boot.events if event["event"] in ("call", "workload")]
        atomic.write(
            self.directory / "calls.jsonl", "".join(f"{json.dumps(event)}\n" for event in kept).encode()
        )
        return load(self.directory)

    def look(self, wanted: Sequence[tuple[int, State]], hear: Callable[[str, Look], None]) -> dict[str, Look]:
        """Look at states, each with the first entry of its workload, in one boot; ``hear`` is told of each.

        One at which the guest ended is the last.
        """
        looks: dict[str, Look] = {}
        at = ""

        def on_event(event: dict[str, Any]) -> None:
            nonlocal at
            if event["event"] == "at":
                at = event["state"]
            elif event["event"] == "state":
                at = ""
                name = event["state"]
                looks[name] = Look(
                    mount=event["mount"],
                    tree=oracle.read_tree(event["tree"]) if "tree" in event else None,
                    fsck=event["fsck"],
                    said=event["said"],
                    again=event.get("again", 0),
                    write=event.get("write", 0),
                    kernel=tuple(event["kernel"]),
                )
                hear(name, looks[name])

        lines = [f"state {first} {state}" for first, state in wanted]
        boot = self._boot(lines, states=True, on_event=on_event)
        end = [event for event in boot.events if event["event"] == "end"]
        if end and not end[0]["reason"]:
            return looks
        why = end[0]["reason"] if end else console.panic_message(boot.console) or f"silently ({boot.ending})"
        if not at:
            raise AgelabError(f"a guest ended before it looked at anything: {why}")
        looks[at] = Look(ended=why)
        hear(at, looks[at])
        return looks

    def _boot(
        self,
        lines: Sequence[str],
        *,
        states: bool,
        more: Mapping[str, bytes] = MappingProxyType({}),
        on_event: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> Boot:
        question, tooling = self.question, self.filesystem.tooling(self.question.defaults)
        uuid = FILESYSTEM_UUID[MAKING]
        shrink = max(1, STUDY_MIB / question.mib)
        mkfs = self.filesystem.mkfs_command(question.defaults, shrink=shrink)
        repair = self.filesystem.repair if self.filesystem.repair_first else ()
        options = [*tooling.mount_options, *question.options]
        settings = {
            "type": self.filesystem.mount_type,
            "flags": str(sum(FLAGS[word] for word in {*options} & FLAGS.keys())),
            "options": ",".join(word for word in options if word not in FLAGS),
            "fsck": WORD_SEPARATOR.join(tooling.fsck),
            **({"repair": WORD_SEPARATOR.join(repair)} if repair else {}),
        }
        drive = geometry.module_parameters(
            selection.drive(DRIVE), name=DRIVE_NAME, run_seed=question.seed, index=0
        )
        job = {
            "states": states,
            "entropy": key_of(["crash", question.seed]),
            "settings": drive,
            "name": DRIVE_NAME,
            "sectors": question.mib << 11,
            "record_bytes": RECORD_BYTES,
            "mkfs": [word.replace("{uuid}", uuid) for word in mkfs],
            "lines": "".join(f"{line}\n" for line in (*(f"{a} {b}" for a, b in settings.items()), *lines)),
        }
        sizes = {
            "base": question.mib << 20,
            "test": question.mib << 20,
            "log": RECORD_BYTES,
            "record": RECORD_BYTES,
        }
        kept = ("base", "log")
        for name in sizes:
            if not states or name not in kept:
                _make_empty(self.directory / name, sizes[name])
        disks = [
            MemoryDisk(self.directory / name, size, written=not (states and name in kept))
            for name, size in sizes.items()
        ]
        try:
            return self.bench.boot(
                fileio.read_bytes(SOURCES / "start"),
                job,
                selection.machine(MACHINE),
                MEMORY_MIB,
                disks,
                modules=self.filesystem.modules,
                programs={"crash": self.program, **more},
                patience=PATIENCE,
                on_event=on_event,
            )
        finally:
            for name in ("test", "record", "initramfs"):
                (self.directory / name).unlink(missing_ok=True)


def _make_empty(path: Path, size: int) -> None:
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
