"""How a boot ended, from the three witnesses: what the harness said, what the console says, how the domain went."""

from dataclasses import dataclass

from agelab.model.console import TROUBLE, panic
from agelab.model.event import Ended, StepFailed
from agelab.model.result import Status
from agelab.vm.hypervisor import Ending


@dataclass(frozen=True)
class Verdict:
    """A cell's status with the reason where it is not ok."""

    status: Status
    reason: str | None = None


def verdict(ending: Ending, ended: Ended | None, failures: list[StepFailed], console: str) -> Verdict:
    """The status of a cell whose last boot ended so.

    A host-time limit can only ever interrupt a cell: how fast the host was says nothing about the guest.
    """
    if ending is Ending.LOST:
        return Verdict(
            Status.INTERRUPTED, "the host's filesystem was full: some of what the guest said is lost"
        )
    if panicked := panic(console):
        return Verdict(Status.PANICKED, panicked)
    if ended and ended.status != "ok":
        return Verdict(Status(ended.status), ended.reason)
    if ended and failures:
        first = failures[0]
        others = f"; {len(failures) - 1} more steps failed" if len(failures) > 1 else ""
        step = f"step {first.step}, repetition {first.repetition}, exited {first.status}: {first.said}"
        return Verdict(Status.FAILED, step + others)
    if ended:
        return Verdict(Status.OK)
    if ending is Ending.WATCHDOG:
        return Verdict(Status.HUNG, "the watchdog fired: nothing ran in the guest any more")
    if ending is Ending.TIMEOUT:
        return Verdict(Status.INTERRUPTED, "the host's patience ended before the guest's work did")
    if ending is Ending.CRASHED:
        return Verdict(Status.INTERRUPTED, "QEMU ended by itself; a full host filesystem does that")
    trouble = TROUBLE.search(console)
    said = f": {trouble.group().strip()}" if trouble else ""
    return Verdict(Status.FAILED, f"the guest stopped without a word from the harness{said}")
