"""Folded stacks: how often each stack was sampled, one a line, as Brendan Gregg's flame graphs read them.

A stack begins with the name of its task; ``cp;entry_SYSCALL_64;ksys_read 17``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agelab.model.sanitize import escape_controls

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
        found: Counter[Stack] = Counter()
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
            found[stack] += int(count)
        if text and not text.endswith("\n"):
            raise ValueError("its last line is cut short")
        return cls(found)

    @classmethod
    def sum(cls, parts: Iterable["Folded"]) -> "Folded":
        """Add up repetitions of a step."""
        found: Counter[Stack] = Counter()
        for part in parts:
            found.update(part.stacks)
        return cls(found)

    @property
    def tasks(self) -> Counter[str]:
        """Samples of each task's name."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            found[stack[0]] += count
        return found

    @property
    def in_function(self) -> Counter[str]:
        """Samples that were in a function itself."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            if len(stack) > 1:
                found[stack[-1]] += count
        return found

    @property
    def under_function(self) -> Counter[str]:
        """Samples that were in a function or in what it called; of a recursion each counts once."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            for function in set(stack[1:]):
                found[function] += count
        return found


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
    one, other = before.in_function, after.in_function
    rows = [FunctionChange(name, one[name], other[name]) for name in {*one, *other}]
    return sorted(rows, key=lambda row: (-abs(row.change), row.name))
