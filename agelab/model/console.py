"""What a guest's console says of a kernel in trouble."""

import re
from collections.abc import Iterable

PANIC = re.compile(r"Kernel panic - not syncing: .*")
KERNEL_ERROR = re.compile(
    r"(BUG: |Oops: |kernel BUG at |general protection fault|divide error: |double fault: |stack segment: "
    r"|invalid opcode: |Out of memory and no killable processes|agelab init: ).*"
)
KERNEL_ADDRESS = re.compile(r"RIP: 0010:(\w[\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?)")
"""Of the kernel's own code (segment 0x10): function, offset, size, module."""
HARNESS_ENDED = "Attempted to kill init!"
TRACEBACK = re.compile(r"Traceback \(most recent call last\):\s*?\n(?:[ \t].*\n)+(\w.*)")
"""What Python says in the end of an exception that nothing has caught."""
OOM_KILL = re.compile(r"ut of memory: Killed process (\d+) \((.*?)\)")


def panic_message(console: str) -> str | None:
    """How a kernel that panicked says so, with the first trouble that it had, and where; None where it did not."""
    found = PANIC.search(console)
    if not found:
        return None
    why = []
    if trouble := KERNEL_ERROR.search(console):
        why.append(trouble.group().strip())
        if where := KERNEL_ADDRESS.search(console, trouble.end()):
            why.append(f"in {where[1]}")
    if HARNESS_ENDED in found.group():
        why.append("the harness, the guest's first process, has ended")
        why += [f"it raised {raised[1].strip()}" for raised in TRACEBACK.finditer(console)][-1:]
    return found.group().strip() + (f" ({'; '.join(why)})" if why else "")


def out_of_memory_kill(console: str) -> str | None:
    """Which task the kernel ended for want of memory; None where it ended none."""
    killed = OOM_KILL.search(console)
    return f"out of memory: the kernel ended {killed[2]} (process {killed[1]})" if killed else None


def filesystem_shutdown(console: str, gone: Iterable[str]) -> str | None:
    """How a filesystem has shut itself down or gone read-only, which one of these expressions finds; else None."""
    matches = (re.search(rf"(?:{pattern}).*", console) for pattern in gone)
    first = min((match for match in matches if match), key=lambda match: match.start(), default=None)
    return f"the filesystem has given up: {first.group().strip()}" if first else None
