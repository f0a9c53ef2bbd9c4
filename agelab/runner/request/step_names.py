"""The steps and metrics that a scenario's cells have."""

from agelab.base.errors import unknown
from agelab.results.measure import ALL_STEPS, Measure
from agelab.scenario.metrics import METRICS
from agelab.scenario.selection import Selection
from agelab.scenario.step import CONTROL_COPY, IMPLICIT, PREPARING, StepId


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
