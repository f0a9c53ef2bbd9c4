"""Folded stacks: made of a profiler's log, read, added up, compared."""

import re
import struct
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from agelab.base.sanitize import escape_controls
from agelab.evaluate.stacks.log import (
    MAX_SYMBOLS,
    KernelSymbols,
    MappedFile,
    StepLog,
    UnreadableLog,
    frame,
    program_frame,
    sections,
)

Stack = tuple[str, ...]
MAX_FRAMES = 300
"""Frames of a stack at most: the kernel samples 127 of it, and as many again after what it interrupted."""
MAX_SAMPLES = 10**12


@dataclass(frozen=True)
class Folded:
    """Stacks, and how often each was sampled."""

    stacks: Mapping[Stack, int]

    @property
    def samples(self) -> int:
        return sum(self.stacks.values())

    @property
    def text(self) -> str:
        """One line a stack, sorted."""
        return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(self.stacks.items()))

    @classmethod
    def parse(cls, text: str) -> "Folded":
        """Read folded stacks. Raises ValueError, which names the line, for any other text."""
        counts: Counter[Stack] = Counter()
        for number, line in enumerate(text.split("\n")[:-1], start=1):
            words, space, count = line.rpartition(" ")
            stack = tuple(escape_controls(words, kept="").split(";"))
            if not (
                space
                and count.isascii()
                and count.isdigit()
                and 0 < int(count[:20]) <= MAX_SAMPLES
                and all(stack)
                and len(stack) <= MAX_FRAMES
            ):
                raise ValueError(f"line {number} is no stack with a number of samples: {line[:60]!r}")
            counts[stack] += int(count)
        if text and not text.endswith("\n"):
            raise ValueError("its last line is cut short")
        return cls(counts)

    @classmethod
    def sum(cls, parts: Iterable["Folded"]) -> "Folded":
        """Add up repetitions of a step."""
        counts: Counter[Stack] = Counter()
        for part in parts:
            counts.update(part.stacks)
        return cls(counts)

    @property
    def tasks(self) -> Counter[str]:
        """Samples of each task's name."""
        counts: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            counts[stack[0]] += count
        return counts

    @property
    def in_function(self) -> Counter[str]:
        """Samples that were in a function itself."""
        counts: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            if len(stack) > 1:
                counts[stack[-1]] += count
        return counts

    @property
    def under_function(self) -> Counter[str]:
        """Samples that were in a function or in what it called; of a recursion each counts once."""
        counts: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            for function in set(stack[1:]):
                counts[function] += count
        return counts


@dataclass(frozen=True)
class FunctionSamples:
    """A function in one profile."""

    name: str
    itself: int
    total: int
    """With what it called."""


@dataclass(frozen=True)
class FunctionChange:
    """A function in two profiles: samples in the function itself."""

    name: str
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


def top(profile: Folded) -> list[FunctionSamples]:
    """Return all functions, those first that the processor was in most often."""
    itself, total = profile.in_function, profile.under_function
    rows = [FunctionSamples(name, itself[name], count) for name, count in total.items()]
    return sorted(rows, key=lambda row: (-row.itself, -row.total, row.name))


def changes(before: Folded, after: Folded) -> list[FunctionChange]:
    """Return all functions that were sampled themselves, those first whose samples changed most."""
    earlier, other = before.in_function, after.in_function
    rows = [FunctionChange(name, earlier[name], other[name]) for name in {*earlier, *other}]
    return sorted(rows, key=lambda row: (-abs(row.change), row.name))


HEADER = struct.Struct("<IHH")
"""Type, flags and size of a record."""
MAP, LOST, COMM, FORK, SAMPLE = 1, 2, 3, 7, 9
"""Types of records."""
EXEC = 1 << 13
"""The flag of a COMM record: the process runs a new program from here on."""
IN_KERNEL, IN_PROGRAM, CONTEXTS = (1 << 64) - 128, (1 << 64) - 512, (1 << 64) - 4095
"""Words of a stack that say what the addresses after them are; whatever is above the last is such a word."""
IDLE_TASK = 0
IDLE = frozenset(
    (
        *("acpi_idle_do_entry", "acpi_idle_enter", "acpi_safe_halt", "arch_cpu_idle", "cpu_idle_poll"),
        *("cpuidle_enter_state", "cpuidle_idle_call", "default_idle", "default_idle_call", "intel_idle"),
        *("mwait_idle", "native_safe_halt", "poll_idle", "pv_native_safe_halt", "safe_halt"),
    )
)
"""Functions in which a processor waits."""
MAX_STACKS, MAX_TASKS, MAX_MAPPINGS = 200_000, 1 << 18, 4096
"""Different stacks of a step, names of tasks, and files of one process at most. What is beyond counts as lost, or as
unknown: a guest's log shall not take the host's memory."""
WORKER = re.compile(r"kworker/.*", re.DOTALL)
MAPS_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) \S+ \d+ +(\S.*)", re.ASCII)
"""A line of /proc/<pid>/maps that is code."""


