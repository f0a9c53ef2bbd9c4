"""The guests of one question: they record workloads, or look at states of the disk."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agelab.base import atomic, fileio, places
from agelab.base.errors import AgelabError, InputError, Notify
from agelab.base.hashing import key_of
from agelab.base.types import Defaults
from agelab.evaluate import console
from agelab.machine.drive import geometry
from agelab.machine.drive.record import ROOM, Record
from agelab.machine.image import tools
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.bench import Bench, Boot, bench
from agelab.runner.crash import oracle, workloads
from agelab.runner.crash.oracle import Call, Look
from agelab.runner.crash.programs import Program
from agelab.runner.crash.states import Recorded, State
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.disk_plans import FILESYSTEM_UUID
from agelab.runner.plan.phases import MAKING
from agelab.scenario import selection
from agelab.scenario.filesystem import Filesystem
from agelab.store import stored_disk
from agelab.store.artefacts import Store, file_hash
from agelab.store.usage import CRASH_LOCK

SOURCES = places.HARNESS / "crash"
MACHINE, DRIVE = "pentium4-2800", "samsung-hd501lj"
"""A drive with queueing: Linux sends it FUA."""
DRIVE_NAME = "crash"
CALLS, MADE_OF, CHECK = "calls.jsonl", "made_of.json", "check"
PROGRAM = "/run/agelab/workload"
PROGRAM_BEFORE = "/run/agelab/before"
"""The workload's, and what makes its tree, in the guest."""
CORPUS_MODULES = ("loop", "isofs")
NOT_RUN = 127
"""The exit status of a program that could not be begun."""
RUNS = "name a C source, a script for the guest's /bin/sh, or a program that is linked statically"
PATIENCE = 86400.0
"""Host seconds for one boot."""
MEMORY_MIB = 512
FLAGS = {
    "ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "sync": 16, "dirsync": 128, "noatime": 1 << 10,
    "nodiratime": 1 << 11, "relatime": 1 << 21, "strictatime": 1 << 24, "lazytime": 1 << 25,
}  # fmt: skip
"""Mount options that mount(2) takes as flags."""
DISCARDS = "discard"
"""The mount option with which the drive takes discards, too."""
BAD_WORDS = r"\bWARNING: |\bBUG: |\bOops\b|general protection|I/O error|[Cc]orrupt"
WORD_SEPARATOR = "\37"
STUDY_MIB = 4096
"""Of a disk for which structures of a fixed size are made in full (``Filesystem.mkfs_command``)."""


@dataclass
class JoinedEvents:
    """What a guest says, of which a long tree comes in several lines."""

    on_event: Callable[[dict[str, Any]], None]
    events: list[dict[str, Any]] = field(default_factory=list)
    _ended: bool = False

    def hear(self, event: dict[str, Any]) -> None:
        """Pass on an event once it is whole. Once ``on_event`` has raised hear nothing: lines may be lost."""
        if self._ended:
            return
        if event["event"] == "more":
            self.events[-1]["tree"] += event.pop("tree")
            self.events[-1].pop("goes_on")
            self.events[-1].update(event, event=self.events[-1]["event"])
        else:
            self.events.append(event)
        if "goes_on" not in event:
            self._ended = True
            self.on_event(self.events[-1])
            self._ended = False


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
    disk: str = ""
    """The key of the stored disk to begin with."""
    check: str = ""
    """The file of a program that says whether what a cut has left is whole."""

    @property
    def arguments(self) -> list[str]:
        """The words of the command that asks it without a budget, but the kernel."""
        options: dict[str, object] = {"filesystem": self.filesystem, "defaults": self.defaults}
        options |= {"seed": self.seed, "drawn": self.drawn}
        options |= {"options": ",".join(self.options)} if self.options else {}
        options |= {"disk": self.disk} if self.disk else {"mib": self.mib}
        options |= {"check": self.check} if self.check else {}
        pairs = [*options.items(), *(("ignores", name) for name in self.ignored)]
        return [self.workload, *(word for name, value in pairs for word in (f"--{name}", f"{value}"))]


@dataclass(frozen=True)
class Recording:
    """A record, and what each workload did meanwhile."""

    record: Record
    parts: Mapping[int, Recorded]
    calls: Mapping[int, Sequence[Call]]


class NotRecorded(AgelabError):
    """The workloads did not come to their end."""


