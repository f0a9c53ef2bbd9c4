"""The plan of a pass that records what the modelled drives are sent: each step between two that begin and keep it."""

from dataclasses import replace
from itertools import count

from agelab.runner.plan.kept_output import is_keeper, keeper
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.step_plan import StepPlan
from agelab.store.stored_disk import DISK_ALIGNMENT

PROGRAM = "record-blocks"
"""The guest's program that does it (harness/output)."""
PLACE_BYTES, HEADER_BYTES = 16 << 20, 4096
"""Bytes of a step's record at most, and those of them that say what it is."""
DISK_VARIABLE = "BLOCKS_DISK"
"""The environment variable with the disk's number in the guest."""
MEMORY = 8 << 20
"""Bytes of the guest's memory in which the events wait."""


def is_recorded(step: StepPlan) -> bool:
    """Tell whether a step is recorded: what happens before a power cut is lost with the memory."""
    return step.cut_after is None and not is_keeper(step.name)


def disk_bytes(phase: Phase) -> int:
    """Return the size of the disk for the records of a phase."""
    size = PLACE_BYTES * max(1, sum(map(is_recorded, phase.steps)))
    return -(-size // DISK_ALIGNMENT) * DISK_ALIGNMENT


def recorded(phase: Phase) -> Phase:
    """Return the phase with its steps recorded.

    What is done with the caches before a step, and its pause, come before the recording begins.
    """
    places = count()

    def around(step: StepPlan) -> tuple[StepPlan, ...]:
        if not is_recorded(step):
            return (step,)
        begins = keeper(step, f"{step.name}.begin", f"{PROGRAM} begin")
        keeps = keeper(step, f"{step.name}.blocks", f'{PROGRAM} keep "${DISK_VARIABLE}" {next(places)}')
        return (
            replace(begins, caches=step.caches, pause=step.pause),
            replace(step, caches="keep", pause=0),
            keeps,
        )

    return phase.expanded(around)