@dataclass(frozen=True)
class FoldedStep:
    """The stacks of one step, and what is not among them."""

    section: StepLog
    stacks: Folded
    idle: int
    """Samples at which the processor waited."""
    profiler: int
    """Samples of the profiler itself."""
    lost: int
    """Samples for which there was no room."""


@dataclass
class _Tasks:
    """The names of tasks, and the programs of processes, as they are at one record."""

    names: dict[int, str] = field(default_factory=dict)
    mappings: dict[int, tuple[MappedFile, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: list[str]) -> "_Tasks":
        """Read what there was when the step began."""
        tasks = cls()
        whole: dict[tuple[str, int], str] = {}
        for text in texts:
            head, _, rest = text.partition("\n")
            kind, _, number = head.partition(" ")
            if kind not in ("comm", "maps") or not (number.isascii() and number.isdigit()):
                raise UnreadableLog(f"a task is described by {head[:60]!r}")
            whole[kind, int(number)] = whole.get((kind, int(number)), "") + rest
        for (kind, pid), text in whole.items():
            if kind == "comm":
                tasks.names[pid] = _task_name(text.strip("\n"))
            else:
                tasks.mappings[pid] = tuple(_mappings(text))
        return tasks

    def add(self, pid: int, mapping: MappedFile) -> None:
        if len(self.mappings.get(pid, ())) >= MAX_MAPPINGS or self._is_new_beyond(pid, self.mappings):
            return
        end = mapping.first + mapping.size
        kept = (
            mapped
            for mapped in self.mappings.get(pid, ())
            if mapped.first + mapped.size <= mapping.first or mapped.first >= end
        )
        self.mappings[pid] = (*kept, mapping)

    def name(self, tid: int, name: str) -> None:
        if not self._is_new_beyond(tid, self.names):
            self.names[tid] = name

    def _is_new_beyond(self, number: int, known: Container[int]) -> bool:
        return number not in known and max(len(self.names), len(self.mappings)) >= MAX_TASKS

    def fork(self, pid: int, parent: int) -> None:
        if not self._is_new_beyond(pid, self.mappings):
            self.mappings[pid] = self.mappings.get(parent, ())


def _task_name(text: str) -> str:
    """Return the name of a task in stacks; workers of the kernel have numbers that come and go."""
    return frame(WORKER.sub("kworker", text))


def _mappings(text: str) -> Iterator[MappedFile]:
    for line in text.split("\n"):
        if match := MAPS_LINE.fullmatch(line):
            first, end = int(match[1], 16), int(match[2], 16)
            yield MappedFile(first, end - first, int(match[3], 16), match[4])


def fold(file: BinaryIO) -> list[FoldedStep]:
    """Fold every step of a log that came to its end. Raises UnreadableLog."""
    steps = []
    symbols: KernelSymbols | None = None
    for section in sections(file):
        if section.dropped is None:
            continue
        if section.symbols:
            symbols = _symbols(file, section)
        if symbols is None:
            raise UnreadableLog(f"the log has no symbols of the kernel before step {section.step}")
        steps.append(_fold(file, section, symbols))
    return steps


def _symbols(file: BinaryIO, section: StepLog) -> KernelSymbols:
    if sum(size for _, size in section.symbols) > MAX_SYMBOLS:
        raise UnreadableLog(f"the kernel's symbols take more than {MAX_SYMBOLS} bytes")
    text = b"".join(_pieces(file, section.symbols)).decode("ascii", "replace")
    try:
        return KernelSymbols.parse(text.split("\n"))
    except ValueError as error:
        raise UnreadableLog(f"/proc/kallsyms: {error}") from error


def _pieces(file: BinaryIO, places: list[tuple[int, int]]) -> Iterator[bytes]:
    for place, size in places:
        file.seek(place)
        yield file.read(size)


def _fold(file: BinaryIO, section: StepLog, symbols: KernelSymbols) -> FoldedStep:
    """Count equal stacks of addresses first: names are looked up once for each."""
    tasks = _Tasks.parse(section.tasks)
    raw: Counter[tuple[str, bool, tuple[MappedFile, ...], bytes]] = Counter()
    own = lost = 0
    for kind, flags, body in _records(file, section):
        try:
            if kind == SAMPLE:
                pid, tid, depth = struct.unpack_from("<IIQ", body)
                addresses = body[16:]
                if depth * 8 != len(addresses):
                    raise UnreadableLog(f"a stack of {depth} addresses takes {len(addresses)} bytes")
                if pid == section.profiler:
                    own += 1
                    continue
                stack = _name(tasks, pid, tid), pid == IDLE_TASK, tasks.mappings.get(pid, ()), addresses
                if stack in raw or len(raw) < MAX_STACKS:
                    raw[stack] += 1
                else:
                    lost += 1
            elif kind == MAP:
                pid, _, first, size, offset = struct.unpack_from("<IIQQQ", body)
                tasks.add(pid, MappedFile(first, size, offset, _text(body[32:])))
            elif kind == COMM:
                pid, tid = struct.unpack_from("<II", body)
                tasks.name(tid, _task_name(_text(body[8:])))
                if flags & EXEC:
                    tasks.mappings.pop(pid, None)
            elif kind == FORK:
                pid, parent, tid, parent_tid = struct.unpack_from("<IIII", body)
                tasks.name(tid, _name(tasks, parent, parent_tid))
                if pid != parent:
                    tasks.fork(pid, parent)
            elif kind == LOST:
                lost += struct.unpack_from("<QQ", body)[1]
        except struct.error as error:
            raise UnreadableLog(f"a record of kind {kind} has {len(body)} bytes") from error
    step = FoldedStep(section, Folded({}), 0, own, lost + (section.dropped or 0))
    return _named(raw, step, symbols)


def _named(
    raw: Counter[tuple[str, bool, tuple[MappedFile, ...], bytes]], step: FoldedStep, symbols: KernelSymbols
) -> FoldedStep:
    """Give names to the addresses of stacks."""
    stacks: Counter[Stack] = Counter()
    idle = 0
    for (task, is_idle, mappings, data), count in raw.items():
        kernel, program = _frames(data, mappings, symbols)
        if is_idle and (not kernel or kernel[0] in IDLE):
            idle += count
        else:
            stacks[(task, *reversed(program), *reversed(kernel))] += count
    return replace(step, stacks=Folded(dict(stacks)), idle=idle)


def _frames(data: bytes, mappings: tuple[MappedFile, ...], symbols: KernelSymbols) -> tuple[list[str], list[str]]:
    """Return the frames in the kernel and in the program, innermost first.

    Those of a program go as far as its code keeps frame pointers; several in one file are one frame.
    """
    kernel: list[str] = []
    program: list[str] = []
    context = IN_KERNEL
    for (address,) in struct.iter_unpack("<Q", data):
        if address >= CONTEXTS:
            context = address
        elif context == IN_KERNEL:
            # What is not innermost is where a call returns to: the call is before it.
            kernel.append(symbols.name(address - 1 if kernel else address))
        elif context == IN_PROGRAM:
            name = program_frame(mappings, address)
            if name is None and program:
                break  # no frame pointer, but any other number
            name = name or "[unknown]"
            if program[-1:] != [name]:
                program.append(name)
    return kernel, program


def _name(tasks: _Tasks, pid: int, tid: int) -> str:
    if pid == IDLE_TASK:
        return "swapper"
    return tasks.names.get(tid) or tasks.names.get(pid) or "[unknown]"


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def _records(file: BinaryIO, section: StepLog) -> Iterator[tuple[int, int, bytes]]:
    """Yield type, flags and body of each record."""
    for piece in _pieces(file, section.records):
        place = 0
        while place < len(piece):
            if place + HEADER.size > len(piece):
                raise UnreadableLog("a record is cut short")
            kind, flags, size = HEADER.unpack_from(piece, place)
            if size < HEADER.size or place + size > len(piece):
                raise UnreadableLog(f"a record of kind {kind} takes {size} bytes, of which there are not so many")
            yield kind, flags, piece[place + HEADER.size : place + size]
            place += size
