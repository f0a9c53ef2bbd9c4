"""The steps that keep what others print, on a disk of their own, for the host to read.

The guest keeps the output of a step in RAM, where writing it costs next to nothing. A step of its own, after it and
outside all measuring, writes it to its place on the output disk (harness/output/keep-output).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from agelab.runner.plan.phases import Phase
from agelab.runner.plan.step_plan import StepPlan
from agelab.stored_disk import DISK_ALIGNMENT

PROGRAM = "keep-output"
"""The guest's program that does it."""
PLACE_BYTES = 1 << 20
"""Bytes of an output at most; what is beyond is left out."""
PRINTED = "/run/agelab/said/output"
"""The guest's file that a step prints to: in the memory that what steps say may take."""
SUFFIX = ".output"
"""The end of such a step's name, which no step of a scenario can have."""
DISK_VARIABLE = "OUTPUT_DISK"
"""The environment variable with the disk's number in the guest."""
DEADLINE = 600.0


def is_keeper(step: str) -> bool:
    """Tell whether a step keeps another's output: nothing that it measures is a result."""
    return step.endswith(SUFFIX)


def outputs(phase: Phase) -> Iterator[tuple[int, StepPlan]]:
    """Yield the steps of a phase whose output is read, with their places on the output disk."""
    yield from enumerate(step for step in phase.steps if _is_kept(step))


def disk_bytes(phase: Phase) -> int:
    """Return the size of a phase's output disk; 0 where it has none."""
    size = PLACE_BYTES * sum(1 for _ in outputs(phase))
    return -(-size // DISK_ALIGNMENT) * DISK_ALIGNMENT


def with_keepers(phase: Phase) -> Phase:
    """Return the phase with a keeper after each step whose output is read."""
    if not any(map(_is_kept, phase.steps)):
        return phase
    places = count()

    def kept(step: StepPlan) -> tuple[StepPlan, ...]:
        if not _is_kept(step):
            return (step,)
        words = f'{PROGRAM} {PRINTED} "${DISK_VARIABLE}" {next(places)}'
        return replace(step, run=f"exec >{PRINTED}\n{step.run}"), keeper(step, step.name, words)

    return phase.expanded(kept)


def _is_kept(step: StepPlan) -> bool:
    """Tell whether the output of a step outlives it: what is printed before a power cut is lost."""
    return step.output is not None and step.cut_after is None


def keeper(step: StepPlan, name: str, words: str) -> StepPlan:
    """Return a step beside another, of a program of ours: what it measures nobody keeps."""
    return StepPlan(
        name=f"{name}{SUFFIX}",
        repetition=step.repetition,
        run=f"exec {words}",
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
