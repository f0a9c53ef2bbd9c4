"""Logs as the guest's profiler writes them (harness/profiler/step-profile.c), made without a guest."""

import io
import struct
from collections.abc import Sequence

from agelab.evaluate.stacks.folded import COMM, EXEC, FORK, IN_KERNEL, IN_PROGRAM, LOST, MAP, SAMPLE
from agelab.evaluate.stacks.log import BLOCK, END, HEAD, RECORDS, STEP, SYMBOLS, TASKS

KALLSYMS = """\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T startup_64
ffffffff81000100 t entry_SYSCALL_64
ffffffff81000200 T ksys_read
ffffffff81000300 T __alias_of_copy_page
ffffffff81000300 T copy_page
ffffffff81000400 t shrink_slab.constprop.0
ffffffff81000500 t default_idle
ffffffff81000600 t __pfx_nothing
ffffffffc0000000 t ext4_readpage\t[ext4]
ffffffffc0000100 d ext4_data\t[ext4]
"""
ENTRY, READ, COPY, SHRINK, IDLE, EXT4 = (
    *(0xFFFFFFFF81000110, 0xFFFFFFFF81000210, 0xFFFFFFFF81000310, 0xFFFFFFFF81000410, 0xFFFFFFFF81000510),
    0xFFFFFFFFC0000010,
)
PROFILER = 77


def record(kind: int, body: bytes, flags: int = 0) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, flags, 8 + len(body)) + body


def sampled(pid: int, kernel: Sequence[int] = (), program: Sequence[int] = ()) -> bytes:
    """One sample; the addresses innermost first."""
    words = [*([IN_KERNEL, *kernel] if kernel else []), *([IN_PROGRAM, *program] if program else [])]
    return record(SAMPLE, struct.pack(f"<IIQ{len(words)}Q", pid, pid, len(words), *words))


def mapped(pid: int, first: int, size: int, path: str) -> bytes:
    return record(MAP, struct.pack("<IIQQQ", pid, pid, first, size, 0) + path.encode() + b"\0")


def called(pid: int, name: str, *, runs: bool = True) -> bytes:
    """A task gets a name; it ``runs`` a new program."""
    return record(COMM, struct.pack("<II", pid, pid) + name.encode() + b"\0", EXEC if runs else 0)


def forked(pid: int, parent: int) -> bytes:
    return record(FORK, struct.pack("<IIIIQ", pid, parent, pid, parent, 0))


def lost(count: int) -> bytes:
    return record(LOST, struct.pack("<QQ", 1, count))


def chunk(kind: int, data: bytes) -> bytes:
    return HEAD.pack(kind, 0, len(data)) + data + bytes(-len(data) % 16)


def step(
    *records: bytes,
    name: str = "copy",
    repetition: int = 1,
    tasks: Sequence[str] = ("comm 5\ncp\n", "maps 5\n00400000-00500000 r-xp 00000000 00:01 7    /usr/bin/cp\n"),
    symbols: str | None = KALLSYMS,
    dropped: int = 0,
    ended: bool = True,
) -> bytes:
    """The section of one step, filled up to whole blocks."""
    data = chunk(STEP, f"{name} {repetition} 999958 {PROFILER}\n".encode())
    data += b"".join(chunk(TASKS, text.encode()) for text in tasks)
    data += b"".join(chunk(RECORDS, one) for one in records)
    if symbols is not None:
        half = len(symbols) // 2
        data += chunk(SYMBOLS, symbols[:half].encode()) + chunk(SYMBOLS, symbols[half:].encode())
    if ended:
        data += chunk(END, f"dropped {dropped}\n".encode())
    return data + bytes(-len(data) % BLOCK)


def log(*steps: bytes) -> io.BytesIO:
    """A whole log."""
    data = b"".join(steps)
    return io.BytesIO(struct.pack("<Q", BLOCK + len(data)).ljust(BLOCK, b"\0") + data)
