"""A power cut in the middle of a step, as the user asks for it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agelab.base.errors import InputError, unknown
from agelab.runner.plan import step_moment
from agelab.runner.plan.step_plan import StepPlan
from agelab.scenario.scenario import Scenario

_FORM = re.compile(
    r"(?P<step>[a-z0-9][a-z0-9_-]*)(:(?P<repetition>[0-9]{1,9}))?\+(?P<seconds>[0-9]{1,9}(\.[0-9]{1,9})?)"
)
OPTION = "--crash-at"


@dataclass(frozen=True)
class PowerCut:
    """Cuts the power some guest seconds after a repetition of a step has begun."""

    step: str
    repetition: int
    seconds: float

    def __str__(self) -> str:
        return f"{OPTION} {self.step}:{self.repetition}+{self.seconds:g}"

    @classmethod
    def parse(cls, text: str) -> "PowerCut":
        """Read ``copy:3+1.5``, or ``copy+1.5`` for the first repetition. Raises InputError."""
        found = _FORM.fullmatch(text)
        if not found or not int(found["repetition"] or 1) or not float(found["seconds"]):
            raise InputError(
                f"{OPTION} {text!r}: say STEP+SECONDS or STEP:REPETITION+SECONDS, like copy:3+1.5; "
                "repetitions count from 1, and the power is cut after the step has begun"
            )
        return cls(found["step"], int(found["repetition"] or 1), float(found["seconds"]))

    def applied_to(self, scenario: Scenario) -> Scenario:
        """Return the scenario without its tests, control, maps and ratios: they would measure what the cut has left.

        Raises InputError where the scenario has no such step, or where its deadline comes before the cut.
        """
        if scenario.experiments:
            raise InputError(
                f"{OPTION}: scenario {scenario.name} is made of experiments, each on a filesystem of its own: only "
                "the power of a scenario's steps is cut"
            )
        steps = {action.name: action for action in scenario.actions()}
        if self.step in (test.name for test in scenario.tests):
            raise InputError(
                f"{OPTION}: {self.step} is a test of {scenario.name}; only the power of a step that makes its disk is "
                f"cut: {', '.join(steps)}"
            )
        if self.step not in steps:
            raise unknown(f"step for {OPTION} in {scenario.name}", self.step, list(steps))
        if self.seconds >= (deadline := steps[self.step].deadline):
            raise InputError(
                f"{self}: a step that has not ended after {deadline:g} s counts as hung: its power must be cut before"
            )
        return step_moment.without_measuring(scenario)

    def truncate(self, steps: Sequence[StepPlan]) -> tuple[StepPlan, ...]:
        """Leave out the steps after the one that is cut. Raises InputError where it has no such repetition."""
        end = step_moment.index_of(steps, self.step, self.repetition, self)
        cut = replace(steps[end], cut_after=(self.seconds, self.seconds))
        return (*steps[:end], cut)
