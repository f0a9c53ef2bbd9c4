"""What is done around the steps of a phase: their output is kept; in further passes they are profiled or recorded."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from agelab.evaluate.step_output import PLACE_BYTES, KeptOutput
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.steps import StepPlan
from agelab.scenario.machine import Machine
from agelab.scenario.step import StepId
from agelab.scenario.workload import TEST, GuestProgram
from agelab.store.stored_disk import DISK_ALIGNMENT

KEEPER = "keep-output"
"""The guest's program that does it."""
PRINTED = "/run/agelab/said/output"
"""The guest's file that a step prints to: in the memory that what steps say may take."""
SUFFIX = ".output"
"""The end of such a step's name, which no step of a scenario can have."""
OUTPUT_VARIABLE, PLACE_VARIABLE = "OUTPUT_DISK", "OUTPUT_PLACE"
"""The environment variables with the disk's number in the guest, and for a test its place there: it keeps its output by
itself, as it comes, so that it outlives a panic."""
DEADLINE = 600.0


def is_keeper(step: str) -> bool:
    """Return True if a step keeps another's output: nothing that it measures is a result."""
    return step.endswith(SUFFIX)


def outputs(phase: Phase, programs: Mapping[str, GuestProgram]) -> Iterator[KeptOutput]:
    """Yield the outputs of a phase that are read, in their places on the output disk."""
    for place, step in enumerate(filter(_is_kept, phase.steps)):
        if step.output:
            program = programs[step.output.program] if step.output.program else None
            step_id = StepId.parse(step.name).inside(phase.in_samples)
            yield KeptOutput(place, step_id, step.repetition, program, step.output.records)


def output_bytes(phase: Phase) -> int:
    """Return the size of a phase's output disk; 0 where it has none."""
    size = PLACE_BYTES * sum(map(_is_kept, phase.steps))
    return -(-size // DISK_ALIGNMENT) * DISK_ALIGNMENT


def with_keepers(phase: Phase) -> Phase:
    """Return the phase with a keeper after each step whose output is read, but for tests."""
    if not any(map(_is_kept, phase.steps)):
        return phase
    places = count()

    def kept(step: StepPlan) -> tuple[StepPlan, ...]:
        if not _is_kept(step):
            return (step,)
        place = next(places)
        if step.output and step.output.program == TEST:
            return (replace(step, run=f"export {PLACE_VARIABLE}={place}\n{step.run}"),)
        words = f'{KEEPER} {PRINTED} "${OUTPUT_VARIABLE}" {place}'
        return replace(step, run=f"exec >{PRINTED}\n{step.run}"), keeper(step, step.name, words)

    return phase.expanded(kept)


def _is_kept(step: StepPlan) -> bool:
    """Return True if the output of a step outlives it: what is printed before a power cut is lost."""
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


def is_watched(step: StepPlan) -> bool:
    """Return True if a further pass watches a step: what happens before a power cut is lost with the memory."""
    return step.cut_after is None and not is_keeper(step.name)


PROFILER = "step-profile"
"""The guest's program that samples stacks while another one runs (harness/profiler)."""
INSTRUCTIONS = 499_979
"""Instructions of the guest from one sample to the next: a prime number, so that no timer of the kernel keeps step."""
SAMPLES_BYTES = 2 << 30
"""Size of the disk that takes the samples of a phase; the host's file is as long as what was written to it."""
SAMPLES_VARIABLE = "PROFILE_DISK"
"""The environment variable with the disk's number in the guest."""


def interval(machine: Machine) -> int:
    """Return the nanoseconds of the guest's clock between two samples."""
    return INSTRUCTIONS << machine.shift


def profiled(phase: Phase, nanoseconds: int) -> Phase:
    """Return the phase with a profiler around each of the scenario's steps, but those in which the power is cut."""
    return replace(phase, steps=tuple(_profiled(step, nanoseconds) for step in phase.steps))


def _profiled(step: StepPlan, nanoseconds: int) -> StepPlan:
    if not is_watched(step):
        return step
    words = [str(SAMPLES_BYTES), str(nanoseconds), str(int(step.sync)), step.name, str(step.repetition)]
    command = shlex.join([*words, "sh", "-ec", step.run])
    return replace(step, run=f'exec {PROFILER} "${SAMPLES_VARIABLE}" {command}')


RECORDER = "record-blocks"
"""The guest's program that does it (harness/output)."""
RECORD_BYTES, HEADER_BYTES = 16 << 20, 4096
"""Bytes of a step's record at most, and those of them that say what it is."""
RECORDS_VARIABLE = "BLOCKS_DISK"
"""The environment variable with the disk's number in the guest."""
EVENTS_MEMORY = 8 << 20
"""Bytes of the guest's memory in which the events wait."""


def records_bytes(phase: Phase) -> int:
    """Return the size of the disk for the records of a phase."""
    size = RECORD_BYTES * max(1, sum(map(is_watched, phase.steps)))
    return -(-size // DISK_ALIGNMENT) * DISK_ALIGNMENT


def recorded(phase: Phase) -> Phase:
    """Return the phase with its steps recorded.

    What is done with the caches before a step, and its pause, come before the recording begins.
    """
    places = count()

    def around(step: StepPlan) -> tuple[StepPlan, ...]:
        if not is_watched(step):
            return (step,)
        begins = keeper(step, f"{step.name}.begin", f"{RECORDER} begin")
        keeps = keeper(step, f"{step.name}.blocks", f'{RECORDER} keep "${RECORDS_VARIABLE}" {next(places)}')
        return (replace(begins, caches=step.caches, pause=step.pause), replace(step, caches="keep", pause=0), keeps)

    return phase.expanded(around)
