"""The steps that keep what others print, on a disk of their own, for the host to read.

The guest keeps the output of a step in RAM, where writing it costs next to nothing. A step of its own, after it and
outside all measuring, writes it to its place on the output disk (harness/output/keep-output).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from agelab.evaluate.step_output import PLACE_BYTES, KeptOutput
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.step_plan import StepPlan
from agelab.scenario.step import StepId
from agelab.scenario.workload import GuestProgram
from agelab.store.stored_disk import DISK_ALIGNMENT

PROGRAM = "keep-output"
"""The guest's program that does it."""
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


def outputs(phase: Phase, programs: Mapping[str, GuestProgram]) -> Iterator[KeptOutput]:
    """Yield the outputs of a phase that are read, in their places on the output disk."""
    for place, step in enumerate(filter(_is_kept, phase.steps)):
        if step.output:
            program = programs[step.output.program] if step.output.program else None
            step_id = StepId.parse(step.name).inside(phase.in_samples)
            yield KeptOutput(place, step_id, step.repetition, program, step.output.records)


def disk_bytes(phase: Phase) -> int:
    """Return the size of a phase's output disk; 0 where it has none."""
    size = PLACE_BYTES * sum(map(_is_kept, phase.steps))
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
