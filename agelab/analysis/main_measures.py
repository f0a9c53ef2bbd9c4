"""What a scenario is about: the measures that its answers and orders are of."""

from collections.abc import Iterable, Sequence

from agelab.analysis.cells import SeedGroup
from agelab.results.measure import ALL_STEPS, MEAN, Measure, own_steps
from agelab.stats.series import Place


def main_measures(groups: Sequence[SeedGroup]) -> list[Measure]:
    """Return the slowdown of each test, how much was held at the last count, and the time of all steps, as there are.

    The first that has a value is what the scenario is about.
    """
    places = list(dict.fromkeys(place for group in groups for place in group.series))
    held = [place for place in places if place[2] == "content_bytes"]
    found = [*last_slowdowns(places), *held[-1:]]
    named = [Measure(step, number if number > 1 else MEAN, metric) for step, number, metric in found]
    return [*named, *([ALL_STEPS] if own_steps(places) else [])]


def last_slowdowns(places: Iterable[Place]) -> list[Place]:
    """Return each test's slowdown; for a test at several points of a history, at the last."""
    last: dict[str, Place] = {}
    for place in places:
        step, repetition, metric = place
        if metric == "slowdown" and repetition >= last.get(step, place)[1]:
            last[step] = place
    return list(last.values())
