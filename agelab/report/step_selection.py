"""Which steps of a run are a reader's, and which only lead up to them."""

from agelab.analysis.run_set import RunSet
from agelab.model.step import IMPLICIT, PREPARING
from agelab.model.step_id import AGED, CONTROL, StepId

OWN = ("mkfs", "mount")
"""Steps that every cell has, at the beginning."""


def sides(step: str) -> tuple[str, str]:
    """The steps of a test on the aged disk and on its control."""
    test = StepId.parse(step)
    return str(test.on(AGED)), str(test.on(CONTROL))


def charted(group: RunSet) -> list[str]:
    """The steps that make a disk, or the experiments: whatever took time but tests, what prepares, and traces."""
    traced = {StepId.parse(step).group for step, _, metric in group.places if metric.startswith("syscall_")}
    tested = {step for step, _, metric in group.places if metric == "slowdown"}
    found = dict.fromkeys(step for step, _, metric in group.places if metric == "elapsed")
    return [
        step
        for step in found
        if not StepId.parse(step).within and step not in (*IMPLICIT, *tested) and not step.startswith(PREPARING)
        and step not in traced
    ]  # fmt: skip


def traced(group: RunSet) -> list[str]:
    """The steps that were done under strace."""
    return list(
        dict.fromkeys(
            StepId.parse(step).group for step, _, metric in group.places if metric == "syscall_seconds"
        )
    )


def repeated(group: RunSet) -> list[str]:
    """The steps with three repetitions and more: what changes from one to the next is a curve."""
    most: dict[str, int] = {}
    for step, repetition, metric in group.places:
        if metric == "elapsed" and not StepId.parse(step).within:
            most[step] = max(repetition, most.get(step, 0))
    return [step for step, number in most.items() if number > 2]
