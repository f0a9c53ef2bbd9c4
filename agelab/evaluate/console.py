"""Find kernel errors in a guest's console."""

import re
from collections.abc import Iterable

PANIC = re.compile(r"Kernel panic - not syncing: .*")
KERNEL_ERROR = re.compile(
    r"(BUG: |Oops: |kernel BUG at |general protection fault|divide error: |double fault: |stack segment: "
    r"|invalid opcode: |Out of memory and no killable processes|agelab init: ).*"
)
KERNEL_ADDRESS = re.compile(r"RIP: 0010:(\w[\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?)")
"""Address in kernel code (segment 0x10): function, offset, size, module."""
LINE = re.compile(r"^\[ *[0-9.]+\] (?!reboot: )(\S.*)", re.MULTILINE)
"""A line of the kernel's, but the last one of a guest that ends."""
HARNESS = "start"
"""Name of the guest's first program."""
HARNESS_ENDED = "Attempted to kill init!"
TRACEBACK = re.compile(r"Traceback \(most recent call last\):\s*?\n(?:[ \t].*\n)+(\w.*)")
"""Python's message about an uncaught exception."""
OUT_OF_MEMORY = re.compile(
    r"Kernel panic - not syncing: (?:Out of memory: .*panic_on_oom is enabled|System is deadlocked on memory)"
)
"""The panic of a kernel that has no memory left (Linux mm/oom_kill.c)."""
CURRENT = re.compile(r"CPU: \d+ (?:UID: \d+ )?PID: (\d+) Comm: (.+?) (?:Not t|T)ainted")
"""The process in which the kernel panics (Linux lib/dump_stack.c)."""
OOM_KILL = re.compile(r"ut of memory: Killed process (\d+) \((.*?)\)")


def panic_message(console: str) -> str | None:
    """Return the panic message with the first kernel error and its address, or None without a panic."""
    panic = PANIC.search(console)
    if not panic:
        return None
    why = []
    if trouble := KERNEL_ERROR.search(console):
        why.append(trouble.group().strip())
        if where := KERNEL_ADDRESS.search(console, trouble.end()):
            why.append(f"in {where[1]}")
    if HARNESS_ENDED in panic.group():
        why.append("the harness, the guest's first process, has ended")
        why += [f"it raised {raised[1].strip()}" for raised in TRACEBACK.finditer(console)][-1:]
    return panic.group().strip() + (f" ({'; '.join(why)})" if why else "")


def out_of_memory_panic(console: str) -> str | None:
    """Return which process found no memory in the guest, or None."""
    panic = OUT_OF_MEMORY.search(console)
    if not panic:
        return None
    process = CURRENT.search(console, panic.end())
    who = ""
    if process:
        who = " for the harness" if process[2] == HARNESS else f" for {process[2]} (process {process[1]})"
    return f"out of memory: none was left{who}; files in /tmp, /dev/shm and /run lie in it, too"


def out_of_memory_kill(console: str) -> str | None:
    """Return which process the kernel killed for lack of memory, or None."""
    killed = OOM_KILL.search(console)
    return f"out of memory: the kernel ended {killed[2]} (process {killed[1]})" if killed else None


def filesystem_shutdown(console: str, gone: Iterable[str]) -> str | None:
    """Return the first message matching one of these expressions, that a filesystem shut down; else None."""
    matches = (re.search(rf"(?:{pattern}).*", console) for pattern in gone)
    first = min((match for match in matches if match), key=lambda match: match.start(), default=None)
    return f"the filesystem has given up: {first.group().strip()}" if first else None


def last_line(console: str) -> str | None:
    """Return the last that the kernel said before the guest ended, or None."""
    lines = LINE.findall(console)
    return lines[-1].strip() if lines else None
