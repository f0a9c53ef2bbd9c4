"""The plan of a pass that records what the modelled drives are sent: each step between two that begin and keep it."""

from dataclasses import replace

from agelab.runner.plan.kept_output import SUFFIX, is_keeper
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.step_plan import StepPlan
from agelab.stored_disk import DISK_ALIGNMENT

PROGRAM = "record-blocks"
"""The guest's program that does it (harness/output)."""
PLACE_BYTES, HEADER_BYTES = 16 << 20, 4096
"""Bytes of a step's record at most, and those of them that say what it is."""
DISK_VARIABLE = "BLOCKS_DISK"
"""The environment variable with the disk's number in the guest."""
MEMORY = 8 << 20
"""Bytes of the guest's memory in which the events wait."""
DEADLINE = 600.0


def is_recorded(step: StepPlan) -> bool:
    """Tell whether a step is recorded: what happens before a power cut is lost with the memory."""
    return step.cut_after is None and not is_keeper(step.name)


def disk_bytes(phase: Phase) -> int:
    """Return the size of the disk for the records of a phase."""
    size = PLACE_BYTES * max(1, sum(map(is_recorded, phase.steps)))
    return -(-size // DISK_ALIGNMENT) * DISK_ALIGNMENT


def recorded(phase: Phase) -> Phase:
    """Return the phase with its steps recorded; forks stay where they are.

    What is done with the caches before a step, and its pause, come before the recording begins.
    """
    steps: list[StepPlan] = []
    first: dict[int, int] = {}
    place = 0
    for index, step in enumerate(phase.steps):
        first[index] = len(steps)
        if not is_recorded(step):
            steps.append(step)
            continue
        begins = replace(_of(step, "begin", "begin"), caches=step.caches, pause=step.pause)
        keeps = _of(step, "blocks", f'keep "${DISK_VARIABLE}" {place}')
        steps += [begins, replace(step, caches="keep", pause=0), keeps]
        place += 1
    first[len(phase.steps)] = len(steps)
    forks = {first[index]: name for index, name in phase.forks.items()}
    return replace(phase, steps=tuple(steps), forks=forks)


def _of(step: StepPlan, name: str, words: str) -> StepPlan:
    """Return a step of the recording program, whose samples nobody keeps."""
    return StepPlan(
        name=f"{step.name}.{name}{SUFFIX}",
        repetition=step.repetition,
        run=f"exec {PROGRAM} {words}",
        caches="keep",
        sync=False,
        pause=0,
        expect=(0,),
        refuses=(),
        deadline=DEADLINE,
        moves=None,
        records=(),
        disk=step.disk,
    )
