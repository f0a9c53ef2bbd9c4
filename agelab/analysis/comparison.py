"""What ``agelab compare`` compares, ``RUN[:CHOICE,...]``: groups of cells, their tables, caveats and gate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import (
    RunResult,
    SeedGroup,
    distinct_names,
    last_slowdowns,
    load,
    noise_of_runs,
    pair_groups,
    seed_groups,
)
from agelab.analysis.judge import judge_against
from agelab.base.errors import AgelabError, InputError, name_some, unknown
from agelab.base.gathered import gathered
from agelab.results import run_lookup
from agelab.results.cell_samples import Place
from agelab.results.conditions import CHOSEN, EFFORT, KERNEL, QUESTION, HasConditions, between, text
from agelab.results.result import Cell
from agelab.stats.phrasing import TOO_FEW
from agelab.stats.series import Series, by_step
from agelab.stats.verdict import ComparedSeries

AXES = ("variant", "filesystem", "layout", "kernel", "machine", "drives", "defaults")
"""Fields of a cell that can be chosen."""
LISTED = 24
"""Names to list where none matches."""


@dataclass(frozen=True)
class Selector:
    """A run, and the choice among its cells."""

    words: str
    """The words of the command line."""
    run: RunResult
    chosen: Mapping[str, str]
    """Axis to value."""

    def groups(self, more: Mapping[str, str] | None = None) -> list[SeedGroup]:
        """Return the groups that match, with ``more`` for axes not chosen here. Raises InputError for none."""
        taken = {"variant", "filesystem"} if {"variant", "filesystem"} & self.chosen.keys() else set()
        choices = {axis: value for axis, value in (more or {}).items() if axis not in taken}
        choices |= self.chosen
        groups, narrowed = seed_groups(self.run), ""
        if not groups:
            raise InputError(f"{self.run.name} has no cells: there is nothing to compare")
        for axis, value in sorted(choices.items(), key=lambda choice: AXES.index(choice[0])):
            have = [axis_value(group.cell, axis) for group in groups]
            groups = [group for group in groups if matches(group.cell, axis, value)]
            if not groups:
                raise no_match_error(self.run, f"{axis} {value!r}{narrowed}", have)
            narrowed += f" of {axis} {value}"
        return groups


def parse_selector(runs: Path, words: str) -> Selector:
    """Parse ``RUN[:CHOICE,...]``. Raises InputError for a run that does not exist, or a choice that nothing matches."""
    name, colon, choices = words.partition(":")
    if not name:
        raise InputError(f"{words!r} names no run", hint="like latest:ext4; agelab list names them")
    if colon and not choices.strip(","):
        raise InputError(f"{words!r} names no variant", hint=f"like {name}:ext4, or {name} for all of its variants")
    run = load(run_lookup.find(runs, name))
    return Selector(words, run, parse_choices(run, choices))


def parse_choices(run: RunResult, choices: str) -> dict[str, str]:
    """Parse ``ext4,raid0,kernel=6.1`` into axis and value; a word alone is a variant, or else a layout of the run."""
    cells = run.plan.cells
    chosen: dict[str, str] = {}
    for word in filter(None, choices.split(",")):
        axis, equals, value = word.partition("=")
        if not equals:
            known = {axis: [axis_value(cell, axis) for cell in cells] for axis in ("variant", "layout")}
            axis = next((axis for axis, values in known.items() if word in values), "")
            if not axis:
                raise no_match_error(run, f"variant or layout {word!r}", [v for vs in known.values() for v in vs])
            value = word
        elif axis not in AXES:
            raise unknown("choice", axis, AXES)
        if axis in chosen:
            raise InputError(f"{choices!r} names two of one kind: {chosen[axis]} and {value}")
        chosen[axis] = value
    return chosen


def no_match_error(run: RunResult, what: str, have: Iterable[str]) -> InputError:
    """Return the error for a choice that no cell matches, with all that there is instead: a near name may mislead."""
    return InputError(f"run {run.name} has no {what}; it has {name_some(list(dict.fromkeys(have)), LISTED)}")


def axis_value(cell: Cell, axis: str) -> str:
    """Return a cell's value on an axis; the drives of RAID-0 with a plus between them."""
    value = getattr(cell, axis)
    return "+".join(value) if isinstance(value, tuple) else str(value)


