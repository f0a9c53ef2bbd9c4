"""The plan of a profile: the phases of a cell with a profiler around each step."""

import shlex
from dataclasses import replace

from agelab.runner.plan.kept_output import is_keeper
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.step_plan import StepPlan
from agelab.scenario.machine import Machine

PROGRAM = "step-profile"
"""The guest's program that samples stacks while another one runs (harness/profiler)."""
INSTRUCTIONS = 499_979
"""Instructions of the guest from one sample to the next: a prime number, so that no timer of the kernel keeps step."""
DISK_BYTES = 2 << 30
"""Size of the disk that takes the samples of a phase; the host's file is as long as what was written to it."""
DISK_VARIABLE = "PROFILE_DISK"
"""The environment variable with the disk's number in the guest."""


def interval(machine: Machine) -> int:
    """Return the nanoseconds of the guest's clock between two samples."""
    return INSTRUCTIONS << machine.shift


def profiled(phase: Phase, nanoseconds: int) -> Phase:
    """Return the phase with a profiler around each of the scenario's steps, but those in which the power is cut."""
    return replace(phase, steps=tuple(_profiled(step, nanoseconds) for step in phase.steps))


def is_profiled(step: StepPlan) -> bool:
    return step.cut_after is None and not is_keeper(step.name)


def _profiled(step: StepPlan, nanoseconds: int) -> StepPlan:
    if not is_profiled(step):
        return step
    words = [str(DISK_BYTES), str(nanoseconds), str(int(step.sync)), step.name, str(step.repetition)]
    command = shlex.join([*words, "sh", "-ec", step.run])
    return replace(step, run=f'exec {PROGRAM} "${DISK_VARIABLE}" {command}')
