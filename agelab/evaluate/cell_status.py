"""The status of a cell from three witnesses: the harness, the console, and how the domain ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from agelab.evaluate.console import (
    KERNEL_ERROR,
    filesystem_shutdown,
    last_line,
    out_of_memory_kill,
    out_of_memory_panic,
    panic_message,
)
from agelab.results.result import CellEnded, Ending, Status, StepFailed, StuckTask

ENOSPC = "No space left on device"
"""The error as programs print it."""
ROOT_FULL = "/tmp and the rest of the root, "
"""How the harness's words begin where it is not the disk that is full (harness/step.py)."""
COMMAND_NOT_RUN = 126
"""From this exit status on a command could not be run, or was killed (sh(1))."""
MOUNT_FAILED = "mount failed (exit "
"""The harness's reason where the disk under test is refused: mount knows less than the kernel, which says why."""
INTERRUPTIONS = {
    Ending.TIMEOUT: "the host's patience ended before the guest's work did",
    Ending.SILENT: "QEMU hung before the guest's kernel said a word",
    Ending.PAUSED: "the guest was paused by somebody on the host until the host's patience ended",
    Ending.OUTPUT_LOST: (
        "some of what the harness said is lost: the host's filesystem was full, or a step wrote into it"
    ),
    Ending.DAEMON_LOST: "libvirt's daemon ended while the guest ran, and the guest with it",
    Ending.CRASHED: "QEMU was killed, or ended by itself; a full host filesystem does that",
}
"""Ends that the host caused: they say nothing about the guest."""
BY_GUEST = (Ending.STOPPED, Ending.WATCHDOG)
"""Ends at a moment of the guest's time."""


@dataclass(frozen=True)
class CellStatus:
    """A cell's status, and the reason where it is not ok."""

    status: Status
    reason: str | None = None
    stuck: tuple[StuckTask, ...] = ()
    """The tasks of a hung cell that did not go on."""
    repeatable: bool = True
    """True if the guest's time decided where it ended, not the host's."""

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


def judge_boot(
    ending: Ending,
    ended: CellEnded | None,
    failures: Sequence[StepFailed],
    console: str,
    *,
    gone: Sequence[str] = (),
    during: str = "",
    foreign: str = "",
) -> CellStatus:
    """Judge how a boot ended.

    ``gone`` are patterns of kernel messages by which its filesystem shuts itself down, ``during`` names the step that
    was under way, ``foreign`` why an event was not the harness's.

    A limit of host time only interrupts a cell: the host's speed says nothing about the guest.
    """
    step = f"{during}: " if during else ""
    if ending is Ending.OUTPUT_LOST:
        return CellStatus(Status.INTERRUPTED, INTERRUPTIONS[ending])
    if foreign:
        return CellStatus(Status.FAILED, foreign, repeatable=ending in BY_GUEST)
    if none_left := out_of_memory_panic(console):
        return CellStatus(Status.FAILED, step + none_left)
    if panicked := panic_message(console):
        return CellStatus(Status.PANICKED, step + panicked)
    if ending is Ending.OUTPUT_TOO_LARGE:
        why = "the guest wrote more to its console or its events than any work of a cell does"
        return CellStatus(Status.FAILED, step + why, repeatable=False)
    if ended and ended.status == "hung":
        return CellStatus(Status.HUNG, ended.reason, ended.stuck)
    reason = _harness_reason(ended, failures)
    kernel = filesystem_shutdown(console, gone) or out_of_memory_kill(console)
    if kernel and kernel not in (reason or ""):
        reason = "; ".join(filter(None, (kernel, reason)))
    if reason and reason.startswith(MOUNT_FAILED) and not kernel and (last_words := last_line(console)):
        reason = f"{reason}; the kernel: {last_words}"
    if ended and reason:
        return CellStatus(Status.FAILED, reason)
    if ended:
        return CellStatus(Status.OK)
    if ending is Ending.WATCHDOG:
        return CellStatus(Status.HUNG, f"{step}the watchdog fired: nothing ran in the guest any more" + _suffix(kernel))
    if ending in INTERRUPTIONS:
        return CellStatus(Status.INTERRUPTED, INTERRUPTIONS[ending])
    trouble = KERNEL_ERROR.search(console)
    last_words = kernel or (trouble.group().strip() if trouble else None)
    return CellStatus(Status.FAILED, f"{step}the guest stopped, and its harness said nothing" + _suffix(last_words))


def _harness_reason(ended: CellEnded | None, failures: Sequence[StepFailed]) -> str | None:
    """Return the failure that the harness reports, or None."""
    if ended and ended.status == "failed":
        return ended.reason
    if not failures:
        return None
    first = failures[0]
    more = len(failures) - 1
    others = f"; {more} more step{'s' if more > 1 else ''} failed" if more else ""
    full = ENOSPC in first.said and not first.said.startswith(ROOT_FULL)
    words = first.said or "it printed nothing to its error output"
    if not first.said and first.status < COMMAND_NOT_RUN:
        words += f" (where {first.status} is no failure, the step says expect = [0, {first.status}])"
    what = f"{'disk full in the guest: ' if full else ''}step {first.step}, repetition {first.repetition}"
    return f"{what}, exited {first.status}: {words}{others}"


def _suffix(words: str | None) -> str:
    return f": {words}" if words else ""