def matches(cell: Cell, axis: str, value: str) -> bool:
    """Return whether a cell matches: by name, a kernel by its first numbers, too (6.1 is 6.1.0-56-amd64, not 6.12)."""
    name = axis_value(cell, axis)
    return name == value or (axis == "kernel" and name.startswith((f"{value}.", f"{value}-")))


@dataclass(frozen=True)
class Comparison:
    """Groups of cells to compare with the first of them."""

    base: SeedGroup
    others: tuple[SeedGroup, ...]

    @property
    def groups(self) -> tuple[SeedGroup, ...]:
        return self.base, *self.others


def compare_within_run(selector: Selector, base: str | None) -> Comparison:
    """Compare each group of a run with the first, or with ``base``. Raises InputError where there is one group only."""
    groups = selector.groups()
    at = 0
    if base:
        choices = parse_choices(selector.run, base)
        fit = [all(matches(group.cell, *choice) for choice in choices.items()) for group in groups]
        if not any(fit):
            raise no_match_error(selector.run, f"base {base!r}", [group.name for group in groups])
        at = fit.index(True)
    if len(groups) < 2:
        raise InputError(
            f"{selector.words} has {groups[0].name} alone: there is nothing to compare it with",
            hint="name another run, too: agelab compare A B",
        )
    return Comparison(groups[at], tuple(group for n, group in enumerate(groups) if n != at))


def compare_across_runs(sides: Sequence[Selector]) -> list[Comparison]:
    """Pair each group of the first side with the matching ones of the others.

    A choice that one side alone makes holds for all. Groups match by variant and layout, or by variant alone, and any
    two do where each side names its variant. Raises InputError where nothing matches.
    """
    values: dict[str, set[str]] = {}
    for side in sides:
        for axis, value in side.chosen.items():
            values.setdefault(axis, set()).add(value)
    common = {axis: next(iter(choices)) for axis, choices in values.items() if len(choices) == 1}
    first, *others = (side.groups(common) for side in sides)
    named = all({"variant", "filesystem"} & {*common, *side.chosen} for side in sides)
    paired = {id(group): list[SeedGroup]() for group in first}
    for theirs in others:
        for ours, their in pair_groups(first, theirs, any_variant=named):
            paired[id(ours)].append(their)
    both = [(group, tuple(paired[id(group)])) for group in first]
    whole = [Comparison(group, matching) for group, matching in both if len(matching) == len(others)]
    if not whole:
        have = "; ".join(
            f"{side.words}: {', '.join(group.name for group in theirs)}"
            for side, theirs in zip(sides, (first, *others), strict=True)
        )
        raise InputError(
            f"these share no variant: {have}", hint="two variants are compared so: agelab compare RUN:ext4 RUN:xfs"
        )
    return whole


def uncompared_groups(comparisons: Sequence[Comparison], sides: Sequence[Selector]) -> Mapping[str, list[str]]:
    """List each run's groups that no comparison has, because another run lacks them; none where sides choose."""
    compared = {(group.run.name, group.name) for comparison in comparisons for group in comparison.groups}
    left_out: dict[str, list[str]] = {}
    for side in sides if not any(side.chosen for side in sides) else ():
        names = [group.name for group in side.groups() if (side.run.name, group.name) not in compared]
        if names:
            left_out[side.run.name] = names
    return left_out


def column_names(groups: Sequence[SeedGroup]) -> list[str]:
    """Name each group by its variant and what else tells it from the others; empty names where nothing does."""
    axes = [axis for axis in AXES if axis != "filesystem"]
    names = distinct_names([tuple(axis_value(group.cell, axis) for axis in axes) for group in groups])
    return names if len(set(names)) == len(names) else ["" for _ in names]


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


def host_noise_of(comparison: Comparison) -> HostNoise:
    """Look up the noise of the hosts that measured the sides. Raises InputError for a damaged record."""
    runs = {group.run.name: group.run for group in comparison.groups}
    return noise_of_runs(runs.values())


def compare_steps(comparison: Comparison, host: HostNoise, everything: bool) -> list[ComparisonTable]:
    """Judge each other side against the base, step by step; with ``everything`` each repetition, too."""
    tables = [group.series for group in comparison.groups]
    shown = [_without_earlier_slowdowns(table) for table in tables]
    base, *others = map(by_step, shown)
    steps = judge_against(base, others, host)
    repeated = {(step, metric) for table in tables for step, turn, metric in table if turn > 1}
    above = {place for table in tables for place in last_slowdowns(table)}
    base, *others = (
        {
            place: series
            for place, series in table.items()
            if everything and (place[0], place[2]) in repeated and place not in above
        }
        for table in tables
    )
    return [ComparisonTable(*both) for both in zip(steps, judge_against(base, others, host), strict=True)]


