"""The names of the steps that a scenario's cells have."""

from agelab.analysis.result_grid import TOTAL
from agelab.errors import unknown
from agelab.model.scenario import Scenario
from agelab.model.step import CONTROL_COPY, IMPLICIT, PREPARING
from agelab.model.step_id import StepId


def require_step(step: str, scenario: Scenario) -> None:
    """Raise InputError for a step that no cell of the scenario has.

    The name before the last slash, of a phase, a drive or an experiment, is not checked.
    """
    own = [one.name for one in (*scenario.actions(), *scenario.tests)]
    own += [one.name for one in scenario.experiments] + ([PREPARING] if scenario.experiments else [])
    there = [*dict.fromkeys([TOTAL[0], *own, CONTROL_COPY, *IMPLICIT])]
    if StepId.parse(step).plain_name not in there:
        raise unknown(f"step of {scenario.name}", step, there)
