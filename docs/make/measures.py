"""A table of measures: a row for each variant of runs, and the columns that docs/tables.toml names."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from agelab.analysis.cells import RunSet, SeedGroup, load
from agelab.base.errors import InputError
from agelab.results.measure import Measure
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import Seeds, seeds_text
from docs.make.aging import SHARED, headed
from docs.make.catalogue import Column, Made, Table
from docs.make.page import grid

SHARED_BY_LAYOUTS = tuple(name for name in SHARED if name != "image")
"""A layout that needs programs of its own has an image of its own."""
NONE = "-"
"""A cell without a value."""


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the table; cells that are not ok are listed below it.

    Raises InputError for a column that no cell has measured: its name is wrong.
    """
    groups = RunSet(tuple(map(load, runs))).groups
    rows = [[_cell(group, column) for column in table.columns] for group in groups]
    for column, cells in zip(table.columns, zip(*rows, strict=True), strict=True):
        if set(cells) == {NONE} and any(group.counted for group in groups):
            raise InputError(f"docs/tables.toml: {table.name}: no cell has measured {column.of}")
    lines = [
        *headed(runs, SHARED_BY_LAYOUTS),
        "",
        *grid(
            ["", *(column.head for column in table.columns)],
            ([_name(group, groups), *row] for group, row in zip(groups, rows, strict=True)),
        ),
    ]
    wrong = [end for group in groups for end in _not_ok(group)]
    return Made("\n".join([*lines, *([""] if wrong else []), *wrong]))


def _not_ok(group: SeedGroup) -> list[str]:
    """Say how the cells ended that are not ok: with their seeds, where others of the group ended otherwise."""
    ends: dict[str, list[Seeds]] = defaultdict(list)
    for result in group.results:
        if not result.ok:
            ends[result.ended].append(result.seeds)
    alike = len(ends) == 1 and len(group.results) == len(next(iter(ends.values())))
    return [f"- {group.name}{'' if alike else f', {seeds_text(seeds)}'}: {end}" for end, seeds in ends.items()]


def _name(group: SeedGroup, groups: Sequence[SeedGroup]) -> str:
    """Name a row by what tells it from the others: its variant, layout, drives, what is changed of its machine."""
    every = [_names(row) for row in groups]
    distinct = [name for name, *others in zip(_names(group), *every, strict=True) if len(set(others)) > 1]
    return ", ".join(distinct) or group.variant


def _names(group: SeedGroup) -> Sequence[str]:
    cell = group.cell
    drives = ", ".join(drive.removeprefix("model:") for drive in cell.drives)
    return group.variant, f"`{group.layout}`", f"`{drives}`", cell.machine.partition("+")[2] or "as it is"


def _cell(group: SeedGroup, column: Column) -> str:
    """Show a column's values over the seeds; of several measures their sum, as far as a filesystem has them."""
    sums: dict[Seeds, float] = defaultdict(float)
    for words in column.of.split(" + "):
        series = group.measured(Measure.parse(words, "docs/tables.toml:"))
        for seeds, value in series.values if series else ():
            sums[seeds] += float(value) * column.factor
    values = [*sums.values()]
    if not values:
        return NONE
    match column.shown:
        case "sum":
            shown = [sum(values)]
        case "range":
            shown = sorted({min(values), max(values)})
        case _:
            shown = [median(values)]
    return " to ".join(f"{value:.{column.decimals}f}" for value in shown)
