"""What strace -c counts: a table, a line for each system call (strace(1))."""

from harness.dilation import Dilation
from harness.events import Events
from harness.plan import Step

RULE = "------"


def counted(table: str) -> list[tuple[str, float, int, int]]:
    """Name, seconds, calls and errors of each system call, in the table's order. The column of errors may be empty."""
    calls, inside = [], False
    for line in table.splitlines():
        if line.startswith(RULE):
            inside = not inside
        elif inside and (words := line.split()):
            errors = int(words[4]) if len(words) == 6 else 0
            calls.append((words[-1], float(words[1]), int(words[3]), errors))
    return calls


def report(table: str, step: Step, events: Events, dilation: Dilation) -> None:
    """Emit what is in the table, each system call as a step of its own: ``strace/read1/getdents64``."""
    for name, seconds, calls, errors in counted(table):
        where = f"{step.name}/{name}"
        events.sample(where, step.repetition, "syscall_seconds", dilation.machine_seconds(seconds * 1e9), "s")
        events.sample(where, step.repetition, "syscall_calls", calls, "1")
        events.sample(where, step.repetition, "syscall_errors", errors, "1")
