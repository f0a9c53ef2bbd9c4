"""Workloads: the tree that each begins with, and the calls that it makes.

All sequences of so many calls over a bounded set of files and directories, each followed by one that makes something
persist: the idea is that of bounded black-box crash testing (Mohan and others, OSDI 2018); the list is our own.
"""

import random
import re
from collections.abc import Iterator
from itertools import product

from agelab.base.errors import InputError

Calls = tuple[str, ...]

BEGINNING: Calls = (
    "mkdir A",
    "mkdir B",
    "mkdir C",
    "create A/foo",
    "write A/foo 0 8192",
    "create A/bar",
    "write A/bar 0 4096",
    "setxattr A/bar user.a one",
    "create B/foo",
    "write B/foo 0 8192",
)
"""Each workload finds this, synced and unmounted once."""

OPERATIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "create A/new": (("A/new",), ("A",)),
    "mkdir A/dir": (("A/dir",), ("A",)),
    "symlink foo A/soft": ((), ("A",)),
    "link A/foo A/hard": (("A/foo", "A/hard"), ("A",)),
    "link A/foo B/hard": (("A/foo", "B/hard"), ("B",)),
    "unlink A/bar": ((), ("A",)),
    "rmdir C": ((), (".",)),
    "rename A/foo A/moved": (("A/moved",), ("A",)),
    "rename A/foo B/moved": (("B/moved",), ("A", "B")),
    "rename A/foo A/bar": (("A/bar",), ("A",)),
    "rename A/foo B/foo": (("B/foo",), ("A", "B")),
    "rename C B/C": ((), (".", "B")),
    "write A/foo 0 4096": (("A/foo",), ()),
    "append A/foo 0 4096": (("A/foo",), ()),
    "write A/foo 16384 4096": (("A/foo",), ()),
    "truncate A/foo 4096": (("A/foo",), ()),
    "truncate A/foo 16384": (("A/foo",), ()),
    "fallocate A/foo 8192 8192": (("A/foo",), ()),
    "punch A/foo 0 4096": (("A/foo",), ()),
    "setxattr A/foo user.b two": (("A/foo",), ()),
    "removexattr A/bar user.a": (("A/bar",), ()),
}
"""Each with the files, and with the directories, that show what it has done."""
DATA = ("write", "append", "truncate", "fallocate", "punch")
"""Operations after which fdatasync(2) has something to do."""
ARGUMENTS = {
    **dict.fromkeys(("create", "mkdir", "rmdir", "unlink", "fsync", "fdatasync", "syncfs"), 1),
    **dict.fromkeys(("link", "symlink", "rename", "truncate", "removexattr"), 2),
    **dict.fromkeys(("write", "append", "fallocate", "punch", "setxattr"), 3),
    "sync": 0,
}
"""Words behind each call's name."""
NAMES = ("one", "two", "random", "fsx")
DRAWN, DRAWN_CALLS, DRAWN_SYNCED = 16, 12, 0.4
"""Workloads that chance draws, operations of each, and the part of these that a call follows which makes something
persist."""
FSX, FSX_CALLS, FSX_BYTES = 8, 24, 96 << 10
"""Workloads of one file's content, calls of each, and where they end in the file."""
MAX_WRITE = 1 << 20
"""Bytes of one write at most."""


def sequences(length: int) -> Iterator[Calls]:
    """Yield each sequence of so many operations, with each call that makes the last one persist."""
    for operations in product(OPERATIONS, repeat=length):
        if len(set(operations)) < length:
            continue
        files, directories = OPERATIONS[operations[-1]]
        ends = ["sync", *(f"fsync {path}" for path in (*files, *directories))]
        if operations[-1].split()[0] in DATA:
            ends += [f"fdatasync {path}" for path in files]
        for end in ends:
            yield (*operations, end)


def drawn(seed: int) -> Iterator[Calls]:
    """Yield workloads of many calls, as chance draws them; some fail, since an earlier call took their file away."""
    chance = random.Random(f"crash {seed}")
    ends = {end for (*_, end) in sequences(1)}
    for _ in range(DRAWN):
        calls = [chance.choice([*OPERATIONS]) for _ in range(DRAWN_CALLS)]
        yield tuple(
            word
            for call in calls
            for word in (call, *([chance.choice(sorted(ends))] if chance.random() < DRAWN_SYNCED else []))
        )


def scattered(seed: int) -> Iterator[Calls]:
    """Yield workloads that write, cut and punch one file at places and in sizes of any number of bytes."""
    chance = random.Random(f"crash fsx {seed}")
    for _ in range(FSX):
        calls = []
        for _ in range(FSX_CALLS):
            first, last = sorted(chance.sample(range(FSX_BYTES), 2))
            call = chance.choice(("write", "write", "append", "truncate", "fallocate", "punch"))
            where = f"{last}" if call == "truncate" else f"{first} {last - first}"
            calls.append(f"{call} A/foo {where}")
            if chance.random() < DRAWN_SYNCED:
                calls.append(chance.choice(("fsync A/foo", "fdatasync A/foo", "sync")))
        yield tuple(calls)


def named(name: str, seed: int = 1) -> list[Calls]:
    """Return the workloads of a name (``one``, ``two``, ...), or the one that calls separated by ; make.

    Raises InputError.
    """
    if name in ("random", "fsx"):
        return list((drawn if name == "random" else scattered)(seed))
    if name in NAMES:
        return list(sequences(1 if name == "one" else 2))
    calls = tuple(" ".join(call.split()) for call in name.split(";") if call.strip())
    for call in calls:
        what, *words = call.split()
        if ARGUMENTS.get(what) != len(words):
            raise InputError(
                f"workload: {call[:60]!r} is no call that agelab makes",
                "say one, two, random, fsx, spool, SCENARIO:STEP, a file, or calls separated by ;: "
                "'create A/new; append A/new 0 4096; fsync A/new'",
            )
        if any(word.startswith("/") or ".." in word.split("/") for word in words):
            raise InputError(f"workload: {call[:60]!r} leaves the filesystem: paths begin below it")
        if what in ("write", "append", "fallocate", "punch", "truncate") and not all(
            re.fullmatch(r"\d{1,12}", word) for word in words[1:]
        ):
            raise InputError(f"workload: {call[:60]!r} needs numbers of bytes")
        if what in ("write", "append") and int(words[2]) > MAX_WRITE:
            raise InputError(f"workload: {call[:60]!r} writes more than {MAX_WRITE} bytes at once")
    if not calls:
        raise InputError("the workload makes no calls")
    return [calls]