def load(directory: Path) -> Recording:
    events = [json.loads(line) for line in fileio.read_text(directory / CALLS).splitlines()]
    record = Record(directory / "log", directory / "base")
    parts: dict[int, Recorded] = {}
    calls: dict[int, list[Call]] = {}
    unseen: set[str] = set()
    first = 0
    for event in events:
        number = event["workload"]
        if event["event"] == "unseen":
            unseen.update(event["call"].split()[1:])
        elif event["event"] == "call":
            tree = oracle.read_tree(event["tree"])
            calls.setdefault(number, []).append(
                Call(event["entries"] - first, event["call"], event["error"], tree, frozenset(unseen))
            )
            unseen.clear()
        else:
            marks = frozenset(call.entries for call in calls[number])
            parts[number] = Recorded(number, first, record.entries[first : event["entries"]], marks)
            first = event["entries"]
    return Recording(record, parts, calls)


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
        with ExitStack() as held:
            descriptor = os.open(directory / CRASH_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            held.callback(os.close, descriptor)
            if not atomic.try_lock(descriptor):
                raise InputError(f"crash run {directory.name} is being looked at by another process")
            made = held.enter_context(bench(store, question.kernel, directory, (filesystem.name,), progress))
            guests = cls(question, filesystem, made, fileio.read_bytes(program, fileio.PROGRAM), directory)
            if (directory / MADE_OF).exists():
                then, now = json.loads(fileio.read_text(directory / MADE_OF)), guests.made_of
                others = [what for what in now if then[what] != now[what]]
                if "kernel" in others:  # an image has the modules of its kernel
                    others = [what for what in others if what not in ("kernel", "image")]
                    others.insert(0, f"kernel ({now['kernel']}, not {then['kernel']})")
                if others:
                    progress(f"another than then: {', '.join(others)}")
            yield guests

    @property
    def made_of(self) -> dict[str, str]:
        """What all guests are made of: where it is the same, so are verdicts."""
        sources = {path.name: file_hash(path) for path in SOURCES.iterdir()}
        return {
            "kernel": self.bench.image.kernel.release,
            "image": self.bench.image.content,
            "QEMU": self.bench.emulator.version.strip(),
            "code": key_of([sources, cell_inputs.harness_hash(), cell_inputs.drive_sources()]),
        }

    @property
    def bad_words(self) -> re.Pattern[str]:
        """Return what the kernel says of a filesystem that is damaged."""
        return re.compile("|".join(f"(?:{words})" for words in (*self.filesystem.gone, BAD_WORDS)))

    def record(self, lists: Sequence[workloads.Calls], program: Program | None, progress: Notify) -> Recording:
        """Carry out the workloads, or the program. Raises AgelabError where the guest does not come to their end."""
        lines = [f"begin {call}" for call in workloads.BEGINNING]
        if program and program.before:
            lines = [f"prepare {PROGRAM_BEFORE}"]
        for number, calls in enumerate(lists):
            lines += [f"workload {number}", *(f"call {call}" for call in calls)]
        if program:
            lines += ["workload 0", f"program {PROGRAM}"]
        boot = self._boot(lines, states=False, program=program)
        end = [event for event in boot.events if event["event"] == "end"]
        if not end or end[0]["reason"]:
            why = end[0]["reason"] if end else f"the guest ended; its console ends:\n{boot.tail}"
            raise NotRecorded(f"the workloads could not be recorded: {why}")
        for event in boot.events:
            if event["event"] == "program" and event["status"] == NOT_RUN:
                raise InputError(f"{self.question.workload} does not run in the guest", RUNS)
            if event["event"] == "program" and event["status"]:
                progress(f"the program ended with {event['status']}")
        atomic.write(self.directory / MADE_OF, json.dumps(self.made_of, indent=1).encode())
        kept = [event for event in boot.events if event["event"] in ("call", "unseen", "workload")]
        atomic.write(self.directory / CALLS, "".join(f"{json.dumps(event)}\n" for event in kept).encode())
        return load(self.directory)

    def look(
        self, wanted: Sequence[tuple[int, State]], hear: Callable[[str, Look], None], terminal: Path | None = None
    ) -> dict[str, Look]:
        """Look at states, each with the first entry of its workload, in one boot; ``hear`` is told of each.

        One at which the guest ended is the last. A ``terminal`` is a socket at which a shell listens, while each is
        mounted.
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
                if event.get("check") == NOT_RUN:
                    raise InputError(
                        f"--check {self.question.check} does not run in the guest: {event['checked'][:80]}", RUNS
                    )
                looks[name] = Look.of(event)
                hear(name, looks[name])

        lines = [f"state {first} {state}" for first, state in wanted]
        boot = self._boot(lines, states=True, on_event=on_event, terminal=terminal)
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
        program: Program | None = None,
        on_event: Callable[[dict[str, Any]], None] = lambda _: None,
        terminal: Path | None = None,
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
            **({"aged": "yes"} if question.disk else {}),
            **({"shell": "yes"} if terminal else {}),
            **({"check": f"/run/agelab/{CHECK}"} if states and question.check else {}),
        }
        drive = geometry.module_parameters(selection.drive(DRIVE), name=DRIVE_NAME, run_seed=question.seed, index=0)
        drive += " discard=1" * (DISCARDS in question.options)
        job = {
            "states": states,
            "entropy": key_of(["crash", question.seed]),
            "settings": drive,
            "name": DRIVE_NAME,
            "sectors": question.mib << 11,
            "record_bytes": ROOM,
            "mkfs": [] if states or question.disk else [word.replace("{uuid}", uuid) for word in mkfs],
            "lines": "".join(f"{line}\n" for line in (*(f"{a} {b}" for a, b in settings.items()), *lines)),
        }
        sizes = {"base": question.mib << 20, "test": question.mib << 20, "log": ROOM, "record": ROOM}
        kept = ("base", "log")
        for name in sizes:
            if name not in kept or not (states or (question.disk and name == "base")):
                stored_disk.make_hole(self.directory / name, sizes[name])
        disks = [
            MemoryDisk(self.directory / name, size, written=not (states and name in kept))
            for name, size in sizes.items()
        ]
        modules, own = self.filesystem.modules, {}
        if states and question.check:
            own = {CHECK: fileio.read_bytes(self.directory / CHECK, fileio.PROGRAM)}
        if program:
            own = {Path(PROGRAM).name: program.content, Path(PROGRAM_BEFORE).name: program.before, **program.files}
        if program and (corpus := program.corpus):
            disks.append(MemoryDisk(corpus.image, corpus.size, written=False, constant=True))
            modules = (*modules, *CORPUS_MODULES)
        joined = JoinedEvents(on_event)
        try:
            boot = self.bench.boot(
                fileio.read_bytes(SOURCES / "start"),
                job,
                selection.machine(MACHINE),
                MEMORY_MIB,
                disks,
                modules=modules,
                programs={"crash": self.program, **own},
                patience=PATIENCE,
                on_event=joined.hear,
                terminal=terminal,
            )
            return replace(boot, events=joined.events)
        finally:
            for name in ("test", "record", "initramfs"):
                (self.directory / name).unlink(missing_ok=True)
