"""Select the steps to show, without those that only prepare them."""

from agelab.analysis.cells import RunSet
from agelab.scenario.step import AGED, CONTROL, StepId


def aged_and_control(step: str) -> tuple[str, str]:
    """Return the steps of a test on the aged disk and on its control."""
    test = StepId.parse(step)
    return str(test.on(AGED)), str(test.on(CONTROL))


def traced_steps(group: RunSet) -> list[str]:
    """Return the steps run under strace."""
    traced = (step for step, _, metric in group.places if metric == "syscall_seconds")
    return list(dict.fromkeys(StepId.parse(step).group for step in traced))


def repeated_steps(group: RunSet) -> list[str]:
    """Return the steps with at least three repetitions, which are drawn as a curve."""
    most: dict[str, int] = {}
    for step, repetition, metric in group.places:
        if metric == "elapsed" and not StepId.parse(step).within:
            most[step] = max(repetition, most.get(step, 0))
    return [step for step, number in most.items() if number > 2]
