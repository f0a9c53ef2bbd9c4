"""The first mount after a power cut: how long a filesystem takes to be there again, and what its check says."""

from collections.abc import Callable
from pathlib import Path

from harness.events import Events
from harness.plan import Disk, Recovery
from harness.step import Outcome

ANY = tuple(range(256))
"""Exit statuses that are a result."""
QUOTED = 2000
"""Characters of what a check says that are told: half of them its first, half of them its last."""

Run = Callable[[str, tuple[str, ...], tuple[int, ...]], Outcome]
"""Runs a command as a step of that name, with the exit statuses that are no failure."""
Do = Callable[[list[str], str], None]
"""Runs a command that is not measured; the second argument says what for, in the words of a failure."""
Must = Callable[[Outcome, str], None]
"""Ends the cell if that went wrong; the second argument says what."""


def recover(
    disk: Disk, todo: Recovery, repetition: int, run: Run, do: Do, must: Must, scratch: Path, events: Events
) -> None:
    """Mount what the cut has left, which replays the journal, and have it checked; it is mounted in the end.

    The step ``recovery`` is the mount. ``repair`` comes before it where that is the filesystem's way. After a mount
    that failed come ``repair-after`` and a second mount, ``recovery-repaired``. ``fsck`` looks, changing nothing, at
    what the recovery has left. What the programs answer is a result, but the cell fails where nothing can be mounted.
    """

    def mount(name: str) -> Outcome:
        outcome = run(name, disk.mount, ANY)
        events.sample(name, repetition, "mount_status", outcome.status, "1")
        if outcome.status:
            events.emit("checked", step=name, status=outcome.status, said=outcome.said)
        return outcome

    if todo.repair_first:
        check("repair", todo.repair, repetition, run, scratch, events)
    mounted = mount("recovery")
    if mounted.status and todo.repair:
        check("repair-after", todo.repair, repetition, run, scratch, events)
        mounted = mount("recovery-repaired")
    must(mounted, "mounting what the power cut and a repair have left")
    do(list(disk.umount), "unmounting what was recovered")
    check("fsck", todo.fsck, repetition, run, scratch, events)
    do(list(disk.mount), "mounting what was recovered")


def check(name: str, argv: tuple[str, ...], repetition: int, run: Run, scratch: Path, events: Events) -> None:
    """Run a check as a step of that name; what it answers is a result."""
    output = scratch / "check"
    outcome = run(name, ("sh", "-c", 'exec "$@" > "$0" 2>&1', str(output), *argv), ANY)
    answer = output.read_text(errors="replace")
    events.sample(name, repetition, "fsck_status", outcome.status, "1")
    events.sample(name, repetition, "fsck_lines", len(answer.splitlines()), "1")
    events.emit("checked", step=name, status=outcome.status, said=shortened(answer))


def shortened(answer: str) -> str:
    """Its beginning and its end."""
    half = QUOTED // 2
    return answer if len(answer) <= QUOTED else f"{answer[:half]}\n[...]\n{answer[-half:]}"
