"""Select the steps to show, without those that only prepare them."""

from agelab.analysis.run_set import RunSet
from agelab.model.step import IMPLICIT, PREPARING
from agelab.model.step_id import AGED, CONTROL, StepId


def aged_and_control(step: str) -> tuple[str, str]:
    """Return the steps of a test on the aged disk and on its control."""
    test = StepId.parse(step)
    return str(test.on(AGED)), str(test.on(CONTROL))


def charted_steps(group: RunSet) -> list[str]:
    """Return the steps that make a disk, or the experiments: no tests, preparations or traces."""
    traced = {StepId.parse(step).group for step, _, metric in group.places if metric.startswith("syscall_")}
    tested = {step for step, _, metric in group.places if metric == "slowdown"}
    found = dict.fromkeys(step for step, _, metric in group.places if metric == "elapsed")
    return [
        step
        for step in found
        if not StepId.parse(step).within and step not in (*IMPLICIT, *tested) and not step.startswith(PREPARING)
        and step not in traced
    ]  # fmt: skip


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
