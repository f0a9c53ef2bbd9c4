"""How a boot ended, from the three witnesses: what the harness said, what the console says, how the domain went."""

from collections.abc import Sequence
from dataclasses import dataclass

from agelab.model.console import KERNEL_ERROR, filesystem_shutdown, out_of_memory_kill, panic_message
from agelab.model.event import CellEnded, StepFailed
from agelab.model.result import Status, StuckTask
from agelab.vm.hypervisor import Ending

FULL = "No space left on device"
"""ENOSPC, as programs say it."""
OUTSIDE = {
    Ending.TIMEOUT: "the host's patience ended before the guest's work did",
    Ending.PAUSED: "the guest was paused by somebody on the host until the host's patience ended",
    Ending.UNHEARD: "the host's filesystem was full: some of what the guest said is lost",
    Ending.LOST: "libvirt's daemon ended while the guest ran, and the guest with it",
    Ending.CRASHED: "QEMU was killed, or ended by itself; a full host filesystem does that",
}
"""What comes from the host, and says nothing of the guest."""


@dataclass(frozen=True)
class CellStatus:
    """A cell's status with the reason where it is not ok."""

    status: Status
    reason: str | None = None
    stuck: tuple[StuckTask, ...] = ()
    """Of a hung cell the tasks that did not go on."""
    repeatable: bool = True
    """Whether it was the guest's time that decided where it ended."""


def judge_boot(
    ending: Ending,
    ended: CellEnded | None,
    failures: Sequence[StepFailed],
    console: str,
    *,
    gone: Sequence[str] = (),
    during: str = "",
) -> CellStatus:
    """The status of a cell whose last boot ended so; ``gone``: what its filesystem is said to have given up by,
    ``during``: the step that was under way.

    A host-time limit can only ever interrupt a cell: how fast the host was says nothing about the guest.
    """
    within = f"{during}: " if during else ""
    if ending is Ending.UNHEARD:
        return CellStatus(Status.INTERRUPTED, OUTSIDE[ending])
    if panicked := panic_message(console):
        return CellStatus(Status.PANICKED, within + panicked)
    if ending is Ending.FLOODED:
        why = "the guest wrote more to its console or its events than any work of a cell does"
        return CellStatus(Status.FAILED, within + why, repeatable=False)
    if ended and ended.status == "hung":
        return CellStatus(Status.HUNG, ended.reason, ended.stuck)
    told = _told(ended, failures)
    kernel = filesystem_shutdown(console, gone) or out_of_memory_kill(console)
    if kernel and kernel not in (told or ""):
        told = "; ".join(filter(None, (kernel, told)))
    if ended and told:
        return CellStatus(Status.FAILED, told)
    if ended:
        return CellStatus(Status.OK)
    if ending is Ending.WATCHDOG:
        return CellStatus(
            Status.HUNG, f"{within}the watchdog fired: nothing ran in the guest any more" + _and(kernel)
        )
    if ending in OUTSIDE:
        return CellStatus(Status.INTERRUPTED, OUTSIDE[ending])
    trouble = KERNEL_ERROR.search(console)
    said = kernel or (trouble.group().strip() if trouble else None)
    return CellStatus(
        Status.FAILED, f"{within}the guest stopped without a word from the harness" + _and(said)
    )


def _told(ended: CellEnded | None, failures: Sequence[StepFailed]) -> str | None:
    """What the harness says that failed; None where nothing did."""
    if ended and ended.status == "failed":
        return ended.reason
    if not failures:
        return None
    first = failures[0]
    others = f"; {len(failures) - 1} more steps failed" if len(failures) > 1 else ""
    full = "disk full in the guest: " if FULL in first.said else ""
    return (
        f"{full}step {first.step}, repetition {first.repetition}, exited {first.status}: {first.said}{others}"
    )


def _and(said: str | None) -> str:
    return f": {said}" if said else ""
