"""What all events share that the user puts into the middle of a step: a power cut, a drive that fails."""

from collections.abc import Sequence

from agelab.base.errors import InputError
from agelab.runner.plan.step_plan import StepPlan
from agelab.scenario.scenario import Scenario


def without_measuring(scenario: Scenario) -> Scenario:
    """Return the scenario without what is measured on the disk that it makes: tests, control, maps and ratios."""
    nothing = {"tests": (), "control": None, "measures": (), "curve": None, "ratios": ()}
    return scenario.model_copy(update=nothing)


def index_of(steps: Sequence[StepPlan], step: str, repetition: int, event: object) -> int:
    """Return the place of a repetition of a step. Raises InputError, which names the event, where there is none."""
    times = [(one.name, one.repetition) for one in steps]
    if (step, repetition) not in times:
        last = max(number for name, number in times if name == step)
        raise InputError(f"{event}: step {step} has {last} repetitions")
    return times.index((step, repetition))
