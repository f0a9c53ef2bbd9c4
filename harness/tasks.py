"""Which tasks are stuck, and in what: /proc/<pid>/task/<tid>/stat, wchan and stack (proc(5))."""

from pathlib import Path

MOST = 16
"""Tasks to tell of."""
DEEPEST = 12
"""Calls of each one's stack to tell of."""
NAMED = 3
"""Tasks to name in a reason."""
BLOCKED = "D"
"""The state of a task that waits for the kernel, and that nothing can end."""


def stuck(session: int) -> list[dict[str, object]]:
    """The tasks that are blocked, whosever they are, then the others of that session."""
    tasks = []
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            words, _, rest = stat.read_text(errors="replace").rpartition(")")
            pid, _, name = words.partition("(")
            fields = rest.split()
            if fields[0] == BLOCKED or int(fields[3]) == session:
                tasks.append({"pid": int(pid), "name": name, "state": fields[0], **_where(stat.parent)})
        except OSError:  # it has ended meanwhile
            continue
    tasks.sort(key=lambda task: (task["state"] != BLOCKED, task["pid"]))
    return tasks[:MOST]


def _where(task: Path) -> dict[str, object]:
    """The function that it waits in, and the calls that led there, where the kernel tells."""
    try:
        waits = (task / "wchan").read_text()
        calls = [line.partition("] ")[2] for line in (task / "stack").read_text().splitlines()]
    except PermissionError:
        waits, calls = "", []
    return {"waits_in": "" if waits == "0" else waits, "stack": calls[:DEEPEST]}


def named(tasks: list[dict[str, object]]) -> str:
    """A few of them in a few words: ``blocked: sync (D, wb_wait_for_completion)``."""
    blocked = [task for task in tasks if task["state"] == BLOCKED]
    words = [
        f"{task['name']} ({', '.join(str(task[key]) for key in ('state', 'waits_in') if task[key])})"
        for task in (blocked or tasks)[:NAMED]
    ]
    return f"{'blocked' if blocked else 'its tasks'}: {', '.join(words)}" if words else ""
