"""What is measured: a step, one of its repetitions or all of them, and a metric; and the sum of all steps."""

from collections.abc import Iterable
from typing import NamedTuple

from agelab.base.errors import InputError
from agelab.base.sanitize import parse_digits
from agelab.scenario.step import IMPLICIT, PREPARING, StepId

MEAN = 0
"""The number in place of a repetition for a mean over all of them."""
MAX_REPETITION = 10**9
FORM = "STEP:METRIC, the mean over its repetitions, or STEP:REPETITION:METRIC"


class Measure(NamedTuple):
    """A metric of a step, as every verb takes it and prints it: ``copy:elapsed``, ``copy:3:elapsed``."""

    step: str
    repetition: int
    """MEAN: the mean over all repetitions."""
    metric: str

    @classmethod
    def parse(cls, text: str, option: str = "--metric") -> "Measure":
        """Parse a measure; whether a scenario has it is for others to check. Raises InputError."""
        match text.split(":"):
            case [step, metric] if step and metric:
                measure = cls(step, MEAN, metric)
            case [step, number, metric] if step and metric and (repetition := parse_digits(number, MAX_REPETITION)):
                measure = cls(step, repetition, metric)
            case [step, metric, number] if parse_digits(number, MAX_REPETITION):
                raise InputError(f"{option} {text}: the repetition comes before the metric: {step}:{number}:{metric}")
            case _:
                raise InputError(f"{option} {text}: it is {FORM}, like copy:elapsed")
        if measure.step == ALL_STEPS.step and measure != ALL_STEPS:
            raise InputError(f"{option} {text}: of all steps there is one sum, {ALL_STEPS}")
        return measure

    def __str__(self) -> str:
        number = () if self.repetition == MEAN else (str(self.repetition),)
        return ":".join((self.step, *number, self.metric))


ALL_STEPS = Measure("all steps", MEAN, "elapsed")
"""The sum of the times of ``own_steps``, all repetitions of each."""
ALL_STEPS_TITLE = "all steps, without mkfs and mount"
"""What they are, said wherever their sum is."""


def step_title(step: str, repetition: int, repetitions: int) -> str:
    """Name a step's numbers in a table: ``copy``, ``copy, mean of 12``, ``copy 3/12``, and what all steps are."""
    if step == ALL_STEPS.step:
        return ALL_STEPS_TITLE
    if repetitions == 1:
        return step
    return f"{step}, mean of {repetitions}" if repetition == MEAN else f"{step} {repetition}/{repetitions}"


def own_steps(places: Iterable[tuple[str, int, str]]) -> list[str]:
    """Return a scenario's own steps: no mkfs and mount, tests, preparations or traces."""
    places = list(places)
    not_own = {*IMPLICIT, *(step for step, _, metric in places if metric == "slowdown")}
    not_own |= {StepId.parse(step).group for step, _, metric in places if metric.startswith("syscall_")}
    timed = dict.fromkeys(step for step, _, metric in places if metric == "elapsed")
    return [
        step
        for step in timed
        if not StepId.parse(step).within and step not in not_own and not step.startswith(PREPARING)
    ]