def _without_earlier_slowdowns(table: Mapping[Place, Series]) -> Mapping[Place, Series]:
    """Leave out the slowdowns at the earlier points of a history: the last is the result, a mean is of no moment."""
    last = last_slowdowns(table)
    return {place: series for place, series in table.items() if place[2] != "slowdown" or place in last}


def caveats(left: SeedGroup, right: SeedGroup, anyway: bool) -> list[str]:
    """List the labels of a table of these two. Raises InputError for incomparable runs, unless ``anyway``."""
    ours, theirs = (group.run.conditions_of(next(iter(group.cells.values()))) for group in (left, right))
    differ = ours.differences(theirs, VARIES)
    unlike = {name: both for name, both in differ.items() if name in NEEDED}
    if unlike and not anyway:
        raise InputError(
            f"{left.run.name} and {right.run.name} are not comparable: {text(unlike)}",
            hint="--anyway compares them all the same, and labels the tables",
        )
    labels = [f"NOT COMPARABLE: {text(unlike)}"] if unlike else []
    if named := text({name: both for name, both in differ.items() if name not in NEEDED}):
        labels.append(f"the two sides also differ in: {named}")
    if left.unhonoured != right.unhonoured:
        sides = (f"{side.name}: {side.unhonoured}" for side in (left, right) if side.unhonoured)
        labels.append(f"nothing is known of the two: {'; '.join(sides)}")
    if left.run.name == right.run.name and left.cell == right.cell:
        labels.append("A and B are the same cells: no difference can show, the floor is their spread")
    return labels


def side_by_side(left: HasConditions, right: HasConditions) -> str:
    """Return the hint for two runs that belong into no table or line: the command that compares them."""
    unlike = NEEDED & between(left.conditions, right.conditions, VARIES).keys()
    return f"both, side by side: agelab compare {'--anyway ' if unlike else ''}{left.name} {right.name}"


def no_ok_cells(comparisons: Sequence[Comparison], of_one: bool) -> InputError:
    """Return the error for a comparison in which no side has ok cells: which groups have none, and why.

    ``of_one``: all sides are of one run, which may have another group for a base.
    """
    empty = [group for comparison in comparisons for group in comparison.groups if not group.counted]
    reasons = ["; ".join(dict.fromkeys(ran.ended for ran in group.cells.values())) for group in empty]
    why = gathered(((group.run.name, of), group.name) for group, of in zip(empty, reasons, strict=True))
    lines = []
    for (run, of), names in why.items():
        named = name_some(list(dict.fromkeys(names)), NAMED, "; ")
        lines.append(f"no cell of {named} of {run} is ok ({of})")
    ok = [group for comparison in comparisons for group in comparison.others if group.counted]
    hint = "agelab list shows how far a run is" if any(group.run.running for group in empty) else ""
    if len(ok) > 1 and of_one:
        hint = f"--base {ok[0].variant}: that one has ok cells, and is not alone in it"
    return InputError(". ".join(lines), hint=hint)


METRIC = "elapsed"


def gate_times(table: ComparisonTable) -> list[ComparedSeries]:
    """Return the rows of a table that a gate judges."""
    return [row for row in table.steps if row.row.left.metric == METRIC]


def is_slower(row: ComparedSeries, margin: Fraction) -> bool:
    """Return True if B's step is slower than A's by more than chance, and by more than ``margin``, as a share."""
    return row.better == "left" and row.ratio is not None and row.ratio > 1 + margin


def slower_steps(tables: Iterable[ComparisonTable], margin: Fraction) -> list[ComparedSeries]:
    """Return the steps that are slower.

    Raises AgelabError where a step that differs has too few seeds to be judged, and where there is no step: what could
    not be stopped must not be let pass.
    """
    rows = [row for table in tables for row in gate_times(table)]
    measured = [row for row in rows if row.left and row.right]
    if not measured or any(row.too_few for row in measured):
        raise AgelabError(
            f"{TOO_FEW} to judge the steps' times, so the gate lets nothing pass",
            hint="a verdict takes four run seeds (--seeds 1,2,3,4,5), and a variant that both sides have",
        )
    return [row for row in rows if is_slower(row, margin)]
