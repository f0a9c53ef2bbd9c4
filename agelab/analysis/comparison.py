"""The tables of a comparison, and the caveats that must stand beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agelab.analysis.cells import SeedGroup
from agelab.analysis.host_noise import HostNoise, noise_of_runs
from agelab.analysis.judge import judge_against
from agelab.analysis.main_measures import last_slowdowns
from agelab.analysis.selectors import Comparison
from agelab.base.errors import InputError
from agelab.results.conditions import CHOSEN, EFFORT, KERNEL, QUESTION, HasConditions, between, text
from agelab.stats.formatting import name_some
from agelab.stats.series import Place, Series, by_step
from agelab.stats.verdict import ComparedSeries

VARIES = KERNEL | CHOSEN | EFFORT | {"run_seeds", "cells"}
"""Conditions in which any two sides may differ: what is chosen stands above their table, and each seed beside it."""
NEEDED = QUESTION | {"data", "corpus_seeds"}
"""Those that both sides must have in common; any others are named."""
NAMED = 6
"""Groups to name in one line."""


@dataclass(frozen=True)
class ComparisonTable:
    """One side against the base."""

    steps: list[ComparedSeries]
    """A row for each step and metric; the mean of a repeated step."""
    repetitions: list[ComparedSeries]
    """A row for each repetition of repeated steps, if asked for."""

    @property
    def rows(self) -> list[ComparedSeries]:
        return [*self.steps, *self.repetitions]


def host_noise_of(one: Comparison) -> HostNoise:
    """Look up the noise of the hosts that measured the sides. Raises InputError for a damaged record."""
    runs = {group.run.name: group.run for group in (one.base, *one.others)}
    return noise_of_runs(runs.values())


def compare_steps(one: Comparison, host: HostNoise, everything: bool) -> list[ComparisonTable]:
    """Judge each other side against the base, step by step; with ``everything`` each repetition, too."""
    tables = [group.series for group in (one.base, *one.others)]
    shown = [_without_earlier_slowdowns(table) for table in tables]
    base, *others = map(by_step, shown)
    steps = judge_against(base, others, host)
    repeated = {(step, metric) for table in tables for step, turn, metric in table if turn > 1}
    above = {place for table in tables for place in last_slowdowns(table)}
    base, *others = (
        {
            place: found
            for place, found in table.items()
            if everything and (place[0], place[2]) in repeated and place not in above
        }
        for table in tables
    )
    return [ComparisonTable(*both) for both in zip(steps, judge_against(base, others, host), strict=True)]


def _without_earlier_slowdowns(table: Mapping[Place, Series]) -> Mapping[Place, Series]:
    """Leave out the slowdowns at the earlier points of a history: the last is the result, a mean is of no moment."""
    last = last_slowdowns(table)
    return {place: found for place, found in table.items() if place[2] != "slowdown" or place in last}


def caveats(one: SeedGroup, other: SeedGroup, anyway: bool) -> list[str]:
    """List the labels of a table of these two. Raises InputError for incomparable runs, unless ``anyway``."""
    ours, theirs = (group.run.conditions_of(next(iter(group.cells.values()))) for group in (one, other))
    differ = ours.differences(theirs, VARIES)
    unlike = {name: both for name, both in differ.items() if name in NEEDED}
    if unlike and not anyway:
        raise InputError(
            f"{one.run.name} and {other.run.name} are not comparable: {text(unlike)}",
            hint="--anyway compares them all the same, and labels the tables",
        )
    found = [f"NOT COMPARABLE: {text(unlike)}"] if unlike else []
    if named := text({name: both for name, both in differ.items() if name not in NEEDED}):
        found.append(f"the two sides also differ in: {named}")
    if one.run.name == other.run.name and one.cell == other.cell:
        found.append("A and B are the same cells: no difference can show, the floor is their spread")
    return found


def side_by_side(one: HasConditions, other: HasConditions) -> str:
    """Return the hint for two runs that belong into no table or line: the command that compares them."""
    unlike = NEEDED & between(one.conditions, other.conditions, VARIES).keys()
    return f"both, side by side: agelab compare {'--anyway ' if unlike else ''}{one.name} {other.name}"


def no_ok_cells(found: Sequence[Comparison], of_one: bool) -> InputError:
    """Return the error for a comparison in which no side has ok cells: which groups have none, and why.

    ``of_one``: all sides are of one run, which may have another group for a base.
    """
    empty = [group for one in found for group in (one.base, *one.others) if not group.counted]
    why: dict[tuple[str, str], list[str]] = {}
    for group in empty:
        reasons = "; ".join(dict.fromkeys(ran.ended for ran in group.cells.values()))
        why.setdefault((group.run.name, reasons), []).append(group.name)
    lines = []
    for (run, reasons), names in why.items():
        named = name_some(list(dict.fromkeys(names)), NAMED, "; ")
        lines.append(f"no cell of {named} of {run} is ok ({reasons})")
    ok = [group for one in found for group in one.others if group.counted]
    hint = "agelab list shows how far a run is" if any(group.run.running for group in empty) else ""
    if len(ok) > 1 and of_one:
        hint = f"--base {ok[0].variant}: that one has ok cells, and is not alone in it"
    return InputError(". ".join(lines), hint=hint)
