"""The steps and metrics that a scenario's cells have."""

from agelab.errors import unknown
from agelab.model.measure import ALL_STEPS, Measure
from agelab.model.metrics import METRICS
from agelab.model.step import CONTROL_COPY, IMPLICIT, PREPARING
from agelab.model.step_id import StepId
from agelab.scenario.selection import Selection


def require_measure(measure: Measure, selected: Selection) -> None:
    """Raise InputError for a metric or a step that no cell of the scenario has.

    The name before the last slash, of a phase, a drive or an experiment, is not checked.
    """
    metrics = [*METRICS, *selected.workload.metrics]
    if measure.metric not in metrics:
        raise unknown("metric", measure.metric, metrics)
    scenario = selected.scenario
    own = [one.name for one in (*scenario.actions(), *scenario.tests)]
    own += [one.name for one in scenario.experiments] + ([PREPARING] if scenario.experiments else [])
    there = [*dict.fromkeys([ALL_STEPS.step, *own, CONTROL_COPY, *IMPLICIT])]
    if StepId.parse(measure.step).plain_name not in there:
        raise unknown("step", measure.step, there, f"in {scenario.name}")
